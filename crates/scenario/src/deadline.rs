//! Timeouts on a live control plane, counted in polls, so that a pause of the whole machine does not use them up.

use std::time::Duration;

/// How often is looked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The looks that are left.
#[derive(Debug)]
pub struct Deadline(u128);

impl Deadline {
    /// As many looks as fit into this time.
    pub fn of(time: Duration) -> Self {
        Self(time.as_millis() / POLL_INTERVAL.as_millis())
    }

    /// Whether no look is left.
    pub fn is_over(&self) -> bool {
        self.0 == 0
    }

    /// One look less.
    pub fn spend(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// Waits for the next look.
    pub async fn wait(&mut self) {
        self.spend();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
