//! Which queue a change wakes, with which keys, and how soon. The rows of `watches` are made of these.

use std::time::Duration;

use decide::{BindingKey, PolicyKey, TemplateKey};

use super::Starter;
use crate::cache::WorkKey;
use crate::ctx::Ctx;
use crate::runtime::{Key, Priority, Queue};

/// How soon a key is due.
#[derive(Clone, Copy)]
pub(super) enum When {
    /// Now, ahead of resyncs.
    User,
    /// Now, after the keys of users.
    Resync,
    /// After the debounce interval of the queue.
    Debounced,
    /// After at least this debounce interval.
    DebouncedFor(Duration),
    /// After a fixed time.
    After(Duration),
}

/// The keys that a change affects.
pub(super) type Keys<Change, Key> = fn(&Ctx, &Change) -> Vec<Key>;

/// What a change wakes; for a queue, it is named after the queue's controller.
pub(super) enum Wake<Change> {
    Detector(Keys<Change, TemplateKey>, When),
    Scheduler(Keys<Change, BindingKey>, When),
    Binding(Keys<Change, BindingKey>, When),
    BindingStatus(Keys<Change, BindingKey>, When),
    Execution(Keys<Change, WorkKey>, When),
    Cluster(Keys<Change, String>, When),
    ClusterStatus(Keys<Change, String>, When),
    Clients(Keys<Change, String>, When),
    Credentials(Keys<Change, String>, When),
    Policies(Keys<Change, PolicyKey>, When),
    Namespaces(Keys<Change, String>, When),
    Dependencies(Keys<Change, BindingKey>, When),
    Attachments(Keys<Change, TemplateKey>, When),
    Failover(Keys<Change, BindingKey>, When),
    Taints(Keys<Change, String>, When),
    Rebalancer(Keys<Change, String>, When),
    PolicyStatus(Keys<Change, PolicyKey>, When),
    /// The discovery of template kinds.
    Discovery,
    /// The workers and watches of a member, which are started or stopped.
    MemberTasks(fn(&Starter, &Change)),
    /// A counter.
    Metric(fn(&Ctx, &Change)),
}

impl<Change> Wake<Change> {
    /// Enqueues the keys that the change affects.
    pub(super) fn fire(&self, starter: &Starter, change: &Change) {
        let ctx = &starter.ctx;
        let queues = &ctx.queues;
        match self {
            Self::Detector(keys, when) => enqueue(&queues.detector, keys(ctx, change), *when),
            Self::Scheduler(keys, when) => enqueue(&queues.scheduler, keys(ctx, change), *when),
            Self::Binding(keys, when) => enqueue(&queues.binding, keys(ctx, change), *when),
            Self::BindingStatus(keys, when) => enqueue(&queues.binding_status, keys(ctx, change), *when),
            Self::Execution(keys, when) => {
                keys(ctx, change).into_iter().for_each(|key| enqueue_work(ctx, key, *when));
            }
            Self::Cluster(keys, when) => enqueue(&queues.cluster, keys(ctx, change), *when),
            Self::ClusterStatus(keys, when) => enqueue(&queues.cluster_status, keys(ctx, change), *when),
            Self::Clients(keys, when) => enqueue(&queues.clients, keys(ctx, change), *when),
            Self::Credentials(keys, when) => enqueue(&queues.credentials, keys(ctx, change), *when),
            Self::Policies(keys, when) => enqueue(&queues.policies, keys(ctx, change), *when),
            Self::Namespaces(keys, when) => enqueue(&queues.namespaces, keys(ctx, change), *when),
            Self::Dependencies(keys, when) => enqueue(&queues.dependencies, keys(ctx, change), *when),
            Self::Attachments(keys, when) => enqueue(&queues.attachments, keys(ctx, change), *when),
            Self::Failover(keys, when) => enqueue(&queues.failover, keys(ctx, change), *when),
            Self::Taints(keys, when) => enqueue(&queues.taints, keys(ctx, change), *when),
            Self::Rebalancer(keys, when) => enqueue(&queues.rebalancer, keys(ctx, change), *when),
            Self::PolicyStatus(keys, when) => enqueue(&queues.policy_status, keys(ctx, change), *when),
            Self::Discovery => starter.definitions.notify_one(),
            Self::MemberTasks(start_or_stop) => start_or_stop(starter, change),
            Self::Metric(count) => count(ctx, change),
        }
    }
}

fn enqueue<K: Key>(queue: &Queue<K>, keys: Vec<K>, when: When) {
    for key in keys {
        match when {
            When::User => queue.add(key, Priority::User),
            When::Resync => queue.add(key, Priority::Resync),
            When::Debounced => queue.add_debounced(key),
            When::DebouncedFor(interval) => queue.add_debounced_for(key, interval),
            When::After(delay) => queue.add_after(key, delay),
        }
    }
}

/// Each member has a queue of its own.
fn enqueue_work(ctx: &Ctx, key: WorkKey, when: When) {
    enqueue(&ctx.queues.execution.of(&key.cluster), vec![key], when);
}
