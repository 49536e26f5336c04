//! How much good news may be told. Ten thousand templates that all do well are ten events each that nobody reads
//! and that everybody pays for; what somebody does by hand to a few is told in full. What was decided has an allowance of its
//! own, so that a fleet that reports all day leaves room for it. Bad news is not limited here.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use supervise::Recovered as _;
use tokio::time::Instant;

/// What may still be told of one sort of news. Clones share it.
#[derive(Clone)]
pub struct RateLimiter {
    /// So much may be told at once.
    burst: u32,
    /// Afterwards, one more in this time.
    refill: Duration,
    /// When all that was taken is back; none before the first. Held for moments.
    spent_until: Arc<Mutex<Option<Instant>>>,
}

impl RateLimiter {
    /// For what was decided: which policy applies, where it runs, who took it from whom.
    pub fn of_decisions() -> Self {
        Self::new(100, Duration::from_secs(1))
    }

    /// For what follows from it as it should.
    pub fn of_routine() -> Self {
        Self::new(60, Duration::from_secs(2))
    }

    fn new(burst: u32, refill: Duration) -> Self {
        Self { burst, refill, spent_until: Arc::default() }
    }

    /// Takes one; false when there is none left.
    pub fn take(&self) -> bool {
        let now = Instant::now();
        let mut spent_until = self.spent_until.lock().recovered();
        // Each one taken moves the moment at which all are back; beyond the burst, there are none.
        let next = spent_until.map_or(now, |until| until.max(now)) + self.refill;
        if next - now > self.refill * self.burst {
            return false;
        }
        *spent_until = Some(next);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_told_and_then_a_little_at_a_time() {
        for rate_limiter in [RateLimiter::of_decisions(), RateLimiter::of_routine()] {
            let RateLimiter { burst, refill, .. } = rate_limiter;
            let taken = |most: u32| (0..most).filter(|_| rate_limiter.take()).count();
            assert_eq!(taken(burst * 2), burst as usize);
            tokio::time::advance(refill * 3).await;
            assert_eq!(taken(10), 3);
            tokio::time::advance(refill * burst * 9).await;
            assert_eq!(taken(burst * 2), burst as usize);
        }
    }
}
