//! The registry of members: the client of each, and its in-memory state (circuit breaker, what was applied, which Works
//! wait for a namespace). All of it may be lost at any time; that costs requests, never a wrong write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use api::{ConditionStatus, Work};
use decide::readiness::Thresholds;
use decide::works::{Delivered, was_delivered};
use serde_json::Value;
use supervise::Recovered as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::rest::Rest;
use crate::runtime::Watched;

mod breaker;
mod remote;

pub use breaker::Breaker;
pub use remote::{ClientConfig, Unreachable};

/// How many times as long as it took to count a member's pods they are not counted again: there may be tens of thousands,
/// and all of them are read.
const POD_COUNT_PAUSE_FACTOR: u32 = 10;

/// Timeouts, intervals and limits of requests to members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How often the status of a member is requested.
    pub status_interval: Duration,
    /// How long its answer may take.
    pub status_timeout: Duration,
    /// How long a change of its health has to last.
    pub health: Thresholds,
    /// How long a request to a member may take.
    pub request_timeout: Duration,
    /// How many requests may fail in a row before the circuit breaker opens.
    pub failures_max: u32,
    /// How long the breaker stays open at first; it doubles with each probe that fails.
    pub pause_min: Duration,
    /// How long the breaker stays open at most.
    pub pause_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            status_interval: Duration::from_secs(10),
            status_timeout: Duration::from_secs(5),
            health: Thresholds { success: Duration::from_secs(30), failure: Duration::from_secs(30) },
            request_timeout: Duration::from_secs(10),
            failures_max: 5,
            pause_min: Duration::from_secs(1),
            pause_max: Duration::from_secs(60),
        }
    }
}

/// A member that can be reached.
#[derive(Clone)]
struct Reached {
    rest: Rest,
    /// How it is reached; none if the composition root said so.
    config: Option<ClientConfig>,
    /// Cancelled when another takes its place.
    replaced: CancellationToken,
}

/// The members that can be reached. Clones share everything.
#[derive(Clone, Default)]
pub struct Members(Arc<Inner>);

#[derive(Default)]
struct Inner {
    settings: Settings,
    reach: Watched<BTreeMap<String, Reached>>,
    /// Why members cannot be reached, by name.
    lost: RwLock<BTreeMap<String, String>>,
    known: Mutex<BTreeMap<String, Arc<Member>>>,
}

impl Members {
    /// No members yet; `settings` are the timeouts and limits of each.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Inner { settings, ..Inner::default() }))
    }

    /// The timeouts and limits of each member.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Makes a member reachable, whatever its Cluster says.
    pub fn insert(&self, name: &str, rest: Rest) {
        self.put(name, Reached { rest, config: None, replaced: CancellationToken::new() });
    }

    /// Connects a member with the client configuration that its Cluster and Secret describe.
    pub fn connect(&self, name: &str, config: ClientConfig, rest: Rest) {
        self.put(name, Reached { rest, config: Some(config), replaced: CancellationToken::new() });
    }

    fn put(&self, name: &str, reached: Reached) {
        self.0.lost.write().recovered().remove(name);
        let mut before = None;
        self.0.reach.change(|reach| before = reach.insert(name.to_owned(), reached));
        if let Some(before) = before {
            before.replaced.cancel();
        }
    }

    fn reached(&self, name: &str) -> Option<Reached> {
        self.0.reach.read(|reach| reach.get(name).cloned())
    }

    /// Whether the composition root said how to reach a member.
    pub fn is_given(&self, name: &str) -> bool {
        self.reached(name).is_some_and(|reached| reached.config.is_none())
    }

    /// Whether the client of a member has this configuration already.
    pub fn is_connected(&self, name: &str, config: &ClientConfig) -> bool {
        self.reached(name).is_some_and(|reached| reached.config.as_ref() == Some(config))
    }

    /// Notes why a member cannot be reached; true when that is new.
    pub fn disconnect(&self, name: &str, why: &str) -> bool {
        self.drop_client(name);
        let mut lost = self.0.lost.write().recovered();
        lost.insert(name.to_owned(), why.to_owned()).is_none_or(|before| before != why)
    }

    /// Forgets how to reach a member that has gone, unless the composition root said it.
    pub fn leave(&self, name: &str) {
        if self.is_given(name) {
            return;
        }
        self.0.lost.write().recovered().remove(name);
        self.drop_client(name);
    }

    fn drop_client(&self, name: &str) {
        let mut gone = None;
        self.0.reach.change(|reach| gone = reach.remove(name));
        if let Some(gone) = gone {
            gone.replaced.cancel();
        }
    }

    /// The client of a member.
    pub fn get(&self, name: &str) -> Option<Rest> {
        self.reached(name).map(|reached| reached.rest)
    }

    /// Why a member cannot be reached; `None` until a connection was attempted.
    pub fn why_not(&self, name: &str) -> Option<String> {
        self.0.lost.read().recovered().get(name).cloned()
    }

    /// The client of a member, as soon as there is one, and a token that is cancelled when it is replaced.
    pub async fn reachable(&self, name: &str) -> (Rest, CancellationToken) {
        let Reached { rest, replaced, .. } = self.0.reach.until(|reach| reach.get(name).cloned()).await;
        (rest, replaced)
    }

    /// The names of all of them.
    pub fn names(&self) -> Vec<String> {
        self.0.reach.read(|reach| reach.keys().cloned().collect())
    }

    /// What is remembered of a member.
    pub fn member(&self, name: &str) -> Arc<Member> {
        let mut known = self.0.known.lock().recovered();
        known.entry(name.to_owned()).or_insert_with(|| Arc::new(Member::new(self.0.settings))).clone()
    }

    /// Forgets what is remembered of a member that has gone.
    pub fn forget(&self, name: &str) {
        self.0.known.lock().recovered().remove(name);
    }
}

