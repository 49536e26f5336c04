//! Changes of Clusters.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use api::{Cluster, ConditionStatus};
use decide::{BindingKey, conditions};
use kube::core::TypeMeta;

use crate::cache::WorkKey;
use crate::ctx::Ctx;
use crate::reflector::{Delta, Reflected as _};
use crate::scheduler;
use crate::start::Starter;

/// A change of a Cluster.
pub(in crate::start) struct Change {
    name: String,
    deleted: bool,
    /// Whether decisions may be others now.
    changed: bool,
}

/// Caches a Cluster.
pub(in crate::start) fn cache(ctx: &Ctx, _: &TypeMeta, delta: Delta) -> Option<Change> {
    match delta {
        Delta::Applied(object) => {
            let name = object.namespaced_name().name;
            let before = ctx.cache.cluster(&name).map(|cluster| Facts::of(&cluster));
            ctx.cache.put(*object);
            let after = ctx.cache.cluster(&name).map(|cluster| Facts::of(&cluster));
            Some(Change { name, deleted: false, changed: before != after })
        }
        Delta::Deleted(deleted) => {
            ctx.cache.remove_cluster(&deleted.name);
            Some(Change { name: deleted.name, deleted: true, changed: true })
        }
    }
}

/// What decisions read of a cluster: two states with the same facts lead to the same decisions.
#[derive(PartialEq)]
struct Facts {
    generation: i64,
    deleting: bool,
    labels: BTreeMap<String, String>,
    ready: Option<ConditionStatus>,
    /// A digest of the kinds it has.
    kinds: u64,
}

impl Facts {
    fn of(cluster: &Cluster) -> Self {
        let metadata = &cluster.metadata;
        let mut kinds = DefaultHasher::new();
        for one in &cluster.status.api_enablements {
            one.group_version.hash(&mut kinds);
            one.resources.iter().for_each(|resource| resource.kind.hash(&mut kinds));
        }
        Self {
            generation: metadata.generation,
            deleting: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels.clone(),
            ready: conditions::status(&cluster.status.conditions, api::cluster::READY),
            kinds: kinds.finish(),
        }
    }
}

/// Starts what a new member needs, and stops what runs for a deleted one.
pub(in crate::start) fn start_or_stop_member(starter: &Starter, change: &Change) {
    match (change.deleted, change.changed) {
        (true, _) => starter.stop_member(&change.name),
        (false, true) => starter.start_member(&change.name, Vec::new()),
        (false, false) => {}
    }
}

/// The cluster itself, unless it was deleted.
pub(in crate::start) fn cluster_if_applied(_: &Ctx, change: &Change) -> Vec<String> {
    (!change.deleted).then(|| change.name.clone()).into_iter().collect()
}

/// The cluster itself.
pub(in crate::start) fn cluster_if_changed(_: &Ctx, change: &Change) -> Vec<String> {
    change.changed.then(|| change.name.clone()).into_iter().collect()
}

/// Every binding.
pub(in crate::start) fn all_bindings_if_changed(ctx: &Ctx, change: &Change) -> Vec<BindingKey> {
    if change.changed { ctx.cache.binding_keys() } else { Vec::new() }
}

/// Every binding, if there are override policies: their rules may select clusters by label. Otherwise those that wait for
/// reports (M1) or for their stage: which stage a cluster belongs to, and whether it passes, may depend on it (G3, G8).
pub(in crate::start) fn overridden_or_moving_bindings_if_changed(
    ctx: &Ctx,
    change: &Change,
) -> Vec<BindingKey> {
    let overridden = !ctx.cache.snapshot().overrides.is_empty();
    let mut all = all_bindings_if_changed(ctx, change);
    all.retain(|key| overridden || ctx.cache.moving().has(key));
    all
}

/// The Works for the cluster.
pub(in crate::start) fn works_if_changed(ctx: &Ctx, change: &Change) -> Vec<WorkKey> {
    if change.changed { ctx.cache.works().in_cluster(&change.name) } else { Vec::new() }
}

/// Every namespace.
pub(in crate::start) fn all_namespaces_if_changed(ctx: &Ctx, change: &Change) -> Vec<String> {
    if change.changed { super::all_namespaces(ctx) } else { Vec::new() }
}

/// Counts every binding, since all of them are enqueued.
pub(in crate::start) fn count_incoming(ctx: &Ctx, change: &Change) {
    let bindings = all_bindings_if_changed(ctx, change);
    bindings.iter().for_each(|_| scheduler::count_incoming(ctx, "ClusterChanged"));
}
