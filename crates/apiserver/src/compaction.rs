//! How long history is kept: watches may resume within the last minutes, and memory stays bounded under a
//! flood of writes.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;

/// How often the store is looked at.
const TICK: Duration = Duration::from_secs(10);
/// History older than this many ticks goes: five minutes, as kube-apiserver keeps in etcd.
const TICKS_KEPT: usize = 30;
/// More history than this goes at once, oldest first.
const HISTORY_BYTES_MAX: u64 = 256 * 1024 * 1024;

impl Engine {
    /// Compacts the store until the server shuts down.
    pub async fn compact_history(self: Arc<Self>) {
        let mut revisions = std::collections::VecDeque::with_capacity(TICKS_KEPT + 1);
        loop {
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(TICK) => {}
            }
            revisions.push_back(self.store.revision());
            let flooded = self.store.stats().history_bytes > HISTORY_BYTES_MAX;
            let due = match (flooded, revisions.len() > TICKS_KEPT) {
                // Halve what is kept: the oldest half of the remembered revisions is given up.
                (true, _) => revisions.drain(..revisions.len().div_ceil(2)).next_back(),
                (false, true) => revisions.pop_front(),
                (false, false) => None,
            };
            let Some(revision) = due.filter(|revision| *revision > self.store.compacted()) else { continue };
            if let Err(error) = self.store.compact(revision).await {
                tracing::warn!(%error, "compact history");
            }
        }
    }
}
