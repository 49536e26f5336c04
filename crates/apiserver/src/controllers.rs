//! Controllers that run inside the API server, over one work queue: garbage collector, namespace and
//! CustomResourceDefinition termination, default objects of namespaces, quota status. Writes enqueue work items; one
//! task processes them. All work items can be derived from the store, so a restart forgets nothing.

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

/// How many work items are processed at once; their writes share syncs.
const CONCURRENT_MAX: usize = 64;
/// How long a failed work item waits before its retry.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// Upper bound of the back-off of a work item that keeps panicking.
const RETRY_AFTER_PANIC_MAX: Duration = Duration::from_secs(60);

/// The storage location of one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub table: Arc<str>,
    pub key: Arc<str>,
}

/// A work item. It says which object to look at, never what happened (level-triggered).
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
    /// A ValidatingAdmissionPolicy: its status reports the type checking of its expressions.
    Policy(String),
    /// The quotas of a namespace: their status reports usage.
    Quotas(String),
}

/// The result of processing a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    Panicked,
}

/// The work queue.
#[derive(Default)]
pub(crate) struct ServerControllers {
    /// Guards the queue and the index of owners; held only for moments.
    state: Mutex<State>,
    wake: Notify,
    /// Wakes waiters when all work items have been processed.
    idle: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<WorkItem>,
    queued: HashSet<WorkItem>,
    /// Work items that are being processed, or wait for a retry.
    unfinished: usize,
    /// The dependents of each owner, by the owner's uid. One set for all: most owners have one dependent, and a
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

    /// Adds a work item, unless it is queued already.
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

    /// Counts the initial scan of the store as unfinished work until it has run.
    pub fn expect_recall(&self) {
        self.with(|state| state.unfinished += 1);
    }

    /// Whatever was unfinished in a life before this is derived from the store again: only that is to be done.
    fn begin_recall(&self) {
        self.with(|state| state.unfinished = 1);
    }

    /// Marks so many work items as no longer in progress: they are finished, or in the queue again.
    fn finish(&self, chores: usize) {
        self.with(|state| state.unfinished -= chores);
        if self.is_idle() {
            self.idle.notify_waiters();
        }
    }

    /// Whether every work item has been processed.
    pub fn is_idle(&self) -> bool {
        self.with(|state| state.queue.is_empty() && state.unfinished == 0)
    }

    /// Waits until every work item has been processed.
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
    /// Enqueues the work that a committed write may have caused. `new` is absent when the object is gone.
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
            // A client deleted the `kubernetes` Service: it is recreated.
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

    /// Reads the store once and enqueues the work that earlier processes may have left unfinished.
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

    /// Processes the work queue until the server shuts down.
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

    /// Processes a work item; a panic counts as a failure and is counted in the metrics.
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

    /// Whether the work item is done for now.
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
