//! The delay queue: stages with a delay, deadlines, and retries with backoff. Must not know what the keys are about.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::key::Key;

/// The first and the longest pause before something is tried again.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(10);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// After so many failures in a row, callers that wait for idleness no longer wait for the next attempt.
const FAILURES_MAX: u32 = 8;

/// Why something waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The delay of a stage, by its number: work that is still to be done.
    Stage(usize),
    /// A deadline that may well never matter.
    Deadline,
    /// An attempt failed.
    Retry,
}

/// The objects that wait, each at most once.
#[derive(Default)]
pub struct Waiting {
    due: BTreeMap<(Instant, Key), Why>,
    since: HashMap<Key, Instant>,
    /// Stages whose delay is over and that have not been asked for since.
    elapsed: HashMap<Key, usize>,
    failures: HashMap<Key, u32>,
}

impl Waiting {
    /// Whether the delay of an object's stage is over; if not, the object is back when it is.
    pub fn stage_is_due(&mut self, key: &Key, stage: usize, delay: Duration) -> bool {
        if delay.is_zero() || self.elapsed.get(key) == Some(&stage) {
            self.cancel(key);
            return true;
        }
        if !matches!(self.current(key), Some((_, Why::Stage(waiting))) if waiting == stage) {
            self.put(key, Instant::now() + delay, Why::Stage(stage));
        }
        false
    }

    /// Requeues the object after a while, unless it is reconciled earlier.
    pub fn deadline(&mut self, key: &Key, after: Duration) {
        self.put(key, Instant::now() + after, Why::Deadline);
    }

    /// An attempt failed: the object is back after a pause that grows.
    pub fn retry(&mut self, key: &Key) {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        let pause = RETRY_AFTER_MIN.saturating_mul(1 << (*failures - 1).min(16)).min(RETRY_AFTER_MAX);
        self.put(key, Instant::now() + pause, Why::Retry);
    }

    /// Whether the last attempt failed.
    pub fn has_failed(&self, key: &Key) -> bool {
        self.failures.contains_key(key)
    }

    /// An attempt succeeded.
    pub fn succeeded(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    /// The object waits for nothing any more.
    pub fn cancel(&mut self, key: &Key) {
        self.elapsed.remove(key);
        if let Some(due) = self.since.remove(key) {
            self.due.remove(&(due, key.clone()));
        }
    }

    /// The object is gone.
    pub fn forget(&mut self, key: &Key) {
        self.cancel(key);
        self.failures.remove(key);
    }

    /// When the next object is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((due, _), _)| *due)
    }

    /// The objects that are due now.
    pub fn take_due(&mut self) -> Vec<Key> {
        let now = Instant::now();
        let mut keys = Vec::new();
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let ((_, key), why) = entry.remove_entry();
            self.since.remove(&key);
            if let Why::Stage(stage) = why {
                self.elapsed.insert(key.clone(), stage);
            }
            keys.push(key);
        }
        keys
    }

    /// Whether something waits that will surely be done.
    pub fn has_work(&self) -> bool {
        self.due.iter().any(|((_, key), why)| match why {
            Why::Stage(_) => true,
            Why::Deadline => false,
            Why::Retry => self.failures.get(key).is_some_and(|failures| *failures < FAILURES_MAX),
        })
    }

    fn current(&self, key: &Key) -> Option<(Instant, Why)> {
        let due = *self.since.get(key)?;
        Some((due, *self.due.get(&(due, key.clone()))?))
    }

    fn put(&mut self, key: &Key, due: Instant, why: Why) {
        self.cancel(key);
        self.since.insert(key.clone(), due);
        self.due.insert((due, key.clone()), why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Kind;

    fn key() -> Key {
        Key::new(Kind::Pod, "default", "a")
    }

    #[tokio::test(start_paused = true)]
    async fn a_stage_waits_once_and_is_not_put_off_by_looking() {
        let mut waiting = Waiting::default();
        let second = Duration::from_secs(1);
        assert!(waiting.stage_is_due(&key(), 0, Duration::ZERO));
        assert!(!waiting.stage_is_due(&key(), 1, second));
        assert!(waiting.has_work());
        tokio::time::advance(second / 2).await;
        assert!(!waiting.stage_is_due(&key(), 1, second));
        assert!(waiting.take_due().is_empty());
        tokio::time::advance(second / 2).await;
        assert_eq!(waiting.take_due(), [key()]);
        assert!(waiting.stage_is_due(&key(), 1, second));
        assert!(!waiting.has_work());
    }

    #[tokio::test(start_paused = true)]
    async fn retries_slow_down_and_deadlines_are_no_work() {
        let mut waiting = Waiting::default();
        waiting.deadline(&key(), Duration::from_secs(600));
        assert!(!waiting.has_work());
        for _ in 1..FAILURES_MAX {
            waiting.retry(&key());
            assert!(waiting.has_work());
        }
        waiting.retry(&key());
        assert!(!waiting.has_work());
        assert!(waiting.next_due().unwrap() > Instant::now() + Duration::from_secs(1));
        waiting.succeeded(&key());
        waiting.retry(&key());
        assert_eq!(waiting.next_due(), Some(Instant::now() + RETRY_AFTER_MIN));
    }
}
