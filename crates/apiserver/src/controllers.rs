//! What happens to objects without a request: dependents of deleted owners go, terminating namespaces
//! and definitions empty themselves, namespaces get their default objects, quotas their status. Requests leave notes;
//! one task works them off. All notes can be derived from the store, so a restart forgets nothing.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;
use store::Range;
use supervise::{Backoff, Recovered as _, catch, catch_call};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::admission_policies::{self, Policies};
use crate::authz::{AGGREGATED, Rbac};
use crate::engine::{Engine, text};
use crate::quotas;
use crate::registry::Resource;
use crate::stored::{self, Outline};
use crate::verbs::definitions;
use crate::webhooks::Webhooks;

mod emptying;
mod garbage;
mod internal;
mod kubernetes_service;
mod namespaces;

pub(crate) use internal::is_housekeeping;

/// How many chores are under way at once; their writes share syncs.
const CONCURRENT_MAX: usize = 64;
/// How long a chore that failed waits before it is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// How long one that keeps panicking waits at most.
const RETRY_AFTER_PANIC_MAX: Duration = Duration::from_secs(60);

/// One object, by where it lies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub table: Arc<str>,
    pub key: Arc<str>,
}

/// Something to look at. A chore says where to look, never what happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WorkItem {
    /// A namespace: it wants its default objects, or to be emptied.
    Namespace(String),
    /// A definition: its names may be free now, or its objects are to go.
    Definition(String),
    /// An object whose owners or dependents changed.
    Ownership(Place),
    /// The cluster roles: some may gather the rules of one that changed.
    Roles,
    /// A policy: its status tells whether its expressions can make sense.
    Policy(String),
    /// The quotas of a namespace: their status tells how much is used.
    Quotas(String),
}

/// How a chore went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    Panicked,
}

/// The notes.
#[derive(Default)]
pub(crate) struct ServerControllers {
    /// Guards the queue and the index of owners; held only for moments.
    state: Mutex<State>,
    wake: Notify,
    /// Tells those who wait that everything has been worked off.
    idle: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<WorkItem>,
    queued: HashSet<WorkItem>,
    /// Chores that are being done, or wait to be tried again.
    unfinished: usize,
    /// Who names an object as its owner, by the owner's uid. One set for all: most owners have one dependent, and a
    /// set takes room for eleven.
    dependents: BTreeSet<(Box<str>, Place)>,
    /// Namespaces that are being emptied: each removal inside is a reason to look again.
    terminating: HashSet<String>,
    /// Definitions that are being deleted: nothing is added to their kinds.
    ending_definitions: HashSet<String>,
}

impl ServerControllers {
    fn with<Answer>(&self, work: impl FnOnce(&mut State) -> Answer) -> Answer {
        work(&mut self.state.lock().recovered())
    }

    /// Leaves a note.
    pub fn enqueue(&self, chore: WorkItem) {
        let new = self.with(|state| {
            let new = state.queued.insert(chore.clone());
            if new {
                state.queue.push_back(chore);
            }
            new
        });
        if new {
            self.wake.notify_one();
        }
    }

    fn take(&self) -> Vec<WorkItem> {
        self.with(|state| {
            state.queued.clear();
            let chores: Vec<WorkItem> = state.queue.drain(..).collect();
            state.unfinished += chores.len();
            chores
        })
    }

    /// Whether the definition of this name is being deleted.
    pub fn is_ending(&self, definition: &str) -> bool {
        self.with(|state| state.ending_definitions.contains(definition))
    }

    fn note_ending(&self, definition: &str, ending: bool) {
        self.with(|state| match ending {
            true => state.ending_definitions.insert(definition.to_owned()),
            false => state.ending_definitions.remove(definition),
        });
    }

    /// Somebody will soon look at the whole store: until then there is work.
    pub fn expect_recall(&self) {
        self.with(|state| state.unfinished += 1);
    }

    /// Whatever was unfinished in a life before this is derived from the store again: only that is to be done.
    fn begin_recall(&self) {
        self.with(|state| state.unfinished = 1);
    }

    /// So many chores are no longer being done: they are finished, or in the queue again.
    fn finish(&self, chores: usize) {
        self.with(|state| state.unfinished -= chores);
        if self.is_idle() {
            self.idle.notify_waiters();
        }
    }

    /// Whether every note has been worked off.
    pub fn is_idle(&self) -> bool {
        self.with(|state| state.queue.is_empty() && state.unfinished == 0)
    }

    /// Waits until every note has been worked off.
    pub async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // Listens before it looks, so that no end of work is missed.
            idle.as_mut().enable();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }

    fn dependents(&self, uid: &str) -> Vec<Place> {
        let first = (uid.into(), Place { table: "".into(), key: "".into() });
        self.with(|state| {
            let named = state.dependents.range(first..).take_while(|(owner, _)| **owner == *uid);
            named.map(|(_, place)| place.clone()).collect()
        })
    }
}

