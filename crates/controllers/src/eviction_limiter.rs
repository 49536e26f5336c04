//! The rate limiter of taint evictions: each eviction gets a time slot, so that a failing cluster does not move
//! everything at once. Independent of what is evicted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use decide::BindingKey;
use supervise::Recovered as _;
use tokio::time::Instant;

/// Karmada's `--resource-eviction-rate` of one half per second.
const EVICTION_INTERVAL: Duration = Duration::from_secs(2);

/// The time slots of bindings. Clones share them; a restart forgets them, which costs time and nothing else.
#[derive(Clone)]
pub struct EvictionLimiter {
    every: Duration,
    /// Held for moments.
    slots: Arc<Mutex<Slots>>,
}

#[derive(Default)]
struct Slots {
    /// The first slot that is not taken.
    free: Option<Instant>,
    taken: BTreeMap<BindingKey, Instant>,
}

impl Default for EvictionLimiter {
    fn default() -> Self {
        Self::one_per(EVICTION_INTERVAL)
    }
}

impl EvictionLimiter {
    /// One eviction in so much time.
    pub fn one_per(every: Duration) -> Self {
        Self { every, slots: Arc::default() }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().recovered()
    }

    /// How long a binding has to wait for its slot; it keeps its slot however often it asks.
    pub fn wait(&self, key: &BindingKey) -> Option<Duration> {
        let now = Instant::now();
        let mut slots = self.slots();
        let next = slots.free.filter(|free| *free > now).unwrap_or(now);
        let slot = *slots.taken.entry(key.clone()).or_insert(next);
        if slot == next {
            slots.free = Some(next + self.every);
        }
        Some(slot.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    /// Releases the slot of a binding that was evicted, or need not be.
    pub fn release(&self, key: &BindingKey) {
        self.slots().taken.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_binding_gets_a_slot_and_keeps_it() {
        let limiter = EvictionLimiter::one_per(Duration::from_secs(2));
        let key = |name: &str| BindingKey { namespace: String::new(), name: name.to_owned() };
        let seconds = |wait: Option<Duration>| wait.map_or(0, |wait| wait.as_secs());
        let ask = |name: &str| seconds(limiter.wait(&key(name)));
        assert_eq!([ask("a"), ask("b"), ask("c"), ask("b")], [0, 2, 4, 2]);
        limiter.release(&key("a"));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!([ask("b"), ask("c"), ask("d")], [0, 1, 3]);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!([ask("e"), ask("f")], [0, 2], "unused slots are not saved up");
    }
}
