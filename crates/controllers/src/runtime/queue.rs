//! A queue of keys: each stands in it once, users' keys go first, failures wait, and a key that changes
//! while it is being worked on comes back afterwards.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Key;

/// The first delay after a failure; it doubles with each further one.
const BACKOFF_MIN: Duration = Duration::from_millis(5);
/// The longest delay after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// How often in a row a key has to fail until that counts as lasting: five seconds have gone by, and the next try
/// comes in five.
const FAILURES_LASTING: u32 = 11;

/// How long news is gathered at least before it is told on: most of it comes in bursts.
const GATHER_MIN: Duration = Duration::from_millis(100);
/// How long it is gathered at most, when there is much of it.
const GATHER_MAX: Duration = Duration::from_secs(5);
/// How much longer for each key that is being gathered already.
const GATHER_MORE: Duration = Duration::from_millis(10);

/// Who is waiting for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Somebody changed something and looks at the screen.
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

struct Shared<K> {
    /// Guards everything below; held only for moments.
    state: Mutex<State<K>>,
    /// Told when a key is ready or a delay changed.
    ready: Notify,
    /// Told when nothing is left to do.
    idle: Notify,
}

struct State<K> {
    user: VecDeque<K>,
    resync: VecDeque<K>,
    queued: HashMap<K, Priority>,
    working: HashSet<K>,
    /// Keys that were added while a worker had them.
    again: HashMap<K, Priority>,
    delayed: BTreeMap<Instant, Vec<K>>,
    due: HashMap<K, Instant>,
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
    /// An empty queue.
    pub fn new() -> Self {
        let state = State {
            user: VecDeque::new(),
            resync: VecDeque::new(),
            queued: HashMap::new(),
            working: HashSet::new(),
            again: HashMap::new(),
            delayed: BTreeMap::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            adds: 0,
            retries: 0,
        };
        let shared = Shared { state: Mutex::new(state), ready: Notify::new(), idle: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.shared.state.lock().expect("no one panics while holding it")
    }

    /// Adds a key now.
    pub fn add(&self, key: K, priority: Priority) {
        let mut state = self.state();
        state.adds += 1;
        state.enqueue(key, priority);
        drop(state);
        self.shared.ready.notify_one();
    }

    /// Adds a key later; an earlier appointment of the same key stands.
    pub fn add_after(&self, key: K, delay: Duration) {
        let mut state = self.state();
        state.adds += 1;
        state.appoint(key, Instant::now() + delay);
        drop(state);
        self.shared.ready.notify_one();
    }

    /// Adds a key once news about it is gathered. The more there is to tell, the longer that takes: what would be
    /// told twice in a crowd is told once.
    pub fn add_gathered(&self, key: K) {
        self.add_gathered_for(key, GATHER_MIN);
    }

    /// The same for news of which more comes within this time.
    pub fn add_gathered_for(&self, key: K, at_least: Duration) {
        let waiting = u32::try_from(self.state().due.len()).unwrap_or(u32::MAX);
        self.add_after(key, (at_least + GATHER_MORE.saturating_mul(waiting)).min(GATHER_MAX));
    }

    /// The next key, when there is one. Cancel-safe: a key is taken only when it is returned.
    pub async fn next(&self) -> K {
        loop {
            let wake = {
                let mut state = self.state();
                state.bring_due(Instant::now());
                if let Some(key) = state.take() {
                    // Others may be waiting for what is left.
                    if !state.queued.is_empty() {
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
        let mut state = self.state();
        state.failures.remove(key);
        state.give_back(key);
        self.announce(&state);
    }

    /// Gives a key back that failed and says when it comes again.
    pub fn failed(&self, key: &K) -> Duration {
        let mut state = self.state();
        let failures = state.failures.entry(key.clone()).or_insert(0);
        let delay = BACKOFF_MIN.saturating_mul(2_u32.saturating_pow(*failures)).min(BACKOFF_MAX);
        *failures = failures.saturating_add(1);
        state.retries += 1;
        // What was added meanwhile may be what it waits for, so that goes at once.
        if !state.give_back(key) {
            state.appoint(key.clone(), Instant::now() + delay);
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
            depth: state.queued.len(),
            delayed: state.due.len(),
            working: state.working.len(),
            adds: state.adds,
            retries: state.retries,
            failing: state.failures.values().filter(|failures| **failures >= FAILURES_LASTING).count(),
        }
    }
}

impl<K: Key> State<K> {
    fn enqueue(&mut self, key: K, priority: Priority) {
        if self.working.contains(&key) {
            let before = self.again.get(&key).copied().unwrap_or(priority);
            self.again.insert(key, before.min(priority));
            return;
        }
        match self.queued.get(&key) {
            Some(before) if *before <= priority => {}
            // Raised: the place in the slower line stays and is skipped when its turn comes.
            _ => {
                self.queued.insert(key.clone(), priority);
                match priority {
                    Priority::User => self.user.push_back(key),
                    Priority::Resync => self.resync.push_back(key),
                }
            }
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = Self::take_from(&mut self.user, &self.queued, Priority::User)
            .or_else(|| Self::take_from(&mut self.resync, &self.queued, Priority::Resync))?;
        self.queued.remove(&key);
        self.working.insert(key.clone());
        Some(key)
    }

    fn take_from(line: &mut VecDeque<K>, queued: &HashMap<K, Priority>, priority: Priority) -> Option<K> {
        loop {
            let key = line.pop_front()?;
            if queued.get(&key) == Some(&priority) {
                return Some(key);
            }
        }
    }

    /// Whether the key stands in the queue again.
    fn give_back(&mut self, key: &K) -> bool {
        self.working.remove(key);
        match self.again.remove(key) {
            Some(priority) => {
                self.enqueue(key.clone(), priority);
                true
            }
            None => false,
        }
    }

    fn appoint(&mut self, key: K, when: Instant) {
        if self.due.get(&key).is_some_and(|before| *before <= when) {
            return;
        }
        self.due.insert(key.clone(), when);
        self.delayed.entry(when).or_default().push(key);
    }

    fn bring_due(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry().filter(|entry| *entry.key() <= now) {
            let (when, keys) = entry.remove_entry();
            for key in keys {
                // An appointment that was moved forward has been kept already.
                if self.due.get(&key) == Some(&when) {
                    self.due.remove(&key);
                    self.enqueue(key, Priority::Resync);
                }
            }
        }
    }

    /// Appointments made by success (`Next::After`) do not count: time itself is never done.
    fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.working.is_empty() && self.failures.is_empty()
    }
}
