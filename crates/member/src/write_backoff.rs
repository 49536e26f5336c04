//! Write back-off: a member's own writes yield to those of clients. A client that creates a thousand objects sees them
//! arrive before the pods of the first of them start, as in a real cluster, where other machines start them. Reads no
//! clock.

use std::time::Duration;

use tokio::time::Instant;

/// How long the writes of others are counted before they are judged.
const COUNTING_WINDOW: Duration = Duration::from_millis(20);
/// So many in one window are a crowd.
const CLIENT_WRITES_MAX: u64 = 4;
/// The longest that the member lets clients write without a round of its own.
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// Distinguishes the writes of clients from the member's own.
pub struct WriteBackoff {
    /// How much has been written altogether.
    revision: Box<dyn Fn() -> u64 + Send>,
    /// When the window began, and what had been written then: by others, as far as it is known.
    begun: Instant,
    others: u64,
    /// Since when a crowd is being let through.
    since: Option<Instant>,
}

impl WriteBackoff {
    /// Starts without any back-off.
    pub fn new(revision: impl Fn() -> u64 + Send + 'static, now: Instant) -> Self {
        let others = revision();
        Self { revision: Box::new(revision), begun: now, others, since: None }
    }

    /// Until when to wait, if there is a crowd; `own` is how much this member has written itself.
    pub fn wait(&mut self, own: u64, now: Instant) -> Option<Instant> {
        let others = (self.revision)().saturating_sub(own);
        if now.duration_since(self.begun) >= COUNTING_WINDOW {
            let is_crowded = others.saturating_sub(self.others) >= CLIENT_WRITES_MAX;
            (self.begun, self.others) = (now, others);
            self.since = is_crowded.then(|| self.since.unwrap_or(now));
        }
        match self.since {
            Some(since) if now.duration_since(since) < BACKOFF_MAX => Some(self.begun + COUNTING_WINDOW),
            Some(_) => {
                // One round for those who have waited, and the crowd goes on.
                self.since = Some(now);
                None
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Plays windows: what others and the member itself write in each, and whether it then waits.
    #[track_caller]
    fn check(windows: &[(u64, u64, bool)]) {
        let written = Arc::new(AtomicU64::new(100));
        let revision = written.clone();
        let mut now = Instant::now();
        let mut write_backoff = WriteBackoff::new(move || revision.load(Ordering::Relaxed), now);
        let mut own = 0;
        for (number, (others, mine, waits)) in windows.iter().enumerate() {
            written.fetch_add(others + mine, Ordering::Relaxed);
            own += mine;
            now += COUNTING_WINDOW;
            assert_eq!(write_backoff.wait(own, now).is_some(), *waits, "window {number}");
        }
    }

    #[test]
    fn a_crowd_goes_first() {
        check(&[(0, 0, false), (1, 0, false), (CLIENT_WRITES_MAX, 0, true), (50, 0, true), (1, 0, false)]);
    }

    #[test]
    fn own_writes_are_no_crowd() {
        check(&[(0, 500, false), (1, 500, false), (CLIENT_WRITES_MAX, 500, true), (0, 0, false)]);
    }

    #[test]
    fn no_crowd_keeps_the_member_from_its_work_for_ever() {
        let rounds =
            usize::try_from(BACKOFF_MAX.as_millis() / COUNTING_WINDOW.as_millis()).expect("a small number");
        let mut windows = vec![(50, 0, true); rounds];
        windows.push((50, 0, false));
        windows.push((50, 30, true));
        check(&windows);
    }
}
