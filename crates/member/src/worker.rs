//! One round of reconciling: reconcile the objects that changed, write the results, and process the responses. Must not
//! know when rounds happen.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;
use supervise::{Injector, catch};
use tokio::time::Instant;

use crate::client::{Client, Refusal, Written};
use crate::facts;
use crate::feed::{Feed, Update};
use crate::key::{Key, Kind};
use crate::plan::{self, Plan, Write};
use crate::queue::Waiting;
use crate::stages::{Scene, Stages, Step};
use crate::workloads::{self, Look, budget, claim, daemon_set, deployment, job, replica_set, stateful_set};
use crate::world::World;

/// The most objects that one round looks at.
const ROUND_MAX: usize = 256;
/// The most writes that are under way at once; on disk they share syncs.
const WRITES_MAX: usize = 64;
/// The most changes that are taken before they are reconciled.
const NEWS_MAX: usize = 1024;

/// The wall clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Everything that works on a member's objects.
pub struct Worker {
    client: Client,
    stages: Stages,
    now: Clock,
    feeds: Vec<Feed>,
    world: World,
    waiting: Waiting,
    writes: u64,
    /// Lets a test panic.
    injector: Injector,
}

impl Worker {
    /// A worker that follows these kinds.
    pub fn new(client: Client, kinds: impl Iterator<Item = Kind>, stages: Stages, now: Clock) -> Worker {
        let feeds = kinds.map(|kind| Feed::new(kind, client.clone())).collect();
        let (world, waiting) = (World::default(), Waiting::default());
        Worker { client, stages, now, feeds, world, waiting, writes: 0, injector: Injector::default() }
    }

    /// The same where a test lets things fail.
    #[cfg(test)]
    pub fn with_faults(mut self, injector: Injector) -> Worker {
        self.injector = injector;
        self
    }

    /// Takes note of what happened. Zero says that everything written so far has been taken.
    pub fn take_news(&mut self, context: &mut Context<'_>) -> usize {
        let (world, waiting) = (&mut self.world, &mut self.waiting);
        let mut told = 0;
        let mut definitions_changed = false;
        for feed in &mut self.feeds {
            let kind = feed.kind;
            let mut tell = |news: Update| note(world, waiting, kind, news);
            if let Poll::Ready(count) = feed.poll(context, NEWS_MAX, &mut tell) {
                told += count;
                definitions_changed |= kind == Kind::Definition;
            }
        }
        if definitions_changed {
            self.feeds.iter_mut().for_each(Feed::look_again);
        }
        told
    }

    /// Whether the state of every kind is known.
    pub fn is_informed(&self) -> bool {
        self.feeds.iter().all(Feed::is_complete)
    }

    /// Marks the objects whose time has come.
    pub fn take_due(&mut self) {
        for key in self.waiting.take_due() {
            if self.world.facts(&key).is_some() {
                self.world.touch(key);
            }
        }
    }

    /// When the next object's time comes.
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting.next_due()
    }

    /// Whether there is something to do now.
    pub fn has_work(&self) -> bool {
        self.world.is_dirty()
    }

    /// How much it has written so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether there will surely be something to do later.
    pub fn expects_work(&self) -> bool {
        self.waiting.has_work()
    }

    /// Looks at some objects and writes what comes of it.
    pub async fn work(&mut self) {
        self.injector.at("work", &self.writes);
        let now = (self.now)();
        let stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut writes = Vec::new();
        for key in self.world.take_dirty(ROUND_MAX) {
            match catch(self.plan(&key, now, &stamp)).await {
                Ok(Ok(plan)) => {
                    if let Some(after) = plan.again {
                        self.waiting.deadline(&key, after);
                    }
                    writes.extend(plan.writes.into_iter().map(|write| (key.clone(), write)));
                }
                Ok(Err(refusal)) => self.try_again(&key, &refusal),
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
        self.world.nodes.forget_promises();
    }

    async fn plan(&mut self, key: &Key, now: Timestamp, stamp: &str) -> Result<Plan, Refusal> {
        self.injector.at("plan", key);
        let glance = match key.kind {
            // The owner of a changed object, of a kind that another controller reconciles.
            kind if !self.client.knows(kind) => Some(Plan::nothing()),
            Kind::Definition => Some(Plan::nothing()),
            Kind::ReplicaSet => replica_set::glance(&self.world, key),
            _ => None,
        };
        if let Some(plan) = glance {
            return Ok(plan);
        }
        let Some(object) = self.client.get(key).await? else { return Ok(Plan::nothing()) };
        let pods = match (key.kind, budget::selector(&object)) {
            (Kind::Budget, Some(selector)) => self.client.pods(key.namespace(), &selector).await?,
            _ => Vec::new(),
        };
        let mut look = Look { world: &mut self.world, now, stamp };
        let plan = match key.kind {
            Kind::Pod => workloads::pod::look(&mut look, key, &object),
            Kind::ReplicaSet => {
                Some(replica_set::look(&mut look, key, &object, self.waiting.has_failed(key)))
            }
            Kind::Deployment => Some(deployment::look(&look, key, &object)),
            Kind::StatefulSet => Some(stateful_set::look(&mut look, key, &object)),
            Kind::DaemonSet => Some(daemon_set::look(&look, key, &object)),
            Kind::Job => Some(job::look(&mut look, key, &object)),
            Kind::Claim => Some(claim::look(&look, key, &object)),
            Kind::Volume => Some(claim::look_at_volume(&look, key, &object)),
            Kind::Budget => Some(budget::look(&look, key, &object, &pods)),
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
                    self.world.observe(key, facts, last);
                }
            }
            (Ok(Written::Done), Write::Delete { key: target, uid }) => {
                self.waiting.succeeded(key);
                self.world.mark_deleting(&target, &uid);
            }
            (Ok(Written::Done), _) => self.waiting.succeeded(key),
            // A deleted object needs nothing, and the watch will report it.
            (Err(refusal), Write::Patch { .. } | Write::Delete { .. } | Write::Bind { .. })
                if refusal.code == 404 => {}
            (Err(refusal), _) => self.try_again(key, &refusal),
        }
    }

    fn try_again(&mut self, key: &Key, refusal: &Refusal) {
        tracing::debug!(?key, %refusal, "the member tries again");
        self.waiting.retry(key);
    }
}

fn note(world: &mut World, waiting: &mut Waiting, kind: Kind, news: Update) {
    match news {
        Update::State(key, facts) => world.observe(key, facts, false),
        Update::Gone(key, revision) => {
            waiting.forget(&key);
            world.forget(&key, revision);
        }
        Update::Complete(there, revision) => {
            let gone: Vec<Key> = world.keys(kind).filter(|key| !there.contains(key)).cloned().collect();
            for key in gone {
                waiting.forget(&key);
                world.forget(&key, revision);
            }
        }
    }
}
