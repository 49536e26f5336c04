//! The workqueue of a controller: keys are deduplicated, users' keys go first, namespaces take turns, and a key that
//! changes while a worker holds it is requeued afterwards. Failing keys are rate limited by exponential backoff: the rate
//! limit of a key. Bursts of changes are collected by a debounce interval.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use supervise::Recovered as _;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Key;

mod fair;

use fair::Waiting;

/// The first delay after a failure; it doubles with each further one.
const BACKOFF_MIN: Duration = Duration::from_millis(5);
/// The longest delay after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// A key that failed this often in a row counts as failing: five seconds have gone by, and the next try comes in five.
const FAILING_AFTER: u32 = 11;

/// The shortest debounce interval: most changes come in bursts.
const DEBOUNCE_MIN: Duration = Duration::from_millis(100);
/// The longest debounce interval, however many keys wait.
const DEBOUNCE_MAX: Duration = Duration::from_secs(5);
/// What each key that is being debounced already adds to it.
const DEBOUNCE_PER_KEY: Duration = Duration::from_millis(10);

/// The priority of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A user changed something and watches the result.
    User,
    /// One of many that a policy edit, a re-list or a timer brought up.
    Resync,
}

/// What a queue has done, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Keys that wait for a worker.
    pub depth: usize,
    /// Keys that wait for their time.
    pub delayed: usize,
    /// Keys in the hands of workers.
    pub working: usize,
    /// How often a key was added.
    pub adds: u64,
    /// How often a key came back after a failure.
    pub retries: u64,
    /// Keys that have failed again and again, and nothing else since.
    pub failing: usize,
}

/// A queue of keys. Clones share it.
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

/// Says which namespace a key belongs to.
type NamespaceOf<K> = Box<dyn Fn(&K) -> String + Send + Sync>;

struct Shared<K> {
    namespace_of: NamespaceOf<K>,
    /// Guards everything below; held only for moments.
    state: Mutex<State<K>>,
    /// Notified when a key is ready or a delay changed.
    ready: Notify,
    /// Notified when nothing is left to do.
    idle: Notify,
}

struct State<K> {
    waiting: Waiting<K>,
    working: HashSet<K>,
    /// Keys that were added while a worker had them.
    again: HashMap<K, Priority>,
    delayed: BTreeMap<Instant, Vec<K>>,
    /// When each is due, and the namespace that it is counted in.
    due: HashMap<K, (Instant, String)>,
    /// How many keys of each namespace wait for their time.
    due_in: HashMap<String, u32>,
    failures: HashMap<K, u32>,
    adds: u64,
    retries: u64,
}

impl<K: Key> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> Queue<K> {
    /// An empty queue of keys that belong to no namespace.
    pub fn new() -> Self {
        Self::fair(|_| String::new())
    }

