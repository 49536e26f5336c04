//! The work queue of the controllers inside the server, with the index of owner references. Writes add work items; the
//! controllers process them. Must not know how.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use supervise::Recovered as _;
use tokio::sync::Notify;

/// The storage location of one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
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
    Ownership(ObjectKey),
    /// The cluster roles: some may gather the rules of one that changed.
    Roles,
    /// A ValidatingAdmissionPolicy: its status reports the type checking of its expressions.
    Policy(String),
    /// The quotas of a namespace: their status reports usage.
    Quotas(String),
}

/// The work queue.
#[derive(Default)]
pub(crate) struct WorkQueue {
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
    dependents: BTreeSet<(Box<str>, ObjectKey)>,
    /// Namespaces that are being emptied: each removal inside is a reason to look again.
    terminating: HashSet<String>,
    /// Definitions that are being deleted: nothing is added to their kinds.
    ending_definitions: HashSet<String>,
}

impl WorkQueue {
    /// Resolves when a work item was added.
    pub async fn added(&self) {
        self.wake.notified().await;
    }

    /// Replaces the owners of an object in the index.
    pub fn index_owners(&self, place: &ObjectKey, removed: &[&str], added: &[&str]) {
        self.with(|state| {
            for uid in removed {
                state.dependents.remove(&((*uid).into(), place.clone()));
            }
            for uid in added {
                state.dependents.insert(((*uid).into(), place.clone()));
            }
        });
    }

    /// Whether a namespace is being emptied.
    pub fn is_terminating(&self, namespace: &str) -> bool {
        self.with(|state| state.terminating.contains(namespace))
    }

    /// Records whether a namespace is being emptied.
    pub fn note_terminating(&self, namespace: &str, terminating: bool) {
        self.with(|state| match terminating {
            true => state.terminating.insert(namespace.to_owned()),
            false => state.terminating.remove(namespace),
        });
    }

    fn with<Answer>(&self, work: impl FnOnce(&mut State) -> Answer) -> Answer {
        work(&mut self.state.lock().recovered())
    }

    /// Adds a work item, unless it is queued already.
    pub fn enqueue(&self, item: WorkItem) {
        let new = self.with(|state| {
            let new = state.queued.insert(item.clone());
            if new {
                state.queue.push_back(item);
            }
            new
        });
        if new {
            self.wake.notify_one();
        }
    }

    /// Takes every queued item; each counts as unfinished until [`Self::finish`].
    pub fn take(&self) -> Vec<WorkItem> {
        self.with(|state| {
            state.queued.clear();
            let items: Vec<WorkItem> = state.queue.drain(..).collect();
            state.unfinished += items.len();
            items
        })
    }

    /// Whether the definition of this name is being deleted.
    pub fn is_ending(&self, definition: &str) -> bool {
        self.with(|state| state.ending_definitions.contains(definition))
    }

    /// Records whether a definition is being deleted.
    pub fn note_ending(&self, definition: &str, ending: bool) {
        self.with(|state| match ending {
            true => state.ending_definitions.insert(definition.to_owned()),
            false => state.ending_definitions.remove(definition),
        });
    }

    /// Counts the initial scan of the store as unfinished work until it has run.
    pub fn expect_initial_scan(&self) {
        self.with(|state| state.unfinished += 1);
    }

    /// Forgets what was unfinished before a restart of the task: the initial scan derives it from the store again.
    pub fn begin_initial_scan(&self) {
        self.with(|state| state.unfinished = 1);
    }

    /// Marks so many work items as no longer in progress: they are finished, or in the queue again.
    pub fn finish(&self, items: usize) {
        self.with(|state| state.unfinished -= items);
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

    /// The objects that name this uid as an owner.
    pub fn dependents(&self, uid: &str) -> Vec<ObjectKey> {
        let first = (uid.into(), ObjectKey { table: "".into(), key: "".into() });
        self.with(|state| {
            let named = state.dependents.range(first..).take_while(|(owner, _)| **owner == *uid);
            named.map(|(_, place)| place.clone()).collect()
        })
    }
}
