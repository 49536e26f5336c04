//! Exponential backoff for retries and restarts.

use std::time::Duration;

use tokio::time::Instant;

/// A delay that doubles with each failure, up to a maximum. What ran well for longer than the maximum begins anew.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
    /// When the last delay was given out.
    since: Option<Instant>,
}

impl Backoff {
    /// Begins with `first` and never exceeds `max`.
    pub fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, next: first, since: None }
    }

    /// The delay after one more failure.
    pub fn failed(&mut self) -> Duration {
        let now = Instant::now();
        // The delay that was given out last is no time in which it ran.
        let ran_well = |since: Instant| now.saturating_duration_since(since) > self.next + self.max;
        if self.since.is_some_and(ran_well) {
            self.next = self.first;
        }
        self.since = Some(now);
        let delay = self.next;
        self.next = self.next.saturating_mul(2).min(self.max);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_a_maximum_and_begin_anew_after_a_good_time() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(1), seconds(4));
        let delays: Vec<u64> = (0..4).map(|_| backoff.failed().as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 4]);
        tokio::time::advance(seconds(7)).await;
        assert_eq!(backoff.failed(), seconds(4));
        tokio::time::advance(seconds(9)).await;
        assert_eq!(backoff.failed(), seconds(1));
    }
}