    /// An empty queue in which namespaces take turns; `namespace_of` says where a key belongs.
    pub fn fair(namespace_of: impl Fn(&K) -> String + Send + Sync + 'static) -> Self {
        let state = State {
            waiting: Waiting::new(),
            working: HashSet::new(),
            again: HashMap::new(),
            delayed: BTreeMap::new(),
            due: HashMap::new(),
            due_in: HashMap::new(),
            failures: HashMap::new(),
            adds: 0,
            retries: 0,
        };
        let namespace_of = Box::new(namespace_of);
        let shared =
            Shared { namespace_of, state: Mutex::new(state), ready: Notify::new(), idle: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Asked before the state is locked: it may lock something else.
    fn namespace_of(&self, key: &K) -> String {
        (self.shared.namespace_of)(key)
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.shared.state.lock().recovered()
    }

    /// Adds a key now.
    pub fn add(&self, key: K, priority: Priority) {
        let namespace = self.namespace_of(&key);
        let mut state = self.state();
        state.adds += 1;
        state.enqueue(key, namespace, priority);
        drop(state);
        self.shared.ready.notify_one();
    }

    /// Adds a key later; an earlier time of the same key stands.
    pub fn add_after(&self, key: K, delay: Duration) {
        let namespace = self.namespace_of(&key);
        let mut state = self.state();
        state.adds += 1;
        state.schedule(key, namespace, Instant::now() + delay);
        drop(state);
        self.shared.ready.notify_one();
    }

    /// Adds a key after a debounce interval, which grows with the number of changes in its namespace: under load
    /// several changes of one key lead to one reconcile.
    pub fn add_debounced(&self, key: K) {
        self.add_debounced_for(key, DEBOUNCE_MIN);
    }

    /// The same with at least this debounce interval.
    pub fn add_debounced_for(&self, key: K, at_least: Duration) {
        let namespace = self.namespace_of(&key);
        let waiting = self.state().due_in.get(&namespace).copied().unwrap_or_default();
        self.add_after(key, (at_least + DEBOUNCE_PER_KEY.saturating_mul(waiting)).min(DEBOUNCE_MAX));
    }

    /// The next key, when there is one. Cancel-safe: a key is taken only when it is returned.
    pub async fn next(&self) -> K {
        loop {
            let wake = {
                let mut state = self.state();
                state.enqueue_due(Instant::now());
                if let Some(key) = state.take() {
                    // Others may be waiting for what is left.
                    if !state.waiting.is_empty() {
                        self.shared.ready.notify_one();
                    }
                    return key;
                }
                state.delayed.keys().next().copied()
            };
            let ready = self.shared.ready.notified();
            match wake {
                None => ready.await,
                Some(wake) => tokio::select! {
                    biased;
                    () = ready => {}
                    () = tokio::time::sleep_until(wake) => {}
                },
            }
        }
    }

    /// Gives a key back that was worked on; what it failed before is forgotten.
    pub fn succeeded(&self, key: &K) {
        let namespace = self.namespace_of(key);
        let mut state = self.state();
        state.failures.remove(key);
        state.end_processing(key, &namespace);
        self.announce(&state);
    }

    /// Gives a key back that failed and says when it comes again.
    pub fn failed(&self, key: &K) -> Duration {
        let namespace = self.namespace_of(key);
        let mut state = self.state();
        let failures = state.failures.entry(key.clone()).or_insert(0);
        let delay = BACKOFF_MIN.saturating_mul(2_u32.saturating_pow(*failures)).min(BACKOFF_MAX);
        *failures = failures.saturating_add(1);
        state.retries += 1;
        // What was added meanwhile may be what it waits for, so that goes at once.
        if !state.end_processing(key, &namespace) {
            state.schedule(key.clone(), namespace, Instant::now() + delay);
        }
        self.announce(&state);
        delay
    }

    fn announce(&self, state: &State<K>) {
        self.shared.ready.notify_one();
        if state.is_idle() {
            self.shared.idle.notify_waiters();
        }
    }

    /// Resolves when no key waits, is delayed after a failure, or is being worked on.
    pub async fn idle(&self) {
        loop {
            let idle = self.shared.idle.notified();
            tokio::pin!(idle);
            // Registered before looking, so that nothing is missed in between.
            idle.as_mut().enable();
            if self.state().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// What the queue holds and has done.
    pub fn stats(&self) -> QueueStats {
        let state = self.state();
        QueueStats {
            depth: state.waiting.len(),
            delayed: state.due.len(),
            working: state.working.len(),
            adds: state.adds,
            retries: state.retries,
            failing: state.failures.values().filter(|failures| **failures >= FAILING_AFTER).count(),
        }
    }
}

impl<K: Key> State<K> {
    fn enqueue(&mut self, key: K, namespace: String, priority: Priority) {
        if self.working.contains(&key) {
            let before = self.again.get(&key).copied().unwrap_or(priority);
            self.again.insert(key, before.min(priority));
            return;
        }
        self.waiting.add(key, namespace, priority);
    }

    fn take(&mut self) -> Option<K> {
        let key = self.waiting.take()?;
        self.working.insert(key.clone());
        Some(key)
    }

    /// True when the key was added again meanwhile.
    fn end_processing(&mut self, key: &K, namespace: &str) -> bool {
        self.working.remove(key);
        match self.again.remove(key) {
            Some(priority) => {
                self.enqueue(key.clone(), namespace.to_owned(), priority);
                true
            }
            None => false,
        }
    }

    fn schedule(&mut self, key: K, namespace: String, when: Instant) {
        if self.due.get(&key).is_some_and(|(before, _)| *before <= when) {
            return;
        }
        match self.due.insert(key.clone(), (when, namespace.clone())) {
            // Only the time changes.
            Some((_, before)) if before == namespace => {}
            before => {
                if let Some((_, before)) = before {
                    self.leave(&before);
                }
                *self.due_in.entry(namespace).or_default() += 1;
            }
        }
        self.delayed.entry(when).or_default().push(key);
    }

    /// One key less of a namespace waits for its time.
    fn leave(&mut self, namespace: &str) {
        if let Some(count) = self.due_in.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.due_in.remove(namespace);
            }
        }
    }

    fn enqueue_due(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry().filter(|entry| *entry.key() <= now) {
            let (when, keys) = entry.remove_entry();
            for key in keys {
                // A key that was moved forward has been enqueued already.
                if self.due.get(&key).is_some_and(|(due, _)| *due == when)
                    && let Some((_, namespace)) = self.due.remove(&key)
                {
                    self.leave(&namespace);
                    self.enqueue(key, namespace, Priority::Resync);
                }
            }
        }
    }

    /// Keys that wait because of `Action::RequeueAfter` do not count: a queue with timers would never be idle.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.working.is_empty() && self.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn keys_of_one_namespace_are_debounced_no_longer_because_of_another() {
        let queue: Queue<(&'static str, u32)> = Queue::fair(|key: &(&'static str, u32)| key.0.to_owned());
        (0..5_000).for_each(|number| queue.add_debounced(("flood", number)));
        queue.add_debounced(("other", 0));
        let begun = Instant::now();
        while queue.next().await.0 != "other" {}
        assert!(begun.elapsed() < DEBOUNCE_MIN * 2, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_are_counted_until_their_last_key_is_due() {
        let queue: Queue<u32> = Queue::fair(|_| "a".to_owned());
        queue.add_after(1, Duration::from_secs(9));
        queue.add_after(1, Duration::from_secs(1));
        queue.add_after(2, Duration::from_secs(2));
        assert_eq!(queue.state().due_in.get("a"), Some(&2));
        queue.next().await;
        queue.next().await;
        assert!(queue.state().due_in.is_empty());
    }
}
