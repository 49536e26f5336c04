//! The circuit breaker of a member: after several failures in a row no requests are sent for a growing interval; then a
//! single probe decides. Knows no requests and no clock.

use std::time::Duration;

use tokio::time::Instant;

use super::Settings;

/// Remembers how a member answered lately.
#[derive(Debug, Default)]
pub struct Breaker {
    state: State,
    /// Failures since the last answer.
    failures: u32,
    /// Pauses since the last answer.
    pauses: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No request has been attempted.
    #[default]
    New,
    Closed,
    Open {
        until: Instant,
    },
    /// One request is on its way; should it get lost, another may go at that time.
    Probing {
        until: Instant,
    },
}

impl Breaker {
    /// How long no request may be sent; none makes the caller the one that may probe now.
    pub fn pause(&mut self, now: Instant, settings: &Settings) -> Option<Duration> {
        match self.state {
            State::New | State::Closed => None,
            State::Open { until } | State::Probing { until } if now < until => {
                Some((until - now).min(settings.pause_max).max(Duration::from_millis(1)))
            }
            State::Open { .. } | State::Probing { .. } => {
                self.state = State::Probing { until: now + settings.request_timeout.max(settings.pause_min) };
                None
            }
        }
    }

    /// How soon to try again what has just failed.
    pub fn retry(&self, now: Instant, settings: &Settings) -> Duration {
        match self.state {
            State::Open { until } if now < until => until - now,
            _ => settings.pause_min.min(settings.request_timeout),
        }
    }

    /// Notes the result of a request; true when that opens or closes the breaker.
    pub fn note(&mut self, answered: bool, now: Instant, settings: &Settings) -> bool {
        let before = self.is_open();
        match (answered, self.state) {
            (true, _) => *self = Breaker { state: State::Closed, ..Breaker::default() },
            (false, State::Probing { .. }) => self.open(now, settings),
            // Requests that were in flight when the breaker opened add no information.
            (false, State::Open { .. }) => {}
            (false, State::New | State::Closed) => {
                self.failures += 1;
                if self.failures >= settings.failures_max {
                    self.open(now, settings);
                }
            }
        }
        before != self.is_open()
    }

    fn open(&mut self, now: Instant, settings: &Settings) {
        let pause = settings.pause_min.saturating_mul(2_u32.saturating_pow(self.pauses));
        self.state = State::Open { until: now + pause.min(settings.pause_max) };
        self.pauses = self.pauses.saturating_add(1);
    }

    /// True while the breaker is open; none as long as nothing is known.
    pub fn is_open(&self) -> Option<bool> {
        match self.state {
            State::New => None,
            State::Closed => Some(false),
            State::Open { .. } | State::Probing { .. } => Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_breaker_stays_open_longer_after_each_failed_probe_and_closes_after_a_good_one() {
        let seconds = Duration::from_secs;
        let settings = Settings {
            failures_max: 3,
            pause_min: seconds(1),
            pause_max: seconds(3),
            request_timeout: seconds(1),
            ..Settings::default()
        };
        let start = Instant::now();
        let mut breaker = Breaker::default();
        assert!(!breaker.note(false, start, &settings) && !breaker.note(false, start, &settings));
        assert_eq!(breaker.pause(start, &settings), None);
        assert!(breaker.note(false, start, &settings), "the third failure opens it");
        assert!(!breaker.note(false, start, &settings), "latecomers change nothing");
        assert_eq!(breaker.pause(start, &settings), Some(seconds(1)));
        let later = start + seconds(1);
        assert_eq!(breaker.pause(later, &settings), None, "one may probe");
        assert_eq!(breaker.pause(later, &settings), Some(seconds(1)), "and no other");
        assert!(!breaker.note(false, later, &settings));
        assert_eq!(breaker.retry(later, &settings), seconds(2));
        let later = later + seconds(2);
        assert_eq!(breaker.pause(later, &settings), None);
        breaker.note(false, later, &settings);
        assert_eq!(breaker.retry(later, &settings), seconds(3), "no longer than the longest");
        let later = later + seconds(3);
        assert_eq!(breaker.pause(later, &settings), None);
        assert!(breaker.note(true, later, &settings), "an answer closes it");
        assert_eq!((breaker.pause(later, &settings), breaker.is_open()), (None, Some(false)));
    }
}
