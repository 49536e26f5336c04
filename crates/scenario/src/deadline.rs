//! Timeouts on a live control plane, counted in polls, so that a pause of the whole machine does not use them up.

use std::time::Duration;

/// The poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The number of polls that are left.
#[derive(Debug)]
pub struct Deadline(u128);

impl Deadline {
    /// As many polls as fit into this time.
    pub fn of(time: Duration) -> Self {
        Self(time.as_millis() / POLL_INTERVAL.as_millis())
    }

    /// Whether no poll is left.
    pub fn is_over(&self) -> bool {
        self.0 == 0
    }

    /// Uses up one poll.
    pub fn spend(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// Waits for the next poll.
    pub async fn wait(&mut self) {
        self.spend();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
