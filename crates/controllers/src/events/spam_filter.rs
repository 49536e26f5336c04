//! The rate limit of Events: a token bucket for each object, as client-go's recorder does (E1). One object that is reconciled
//! in a loop cannot flood the API server, and no object uses up what another one may say.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// How many Events one object may have at once; client-go's burst.
const BURST: u32 = 25;
/// Afterwards, one more in this time; client-go's rate.
const REFILL_INTERVAL: Duration = Duration::from_secs(300);
/// How many objects are remembered. A forgotten object starts with a full bucket.
const OBJECTS_MAX: usize = 10_000;

/// A token bucket for each object.
#[derive(Debug)]
pub struct SpamFilter<K> {
    /// When the bucket of an object is full again. An object that is not in here has a full one.
    full_at: HashMap<K, Instant>,
}

impl<K> Default for SpamFilter<K> {
    fn default() -> Self {
        Self { full_at: HashMap::new() }
    }
}

impl<K: Hash + Eq> SpamFilter<K> {
    /// Takes one token of the object; false when its bucket is empty.
    pub fn take(&mut self, object: K) -> bool {
        let now = Instant::now();
        if self.full_at.len() >= OBJECTS_MAX && !self.full_at.contains_key(&object) {
            self.full_at.retain(|_, full_at| *full_at > now);
            if self.full_at.len() >= OBJECTS_MAX {
                self.full_at.clear();
            }
        }
        let full_at = self.full_at.entry(object).or_insert(now);
        // Each token taken moves the moment at which the bucket is full; beyond the burst there are none.
        let next = (*full_at).max(now) + REFILL_INTERVAL;
        if next - now > REFILL_INTERVAL * BURST {
            return false;
        }
        *full_at = next;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn e1_each_object_has_a_bucket_of_its_own() {
        let mut filter = SpamFilter::default();
        let taken = |filter: &mut SpamFilter<u32>, object| (0..100).filter(|_| filter.take(object)).count();
        assert_eq!(taken(&mut filter, 1), BURST as usize);
        assert_eq!(taken(&mut filter, 2), BURST as usize, "another object is not limited by the first");
        tokio::time::advance(REFILL_INTERVAL * 3).await;
        assert_eq!(taken(&mut filter, 1), 3);
        tokio::time::advance(REFILL_INTERVAL * BURST * 2).await;
        assert_eq!(taken(&mut filter, 1), BURST as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn it_remembers_a_bounded_number_of_objects() {
        let mut filter = SpamFilter::default();
        assert!((0..OBJECTS_MAX as u32 * 3).all(|object| filter.take(object)));
        assert!(filter.full_at.len() <= OBJECTS_MAX);
    }
}
