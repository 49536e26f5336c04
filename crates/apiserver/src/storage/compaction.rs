//! Compaction of the store's history: watches may resume within the last minutes, and memory stays bounded under a
//! flood of writes.

use std::time::Duration;

use store::Store;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::supervision::Supervision;

/// How long watches may resume by default: as long as kube-apiserver keeps history in etcd.
pub const HISTORY_KEPT: Duration = Duration::from_secs(300);
/// At least so many compaction checks within the retention time.
const TICKS_MIN: u32 = 30;
/// The longest interval between checks, because a flood of writes fills memory in moments.
const TICK_MAX: Duration = Duration::from_millis(200);
/// So many events of each kind stay uncompressed: watchers that keep up read them within a moment.
const EVENTS_WHOLE: usize = 256;
/// How often the store probes whether failed writes would succeed now.
const TRY_WRITING_EVERY: Duration = Duration::from_secs(1);
/// History beyond this size is compacted at once, oldest first, however young it is.
pub const HISTORY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Compacts what is older than this, or more than this, until the server shuts down.
pub(crate) async fn compact_history(
    store: Store,
    supervision: &Supervision,
    shutdown: &CancellationToken,
    kept: Duration,
    bytes_max: u64,
) {
    let tick = (kept / TICKS_MIN).min(TICK_MAX);
    let ticks = kept.div_duration_f64(tick).ceil() as usize;
    let mut revisions = std::collections::VecDeque::new();
    let mut tried_at = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(tick) => {}
        }
        if tried_at.elapsed() >= TRY_WRITING_EVERY {
            store.try_writing_again().await;
            tried_at = Instant::now();
        }
        supervision.inject("compaction", &store.revision());
        let packed = store.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || packed.pack(EVENTS_WHOLE)).await {
            tracing::warn!(%error, "pack history");
        }
        revisions.push_back(store.revision());
        let flooded = store.stats().history_bytes > bytes_max;
        let due = match (flooded, revisions.len() > ticks) {
            // Halve what is kept: half of the remembered time is given up, the older half.
            (true, _) => revisions.drain(..revisions.len().div_ceil(2)).next_back(),
            (false, true) => revisions.pop_front(),
            (false, false) => None,
        };
        let Some(revision) = due.filter(|revision| *revision > store.compacted()) else { continue };
        match store.compact(revision).await {
            // The store has said so already, once.
            Err(error) if store.write_failure().is_some() => {
                tracing::debug!(%error, "compact history")
            }
            Err(error) => tracing::warn!(%error, "compact history"),
            Ok(()) => {}
        }
    }
}
