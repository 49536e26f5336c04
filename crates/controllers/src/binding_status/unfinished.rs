//! How long a status may be kept back because more is on its way. While copies start, each member says several times
//! how far it is, and every time would be a write to the binding and one to the template. Who starts one workload sees
//! it come up; the more start at once, the less often each is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use decide::BindingKey;
use tokio::time::Instant;

/// How old a status may be that somebody looks at.
const PATIENCE: Duration = Duration::from_secs(5);
/// What each binding that is kept back adds to it.
const TURN: Duration = Duration::from_millis(100);
/// How old a status may be however many start.
const PATIENCE_MAX: Duration = Duration::from_secs(30);

/// The bindings of which something is kept back. Clones share it.
#[derive(Clone, Default)]
pub struct Unfinished {
    /// When the first of it came. Held for moments.
    since: Arc<Mutex<HashMap<BindingKey, Instant>>>,
}

impl Unfinished {
    /// How much longer a status that is not final may be kept back; none if it has to be told.
    pub fn wait(&self, key: &BindingKey) -> Option<Duration> {
        let now = Instant::now();
        let mut since = self.since.lock().expect("no one panics while holding it");
        let begun = *since.entry(key.clone()).or_insert(now);
        let waiting = u32::try_from(since.len()).unwrap_or(u32::MAX);
        let patience = TURN.saturating_mul(waiting).clamp(PATIENCE, PATIENCE_MAX);
        patience.checked_sub(now - begun).filter(|left| !left.is_zero())
    }

    /// Whether nothing is kept back of any binding.
    pub fn is_empty(&self) -> bool {
        self.since.lock().expect("no one panics while holding it").is_empty()
    }

    /// Nothing is kept back any more.
    pub fn end(&self, key: &BindingKey) {
        self.since.lock().expect("no one panics while holding it").remove(key);
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
        let unfinished = Unfinished::default();
        let waits: Vec<_> = (0..1_000).map(|one| unfinished.wait(&key(&format!("web-{one}")))).collect();
        assert_eq!(waits[0], Some(PATIENCE));
        assert_eq!(waits[199], Some(TURN * 200));
        assert_eq!(waits[999], Some(PATIENCE_MAX), "and not forgotten");
        (100..1_000).for_each(|one| unfinished.end(&key(&format!("web-{one}"))));
        assert_eq!(unfinished.wait(&key("web-0")), Some(TURN * 100), "those that are done make room");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_final_waits_for_some_seconds_and_not_for_more() {
        let unfinished = Unfinished::default();
        let key = key("web");
        assert_eq!(unfinished.wait(&key), Some(PATIENCE));
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!(unfinished.wait(&key), Some(PATIENCE / 2), "counted from the first");
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!(unfinished.wait(&key), None);
        assert!(!unfinished.is_empty());
        unfinished.end(&key);
        assert!(unfinished.is_empty());
        assert_eq!(unfinished.wait(&key), Some(PATIENCE), "what comes then is new");
    }
}