impl Engine {
    /// Notes what a committed write may have set off. `new` is absent when the object is gone.
    pub fn noticed(&self, resource: &Resource, old: Option<&Value>, new: Option<&Value>) {
        let Some(object) = new.or(old) else { return };
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        if Rbac::concerns(&resource.table) {
            self.rbac.follow(&self.store, &resource.table, &resource.key(Some(namespace), name));
        }
        if Webhooks::concerns(&resource.table) {
            self.webhooks.follow(&self.store);
        }
        if Policies::concerns(&resource.table) {
            self.policies.follow(&self.store);
        }
        match &*resource.table {
            "/namespaces" => self.controllers.enqueue(WorkItem::Namespace(name.to_owned())),
            AGGREGATED => self.controllers.enqueue(WorkItem::Roles),
            admission_policies::POLICIES => self.controllers.enqueue(WorkItem::Policy(name.to_owned())),
            definitions::TABLE => {
                let ending = new.is_some_and(|new| !new["metadata"]["deletionTimestamp"].is_null());
                self.controllers.note_ending(name, ending);
                self.follow_definition(name, new);
                self.controllers.enqueue(WorkItem::Definition(name.to_owned()));
            }
            // Somebody removed what every namespace has: it comes back.
            "/services" if new.is_none() && kubernetes_service::is_kubernetes_service(namespace, name) => {
                self.controllers.enqueue(WorkItem::Namespace(namespace.to_owned()));
            }
            "/serviceaccounts" | "/configmaps" if new.is_none() && namespaces::is_default_object(name) => {
                self.controllers.enqueue(WorkItem::Namespace(namespace.to_owned()));
            }
            _ => {}
        }
        if new.is_none() && self.controllers.with(|state| state.terminating.contains(namespace)) {
            self.controllers.enqueue(WorkItem::Namespace(namespace.to_owned()));
        }
        self.notice_quotas(resource, old, new);
        self.notice_ownership(resource, old, new);
    }

    /// Reads the store once and leaves the notes that the requests of earlier lives would have left.
    pub fn recall(&self) {
        let registry = self.registry.load_full();
        for resource in registry.stored() {
            let Ok(page) = self.store.range(&resource.table, Range::default()) else { continue };
            for entry in &page.entries {
                if let Err(panic) = catch_call(|| self.recall_entry(resource, entry)) {
                    self.note_panic("housekeeping", &(&resource.table, &entry.key), &panic);
                }
            }
        }
    }

    fn recall_entry(&self, resource: &Resource, entry: &store::Entry) {
        match &*resource.table {
            "/namespaces" => self.controllers.enqueue(WorkItem::Namespace(entry.key.to_string())),
            AGGREGATED => self.controllers.enqueue(WorkItem::Roles),
            admission_policies::POLICIES => self.controllers.enqueue(WorkItem::Policy(entry.key.to_string())),
            quotas::TABLE => {
                let namespace = quotas::namespace_of(&entry.key).unwrap_or_default();
                self.controllers.enqueue(WorkItem::Quotas(namespace.to_owned()));
            }
            definitions::TABLE => {
                let ending = stored::outline(&entry.value).metadata.deletion_timestamp.is_some();
                self.controllers.note_ending(&entry.key, ending);
                self.controllers.enqueue(WorkItem::Definition(entry.key.to_string()));
            }
            _ => {}
        }
        // Most objects have neither; looking for the words is cheaper than reading them.
        let bytes = std::str::from_utf8(&entry.value).unwrap_or_default();
        if bytes.contains("\"ownerReferences\"") || bytes.contains("\"deletionTimestamp\"") {
            let outline: Outline = stored::outline(&entry.value);
            self.recall_ownership(resource, &entry.key, &outline);
        }
    }

    /// Works off the notes until the server shuts down.
    pub async fn run_controllers(self: Arc<Self>) {
        self.controllers.begin_recall();
        self.recall();
        self.controllers.finish(1);
        let mut failed: Vec<WorkItem> = Vec::new();
        let mut retry_at = Instant::now();
        let mut backoff = Backoff::new(RETRY_AFTER, RETRY_AFTER_PANIC_MAX);
        loop {
            let chores = self.controllers.take();
            if chores.is_empty() {
                tokio::select! {
                    biased;
                    () = self.shutdown.cancelled() => return,
                    () = self.controllers.wake.notified() => {}
                    () = tokio::time::sleep_until(retry_at), if !failed.is_empty() => {
                        let count = failed.len();
                        failed.drain(..).for_each(|chore| self.controllers.enqueue(chore));
                        self.controllers.finish(count);
                    }
                }
                continue;
            }
            let (taken, waiting) = (chores.len(), failed.len());
            let mut results = futures::stream::iter(chores)
                .map(|chore| async { (self.try_chore(&chore).await, chore) })
                .buffer_unordered(CONCURRENT_MAX);
            let mut panicked = false;
            while let Some((outcome, chore)) = results.next().await {
                panicked |= outcome == Outcome::Panicked;
                if outcome != Outcome::Done {
                    failed.push(chore);
                }
            }
            if failed.len() > waiting {
                retry_at = Instant::now() + if panicked { backoff.failed() } else { RETRY_AFTER };
            }
            self.controllers.finish(taken + waiting - failed.len());
        }
    }

    /// Does a chore; a panic is as good as a failure and counted.
    async fn try_chore(&self, chore: &WorkItem) -> Outcome {
        let tried = catch(async {
            self.inject("housekeeping", chore);
            self.do_chore(chore).await
        });
        match tried.await {
            Ok(true) => Outcome::Done,
            Ok(false) => Outcome::Failed,
            Err(panic) => {
                self.note_panic("housekeeping", chore, &panic);
                Outcome::Panicked
            }
        }
    }

    /// Whether the chore is done for now.
    async fn do_chore(&self, chore: &WorkItem) -> bool {
        let result = match chore {
            WorkItem::Namespace(name) => self.tend_namespace(name).await,
            WorkItem::Definition(name) => self.tend_definition(name).await,
            WorkItem::Ownership(place) => self.tend_ownership(place).await,
            WorkItem::Roles => self.aggregate_roles().await.map(drop),
            WorkItem::Policy(name) => self.tend_policy(name).await,
            WorkItem::Quotas(namespace) => self.tend_quotas(namespace).await,
        };
        match result {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(?chore, %error, "chore is tried again");
                false
            }
        }
    }
}
