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
const DELAY_MIN: Duration = Duration::from_secs(5);
/// What each binding with a delayed status adds to it.
const DELAY_PER_BINDING: Duration = Duration::from_millis(200);
/// The longest delay of a status with reports, however many workloads start.
const DELAY_MAX: Duration = Duration::from_secs(30);
/// The longest delay of a status without any report, however many workloads start.
const DELAY_WITHOUT_REPORT_MAX: Duration = Duration::from_mins(5);

/// The bindings whose status write is delayed. Clones share it.
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
        let most = if silent { DELAY_WITHOUT_REPORT_MAX } else { DELAY_MAX };
        let delay = DELAY_PER_BINDING.saturating_mul(waiting).clamp(DELAY_MIN, most);
        delay.checked_sub(now - begun).filter(|left| !left.is_zero())
    }

    /// Whether no status write is delayed.
    pub fn is_empty(&self) -> bool {
        self.since.lock().recovered().is_empty()
    }

    /// Ends the delay of a binding's status.
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
    async fn the_more_bindings_start_the_less_often_each_is_written() {
        let coalescer = StatusCoalescer::default();
        let wait = |one: u32, silent| coalescer.wait(&key(&format!("web-{one}")), silent);
        let waits: Vec<_> = (0..5_000).map(|one| wait(one, true)).collect();
        assert_eq!(waits[0], Some(DELAY_MIN));
        assert_eq!(waits[99], Some(DELAY_PER_BINDING * 100));
        assert_eq!(waits[4_999], Some(DELAY_WITHOUT_REPORT_MAX), "and not longer");
        assert_eq!(wait(0, false), Some(DELAY_MAX), "a status with reports is written sooner");
        (100..5_000).for_each(|one| coalescer.end(&key(&format!("web-{one}"))));
        assert_eq!(wait(0, false), Some(DELAY_PER_BINDING * 100), "finished bindings shorten the delay");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_status_is_delayed_for_a_limited_time() {
        let coalescer = StatusCoalescer::default();
        let key = key("web");
        assert_eq!(coalescer.wait(&key, true), Some(DELAY_MIN));
        tokio::time::advance(DELAY_MIN / 2).await;
        assert_eq!(coalescer.wait(&key, true), Some(DELAY_MIN / 2), "counted from the first");
        assert_eq!(coalescer.wait(&key, false), Some(DELAY_MIN), "a first report starts a new delay");
        tokio::time::advance(DELAY_MIN / 2).await;
        assert_eq!(coalescer.wait(&key, false), Some(DELAY_MIN / 2));
        tokio::time::advance(DELAY_MIN / 2).await;
        assert_eq!(coalescer.wait(&key, false), None);
        assert!(!coalescer.is_empty());
        coalescer.end(&key);
        assert!(coalescer.is_empty());
        assert_eq!(coalescer.wait(&key, false), Some(DELAY_MIN), "a later change starts a new delay");
    }
}
