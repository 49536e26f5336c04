//! Controllers that run inside the API server, over one work queue: garbage collector, namespace and
//! CustomResourceDefinition termination, default objects of namespaces, quota status. Writes enqueue work items; one
//! task processes them. All work items can be derived from the store, so a restart forgets nothing.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use store::Range;
use supervise::{Backoff, catch, catch_call};
use tokio::time::Instant;

use crate::admission::{policies, quota};
use crate::authz::CLUSTER_ROLES;
use crate::engine::Engine;
use crate::registry::{DEFINITIONS, Resource};
use crate::storage::stored::{self, Outline};
use crate::work_queue::WorkItem;

mod bootstrap_roles;
mod garbage_collector;
mod internal;
mod kubernetes_service;
mod namespace_content;
mod namespaces;
mod policy_status;
mod quota_status;
mod role_aggregation;

/// How many work items are processed at once; their writes share syncs.
const CONCURRENT_MAX: usize = 64;
/// How long a failed work item waits before its retry.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// Upper bound of the back-off of a work item that keeps panicking.
const RETRY_AFTER_PANIC_MAX: Duration = Duration::from_secs(60);

/// The name of their task, in metrics and in the log.
pub(crate) const TASK: &str = "controllers";

/// The result of processing a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    Panicked,
}

impl Engine {
    /// Reads the store once and enqueues the work that earlier processes may have left unfinished.
    fn initial_scan(&self) {
        let registry = self.registry.load_full();
        for resource in registry.stored() {
            let Ok(page) = self.store.range(&resource.table, Range::default()) else { continue };
            for entry in &page.entries {
                if let Err(panic) = catch_call(|| self.scan_entry(resource, entry)) {
                    self.supervision.note_panic(TASK, &(&resource.table, &entry.key), &panic);
                }
            }
        }
    }

    fn scan_entry(&self, resource: &Resource, entry: &store::Entry) {
        match &*resource.table {
            "/namespaces" => self.work_queue.enqueue(WorkItem::Namespace(entry.key.to_string())),
            CLUSTER_ROLES => self.work_queue.enqueue(WorkItem::Roles),
            policies::TABLE => self.work_queue.enqueue(WorkItem::Policy(entry.key.to_string())),
            quota::TABLE => {
                let namespace = quota::namespace_of(&entry.key).unwrap_or_default();
                self.work_queue.enqueue(WorkItem::Quotas(namespace.to_owned()));
            }
            DEFINITIONS => {
                let ending = stored::outline(&entry.value).metadata.deletion_timestamp.is_some();
                self.work_queue.note_ending(&entry.key, ending);
                self.work_queue.enqueue(WorkItem::Definition(entry.key.to_string()));
            }
            _ => {}
        }
        // Most objects have neither; looking for the words is cheaper than reading them.
        let bytes = std::str::from_utf8(&entry.value).unwrap_or_default();
        if bytes.contains("\"ownerReferences\"") || bytes.contains("\"deletionTimestamp\"") {
            let outline: Outline = stored::outline(&entry.value);
            self.scan_ownership(resource, &entry.key, &outline);
        }
    }

    /// Processes the work queue until the server shuts down.
    pub async fn run_controllers(self: Arc<Self>) {
        self.work_queue.begin_initial_scan();
        self.initial_scan();
        self.work_queue.finish(1);
        let mut failed: Vec<WorkItem> = Vec::new();
        let mut retry_at = Instant::now();
        let mut backoff = Backoff::new(RETRY_AFTER, RETRY_AFTER_PANIC_MAX);
        loop {
            let items = self.work_queue.take();
            if items.is_empty() {
                tokio::select! {
                    biased;
                    () = self.shutdown.cancelled() => return,
                    () = self.work_queue.added() => {}
                    () = tokio::time::sleep_until(retry_at), if !failed.is_empty() => {
                        let count = failed.len();
                        failed.drain(..).for_each(|item| self.work_queue.enqueue(item));
                        self.work_queue.finish(count);
                    }
                }
                continue;
            }
            let (taken, waiting) = (items.len(), failed.len());
            let mut results = futures::stream::iter(items)
                .map(|item| async { (self.process(&item).await, item) })
                .buffer_unordered(CONCURRENT_MAX);
            let mut panicked = false;
            while let Some((outcome, item)) = results.next().await {
                panicked |= outcome == Outcome::Panicked;
                if outcome != Outcome::Done {
                    failed.push(item);
                }
            }
            if failed.len() > waiting {
                retry_at = Instant::now() + if panicked { backoff.failed() } else { RETRY_AFTER };
            }
            self.work_queue.finish(taken + waiting - failed.len());
        }
    }

    /// Processes a work item; a panic counts as a failure and is counted in the metrics.
    async fn process(&self, item: &WorkItem) -> Outcome {
        let tried = catch(async {
            self.supervision.inject(TASK, item);
            self.reconcile(item).await
        });
        match tried.await {
            Ok(true) => Outcome::Done,
            Ok(false) => Outcome::Failed,
            Err(panic) => {
                self.supervision.note_panic(TASK, item, &panic);
                Outcome::Panicked
            }
        }
    }

    /// Whether the work item is done for now.
    async fn reconcile(&self, item: &WorkItem) -> bool {
        let result = match item {
            WorkItem::Namespace(name) => self.reconcile_namespace(name).await,
            WorkItem::Definition(name) => self.reconcile_definition(name).await,
            WorkItem::Ownership(place) => self.reconcile_ownership(place).await,
            WorkItem::Roles => self.aggregate_roles().await.map(drop),
            WorkItem::Policy(name) => self.reconcile_policy(name).await,
            WorkItem::Quotas(namespace) => self.reconcile_quotas(namespace).await,
        };
        match result {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(?item, %error, "a work item failed and is retried");
                false
            }
        }
    }
}
