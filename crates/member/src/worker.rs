//! One round of reconciling: reconcile the objects that changed, write the results, and process the responses. Must not
//! know when rounds happen.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;
use supervise::{Injector, catch};
use tokio::time::Instant;

use crate::cache::Cache;
use crate::client::{Client, Refusal, Written};
use crate::facts;
use crate::key::{Key, Kind};
use crate::plan::{self, Plan, Write};
use crate::queue::Waiting;
use crate::reflector::{Reflector, Update};
use crate::stages::{Scene, Stages, Step};
use crate::workloads::{self, Round, budget, claim, daemon_set, deployment, job, replica_set, stateful_set};

/// The most objects that one round reconciles.
const ROUND_MAX: usize = 256;
/// The most writes that are under way at once; on disk they share syncs.
const WRITES_MAX: usize = 64;
/// The most changes that are taken before they are reconciled.
const UPDATES_MAX: usize = 1024;

/// The wall clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Everything that works on a member's objects.
pub struct Worker {
    client: Client,
    stages: Stages,
    now: Clock,
    reflectors: Vec<Reflector>,
    cache: Cache,
    waiting: Waiting,
    writes: u64,
    /// Lets a test panic.
    injector: Injector,
}

impl Worker {
    /// A worker that follows these kinds.
    pub fn new(client: Client, kinds: impl Iterator<Item = Kind>, stages: Stages, now: Clock) -> Worker {
        let reflectors = kinds.map(|kind| Reflector::new(kind, client.clone())).collect();
        let (cache, waiting) = (Cache::default(), Waiting::default());
        Worker { client, stages, now, reflectors, cache, waiting, writes: 0, injector: Injector::default() }
    }

    /// The same where a test lets things fail.
    #[cfg(test)]
    pub fn with_faults(mut self, injector: Injector) -> Worker {
        self.injector = injector;
        self
    }

    /// Applies watch events to the cache. Zero says that everything written so far has been applied.
    pub fn take_updates(&mut self, context: &mut Context<'_>) -> usize {
        let (cache, waiting) = (&mut self.cache, &mut self.waiting);
        let mut received = 0;
        let mut definitions_changed = false;
        for reflector in &mut self.reflectors {
            let kind = reflector.kind;
            let mut emit = |update: Update| note(cache, waiting, kind, update);
            if let Poll::Ready(count) = reflector.poll(context, UPDATES_MAX, &mut emit) {
                received += count;
                definitions_changed |= kind == Kind::Definition;
            }
        }
        if definitions_changed {
            self.reflectors.iter_mut().for_each(Reflector::reopen_if_missing);
        }
        received
    }

    /// Whether the state of every kind is known.
    pub fn has_synced(&self) -> bool {
        self.reflectors.iter().all(Reflector::is_complete)
    }

    /// Marks the objects whose time has come.
    pub fn take_due(&mut self) {
        for key in self.waiting.take_due() {
            if self.cache.facts(&key).is_some() {
                self.cache.touch(key);
            }
        }
    }

