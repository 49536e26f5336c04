//! How much good news may be told. Ten thousand templates that all do well are ten events each that nobody reads
//! and that everybody pays for; what somebody does by hand is told in full. Bad news is not limited here.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

/// So much may be told at once.
const BURST: u32 = 200;
/// Afterwards, one more in this time.
const REFILL: Duration = Duration::from_millis(200);

/// What may still be told. Clones share it.
#[derive(Clone, Default)]
pub struct Allowance {
    /// When all that was taken is back; none before the first. Held for moments.
    spent_until: Arc<Mutex<Option<Instant>>>,
}

impl Allowance {
    /// Takes one; false when there is none left.
    pub fn take(&self) -> bool {
        let now = Instant::now();
        let mut spent_until = self.spent_until.lock().expect("no one panics while holding it");
        // Each one taken moves the moment at which all are back; beyond the burst, there are none.
        let next = spent_until.map_or(now, |until| until.max(now)) + REFILL;
        if next - now > REFILL * BURST {
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
        let allowance = Allowance::default();
        let taken = (0..BURST * 2).filter(|_| allowance.take()).count();
        assert_eq!(taken, BURST as usize);
        tokio::time::advance(REFILL * 3).await;
        assert_eq!((0..10).filter(|_| allowance.take()).count(), 3);
        tokio::time::advance(REFILL * BURST * 9).await;
        assert_eq!((0..BURST * 2).filter(|_| allowance.take()).count(), BURST as usize);
    }
}
