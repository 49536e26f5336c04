//! Rate limiter (token bucket) for audit events of unauthenticated requests: a sample is logged, so that attacks are
//! visible and cannot fill the disk. Dropped events are counted.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

/// Refusals that are written down each second, in the long run.
const REFUSALS_PER_SECOND: f64 = 10.0;
/// Refusals that are written down at once, after a quiet time.
const REFUSALS_BURST: f64 = 100.0;

/// Decides which refusals are written down.
pub(super) struct Sampler {
    /// Held for moments.
    bucket: Mutex<Bucket>,
    dropped_total: AtomicU64,
}

struct Bucket {
    tokens: f64,
    filled: Timestamp,
    /// Refusals that were dropped since the last one that was written down.
    dropped: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        let bucket = Bucket { tokens: REFUSALS_BURST, filled: Timestamp::UNIX_EPOCH, dropped: 0 };
        Self { bucket: Mutex::new(bucket), dropped_total: AtomicU64::new(0) }
    }
}

impl Sampler {
    /// Whether a refusal is written down; then also how many were dropped since the last one.
    pub fn take(&self, now: Timestamp) -> Option<u64> {
        let mut bucket = self.bucket.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let seconds = now.duration_since(bucket.filled).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + seconds * REFUSALS_PER_SECOND).min(REFUSALS_BURST);
        bucket.filled = now;
        if bucket.tokens < 1.0 {
            bucket.dropped += 1;
            self.dropped_total.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        bucket.tokens -= 1.0;
        Some(std::mem::take(&mut bucket.dropped))
    }

    /// How many refusals were dropped since the server started.
    pub fn dropped_total(&self) -> u64 {
        self.dropped_total.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_sampled_and_counted() {
        let sampler = Sampler::default();
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).expect("a time");
        let written = (0..1_000).filter(|_| sampler.take(at(0)).is_some()).count();
        assert_eq!((written, sampler.dropped_total()), (100, 900));
        assert_eq!(sampler.take(at(1)), Some(900), "the next one says how many were dropped");
        let written = (0..1_000).filter(|_| sampler.take(at(1)).is_some()).count();
        assert_eq!(written, 9, "ten each second");
    }
}
