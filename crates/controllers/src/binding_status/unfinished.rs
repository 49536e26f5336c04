//! How long a status may be kept back because more is on its way. While copies start, each member says several times
//! how far it is, and every time would be a write to the binding and one to the template.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use decide::BindingKey;
use tokio::time::Instant;

/// How old a status may be that somebody looks at.
const PATIENCE: Duration = Duration::from_secs(5);

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
        let since = *since.entry(key.clone()).or_insert(now);
        PATIENCE.checked_sub(now - since).filter(|left| !left.is_zero())
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

    #[tokio::test(start_paused = true)]
    async fn what_is_not_final_waits_for_some_seconds_and_not_for_more() {
        let unfinished = Unfinished::default();
        let key = BindingKey { namespace: "default".to_owned(), name: "web-deployment".to_owned() };
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
