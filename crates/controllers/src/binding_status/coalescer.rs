//! The status coalescer: how long a status write is delayed because more changes are coming. While copies start, each
//! member reports progress several times, and each report would be a write to the binding and one to the template. A
//! single workload is reported promptly; the more start at once, the less often each is written. A status without any
//! report waits longest: it says nothing that an empty status does not say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use decide::BindingKey;
use supervise::Recovered as _;
use tokio::time::Instant;

/// How long a status with reports is delayed when a single workload starts.
const PATIENCE: Duration = Duration::from_secs(5);
/// What each binding that is kept back adds to it.
const TURN: Duration = Duration::from_millis(200);
/// How old a status may be however many start.
const PATIENCE_MAX: Duration = Duration::from_secs(30);
/// The longest delay of a status without any report, however many workloads start.
const SILENCE_MAX: Duration = Duration::from_mins(5);

/// The bindings of which something is kept back. Clones share it.
#[derive(Clone, Default)]
pub struct StatusCoalescer {
    /// Held for moments.
    since: Arc<Mutex<HashMap<BindingKey, Since>>>,
}

/// When the first delayed change came, and whether the status has no report yet.
#[derive(Clone, Copy)]
struct Since {
    begun: Instant,
    silent: bool,
}

impl StatusCoalescer {
    /// How much longer a status that is not final may be delayed; none if it has to be written.
    pub fn wait(&self, key: &BindingKey, silent: bool) -> Option<Duration> {
        let now = Instant::now();
        let mut since = self.since.lock().recovered();
        let one = since.entry(key.clone()).or_insert(Since { begun: now, silent });
        // The first report starts a new delay.
        if one.silent && !silent {
            *one = Since { begun: now, silent };
        }
        let begun = one.begun;
        let waiting = u32::try_from(since.len()).unwrap_or(u32::MAX);
        let most = if silent { SILENCE_MAX } else { PATIENCE_MAX };
        let patience = TURN.saturating_mul(waiting).clamp(PATIENCE, most);
        patience.checked_sub(now - begun).filter(|left| !left.is_zero())
    }

    /// Whether nothing is kept back of any binding.
    pub fn is_empty(&self) -> bool {
        self.since.lock().recovered().is_empty()
    }

    /// Nothing is kept back any more.
    pub fn end(&self, key: &BindingKey) {
        self.since.lock().recovered().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> BindingKey {
        BindingKey { namespace: "default".to_owned(), name: name.to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn the_more_start_the_less_often_each_is_told() {
        let coalescer = StatusCoalescer::default();
        let wait = |one: u32, silent| coalescer.wait(&key(&format!("web-{one}")), silent);
        let waits: Vec<_> = (0..5_000).map(|one| wait(one, true)).collect();
        assert_eq!(waits[0], Some(PATIENCE));
        assert_eq!(waits[99], Some(TURN * 100));
        assert_eq!(waits[4_999], Some(SILENCE_MAX), "and not forgotten");
        assert_eq!(wait(0, false), Some(PATIENCE_MAX), "who has answered is told of sooner");
        (100..5_000).for_each(|one| coalescer.end(&key(&format!("web-{one}"))));
        assert_eq!(wait(0, false), Some(TURN * 100), "those that are done make room");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_final_waits_for_some_seconds_and_not_for_more() {
        let coalescer = StatusCoalescer::default();
        let key = key("web");
        assert_eq!(coalescer.wait(&key, true), Some(PATIENCE));
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!(coalescer.wait(&key, true), Some(PATIENCE / 2), "counted from the first");
        assert_eq!(coalescer.wait(&key, false), Some(PATIENCE), "an answer is new");
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!(coalescer.wait(&key, false), Some(PATIENCE / 2));
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!(coalescer.wait(&key, false), None);
        assert!(!coalescer.is_empty());
        coalescer.end(&key);
        assert!(coalescer.is_empty());
        assert_eq!(coalescer.wait(&key, false), Some(PATIENCE), "what comes then is new");
    }
}