/// What is remembered of one member.
pub struct Member {
    settings: Settings,
    /// Held for moments, never across an await.
    memory: Mutex<Memory>,
}

struct Memory {
    breaker: Breaker,
    /// By name of the Work and place of the manifest.
    delivered: HashMap<(String, usize), Delivered>,
    /// Works by the namespace that their manifest needs and the member lacks.
    waiting: BTreeMap<String, BTreeSet<String>>,
    /// What the last answers to the question of health were, and since when.
    health: Option<(bool, Instant)>,
    /// The last renewal of its agent, and when it was observed.
    agent_status: Option<(String, Instant)>,
    /// When its pods may be counted again; none before the first time.
    uncounted_until: Option<Instant>,
}

impl Member {
    fn new(settings: Settings) -> Self {
        let memory = Memory {
            breaker: Breaker::default(),
            delivered: HashMap::new(),
            waiting: BTreeMap::new(),
            health: None,
            agent_status: None,
            uncounted_until: None,
        };
        Self { settings, memory: Mutex::new(memory) }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().recovered()
    }

    /// How long no request may be sent to the member; none if one may be sent now.
    pub fn pause(&self) -> Option<Duration> {
        self.memory().breaker.pause(Instant::now(), &self.settings)
    }

    /// How soon to try again what has just failed.
    pub fn retry(&self) -> Duration {
        self.memory().breaker.retry(Instant::now(), &self.settings)
    }

    /// Notes whether the member answered; true when that opens or closes the circuit breaker.
    pub fn answered(&self, answered: bool) -> bool {
        self.memory().breaker.note(answered, Instant::now(), &self.settings)
    }

    /// True while the circuit breaker is open; `None` until a request was attempted.
    pub fn is_breaker_open(&self) -> Option<bool> {
        self.memory().breaker.is_open()
    }

    /// For how long the member has been as it is seen now.
    pub fn seen(&self, status: ConditionStatus) -> Duration {
        let ready = status == ConditionStatus::True;
        let mut memory = self.memory();
        let now = Instant::now();
        match memory.health {
            Some((before, since)) if before == ready => now - since,
            _ => {
                memory.health = Some((ready, now));
                Duration::ZERO
            }
        }
    }

    /// For how long the status of the member's agent has not changed from this one.
    pub fn note_status(&self, status: &str) -> Duration {
        let mut memory = self.memory();
        let now = Instant::now();
        match &memory.agent_status {
            Some((before, since)) if before == status => now - *since,
            _ => {
                memory.agent_status = Some((status.to_owned(), now));
                Duration::ZERO
            }
        }
    }

    /// Whether the member's pods may be counted now.
    pub fn may_count(&self) -> bool {
        self.memory().uncounted_until.is_none_or(|until| until <= Instant::now())
    }

    /// Notes how long it took to count the member's pods: the longer that takes, the less often it is done.
    pub fn counted(&self, took: Duration) {
        self.memory().uncounted_until = Some(Instant::now() + took * POD_COUNT_PAUSE_FACTOR);
    }

    /// Whether the member's object is what the Work last made of it.
    pub fn has(&self, work: &Work, place: usize, manifest: &Value, object: &Value) -> bool {
        let key = (work.metadata.name.clone(), place);
        let mut memory = self.memory();
        if let Some(delivered) = memory.delivered.get(&key) {
            return delivered.holds(work, manifest, object);
        }
        let delivered = was_delivered(work, manifest, object);
        if delivered {
            memory.delivered.insert(key, Delivered::of(work, object));
        }
        delivered
    }

    /// Remembers what the member was given; true when this state of the Work is new to it.
    pub fn note_applied(&self, work: &Work, place: usize, object: &Value) -> bool {
        let key = (work.metadata.name.clone(), place);
        let before = self.memory().delivered.insert(key, Delivered::of(work, object));
        before.is_none_or(|before| !before.is_of(work))
    }

    /// Forgets a Work that has gone.
    pub fn forget(&self, work: &str) {
        let mut memory = self.memory();
        // A Work has one manifest; those that others write have a few at most.
        for place in 0.. {
            if memory.delivered.remove(&(work.to_owned(), place)).is_none() {
                break;
            }
        }
        memory.waiting.retain(|_, works| {
            works.remove(work);
            !works.is_empty()
        });
    }

    /// Lets a Work wait for a namespace.
    pub fn wait_for(&self, namespace: &str, work: &str) {
        self.memory().waiting.entry(namespace.to_owned()).or_default().insert(work.to_owned());
    }

    /// The Works that waited for a namespace, which has come.
    pub fn take_waiting(&self, namespace: &str) -> BTreeSet<String> {
        self.memory().waiting.remove(namespace).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pods_that_take_long_to_count_are_counted_less_often() {
        let member = Member::new(Settings::default());
        assert!(member.may_count(), "not counted yet");
        member.counted(Duration::from_millis(50));
        tokio::time::advance(Settings::default().status_interval).await;
        assert!(member.may_count(), "quickly counted, so every time");
        member.counted(Duration::from_secs(6));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!member.may_count());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(member.may_count(), "a tenth of the time at most is spent on it");
    }
}
