//! The rate limiter of taint evictions: each eviction gets a time slot, so that a failing cluster does not move
//! everything at once. Independent of what is evicted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use decide::BindingKey;
use supervise::Recovered as _;
use tokio::time::Instant;

/// Karmada's `--resource-eviction-rate` of one half per second.
const EVERY: Duration = Duration::from_secs(2);

/// Appointments. Clones share them; a restart forgets them, which costs time and nothing else.
#[derive(Clone)]
pub struct Pace {
    every: Duration,
    /// Held for moments.
    diary: Arc<Mutex<Diary>>,
}

#[derive(Default)]
struct Diary {
    /// The first slot that is not taken.
    free: Option<Instant>,
    appointments: BTreeMap<BindingKey, Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self::one_per(EVERY)
    }
}

impl Pace {
    /// One eviction in so much time.
    pub fn one_per(every: Duration) -> Self {
        Self { every, diary: Arc::default() }
    }

    fn diary(&self) -> MutexGuard<'_, Diary> {
        self.diary.lock().recovered()
    }

    /// How long a binding has to wait for its turn; it keeps its appointment however often it asks.
    pub fn wait(&self, key: &BindingKey) -> Option<Duration> {
        let now = Instant::now();
        let mut diary = self.diary();
        let next = diary.free.filter(|free| *free > now).unwrap_or(now);
        let turn = *diary.appointments.entry(key.clone()).or_insert(next);
        if turn == next {
            diary.free = Some(next + self.every);
        }
        Some(turn.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    /// Ends the appointment of a binding that was evicted, or need not be.
    pub fn leave(&self, key: &BindingKey) {
        self.diary().appointments.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_gets_its_turn_and_keeps_it() {
        let pace = Pace::one_per(Duration::from_secs(2));
        let key = |name: &str| BindingKey { namespace: String::new(), name: name.to_owned() };
        let seconds = |wait: Option<Duration>| wait.map_or(0, |wait| wait.as_secs());
        let ask = |name: &str| seconds(pace.wait(&key(name)));
        assert_eq!([ask("a"), ask("b"), ask("c"), ask("b")], [0, 2, 4, 2]);
        pace.leave(&key("a"));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!([ask("b"), ask("c"), ask("d")], [0, 1, 3]);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!([ask("e"), ask("f")], [0, 2], "time that nobody used is not saved up");
    }
}