    /// When the next object's time comes.
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.next_due()
    }

    /// Whether there is something to do now.
    pub fn has_work(&self) -> bool {
        self.cache.is_dirty()
    }

    /// How much it has written so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether there will surely be something to do later.
    pub fn expects_work(&self) -> bool {
        self.waiting.has_work()
    }

    /// Reconciles some objects and writes the results.
    pub async fn work(&mut self) {
        self.injector.at("work", &self.writes);
        let now = (self.now)();
        let stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut writes = Vec::new();
        for key in self.cache.take_dirty(ROUND_MAX) {
            match catch(self.plan(&key, now, &stamp)).await {
                Ok(Ok(plan)) => {
                    if let Some(after) = plan.again {
                        self.waiting.deadline(&key, after);
                    }
                    writes.extend(plan.writes.into_iter().map(|write| (key.clone(), write)));
                }
                Ok(Err(refusal)) => self.retry(&key, &refusal),
                Err(panic) => {
                    tracing::error!(?key, %panic, "the member panicked over an object and tries it again");
                    self.waiting.retry(&key);
                }
            }
        }
        let client = &self.client;
        let write = |(key, write): (Key, Write)| async move { (client.write(&write).await, key, write) };
        let mut answers = futures::stream::iter(writes).map(write).buffer_unordered(WRITES_MAX);
        let mut done = Vec::new();
        while let Some(answer) = answers.next().await {
            done.push(answer);
        }
        drop(answers);
        for (answer, key, write) in done {
            self.finish(&key, write, answer);
        }
        self.cache.nodes.forget_promises();
    }

    async fn plan(&mut self, key: &Key, now: Timestamp, stamp: &str) -> Result<Plan, Refusal> {
        self.injector.at("plan", key);
        let early = match key.kind {
            // The owner of a changed object, of a kind that another controller reconciles.
            kind if !self.client.knows(kind) => Some(Plan::nothing()),
            Kind::Definition => Some(Plan::nothing()),
            Kind::ReplicaSet => replica_set::reconcile_from_facts(&self.cache, key),
            _ => None,
        };
        if let Some(plan) = early {
            return Ok(plan);
        }
        let Some(object) = self.client.get(key).await? else { return Ok(Plan::nothing()) };
        let pods = match (key.kind, budget::selector(&object)) {
            (Kind::Budget, Some(selector)) => self.client.pods(key.namespace(), &selector).await?,
            _ => Vec::new(),
        };
        let mut round = Round { cache: &mut self.cache, now, stamp };
        let plan = match key.kind {
            Kind::Pod => workloads::pod::reconcile(&mut round, key, &object),
            Kind::ReplicaSet => {
                Some(replica_set::reconcile(&mut round, key, &object, self.waiting.has_failed(key)))
            }
            Kind::Deployment => Some(deployment::reconcile(&round, key, &object)),
            Kind::StatefulSet => Some(stateful_set::reconcile(&mut round, key, &object)),
            Kind::DaemonSet => Some(daemon_set::reconcile(&round, key, &object)),
            Kind::Job => Some(job::reconcile(&mut round, key, &object)),
            Kind::Claim => Some(claim::reconcile(&round, key, &object)),
            Kind::Volume => Some(claim::reconcile_volume(&round, key, &object)),
            Kind::Budget => Some(budget::reconcile(&round, key, &object, &pods)),
            Kind::Node | Kind::Definition | Kind::Staged(_) => None,
        };
        Ok(plan.filter(|plan| *plan != Plan::nothing()).unwrap_or_else(|| self.staged(key, object, stamp)))
    }

    /// What the stages of a kind say of an object.
    fn staged(&mut self, key: &Key, object: Value, stamp: &str) -> Plan {
        let scene = Scene { now: stamp };
        let named = self.client.named(key.kind);
        let Some(next) = self.stages.next(named, &object, &scene) else {
            self.waiting.cancel(key);
            return Plan::nothing();
        };
        if !self.waiting.stage_is_due(key, next.stage, next.after) {
            return Plan::nothing();
        }
        let uid = workloads::uid(&object).to_owned();
        match next.step {
            Step::Delete => Plan::one(Write::Delete { key: key.clone(), uid }),
            Step::Status(status) => self.staged_status(key, object, status, &scene),
        }
    }

    /// A status that no further stage follows is final, and needs no further reconcile.
    fn staged_status(&self, key: &Key, mut object: Value, status: Value, scene: &Scene<'_>) -> Plan {
        let Some(write) = plan::status(key, &object, status.clone()) else { return Plan::nothing() };
        object["status"] = status;
        let is_last = self.stages.next(self.client.named(key.kind), &object, scene).is_none();
        match write {
            Write::Patch { key, part, patch, .. } => {
                Plan::one(Write::Patch { key, part, patch, last: is_last })
            }
            other => Plan::one(other),
        }
    }

    /// Processes the response to a write that reconciling `key` led to.
    fn finish(&mut self, key: &Key, write: Write, answer: Result<Written, Refusal>) {
        let (kind, last) = match &write {
            Write::Create { kind, .. } => (*kind, false),
            Write::Patch { key, last, .. } => (key.kind, *last),
            Write::Delete { key, .. } | Write::Bind { key, .. } => (key.kind, false),
        };
        self.writes += u64::from(answer.is_ok());
        match (answer, write) {
            (Ok(Written::Object(bytes)), _) => {
                self.waiting.succeeded(key);
                if let Some((key, facts)) = facts::read(kind, &bytes) {
                    self.cache.observe(key, facts, last);
                }
            }
            (Ok(Written::Done), Write::Delete { key: target, uid }) => {
                self.waiting.succeeded(key);
                self.cache.mark_deleting(&target, &uid);
            }
            (Ok(Written::Done), _) => self.waiting.succeeded(key),
            // A deleted object needs nothing, and the watch will report it.
            (Err(refusal), Write::Patch { .. } | Write::Delete { .. } | Write::Bind { .. })
                if refusal.code == 404 => {}
            (Err(refusal), _) => self.retry(key, &refusal),
        }
    }

    fn retry(&mut self, key: &Key, refusal: &Refusal) {
        tracing::debug!(?key, %refusal, "the member tries again");
        self.waiting.retry(key);
    }
}

fn note(cache: &mut Cache, waiting: &mut Waiting, kind: Kind, update: Update) {
    match update {
        Update::State(key, facts) => cache.observe(key, facts, false),
        Update::Gone(key, revision) => {
            waiting.forget(&key);
            cache.forget(&key, revision);
        }
        Update::Complete(there, revision) => {
            let gone: Vec<Key> = cache.keys(kind).filter(|key| !there.contains(key)).cloned().collect();
            for key in gone {
                waiting.forget(&key);
                cache.forget(&key, revision);
            }
        }
    }
}
