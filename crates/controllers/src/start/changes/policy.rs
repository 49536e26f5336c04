//! Changes of policies: propagation, override, rollout and cluster taint policies.

use api::{ClusterTaintPolicy, PropagationPolicy};
use decide::{Policy, PolicyKey};
use kube::core::TypeMeta;
use serde_json::Value;

use super::{SnapshotChange, cache_in_snapshot};
use crate::ctx::Ctx;
use crate::reflector::{Delta, NamespacedName, Reflected as _};

/// Caches a PropagationPolicy or ClusterPropagationPolicy. A change of nothing but its status, which we write ourselves,
/// must not enqueue every template again.
pub(in crate::start) fn cache_propagation_policy(
    ctx: &Ctx,
    types: &TypeMeta,
    delta: Delta,
) -> Option<SnapshotChange> {
    match &delta {
        Delta::Applied(object) if is_known(ctx, types, object) => None,
        _ => cache_policy(ctx, types, delta),
    }
}

/// Caches any policy that decisions about templates depend on.
pub(in crate::start) fn cache_policy(ctx: &Ctx, types: &TypeMeta, delta: Delta) -> Option<SnapshotChange> {
    Some(cache_in_snapshot(ctx, types, delta))
}

/// Caches a ClusterTaintPolicy. Deleting one removes no taint, so that wakes no controller.
pub(in crate::start) fn cache_taint_policy(
    ctx: &Ctx,
    _: &TypeMeta,
    delta: Delta<ClusterTaintPolicy>,
) -> Option<()> {
    match delta {
        Delta::Applied(policy) => {
            ctx.cache.put_taint_policy(*policy);
            Some(())
        }
        Delta::Deleted(deleted) => {
            ctx.cache.remove_taint_policy(&deleted.name);
            None
        }
    }
}

/// The policy itself.
pub(in crate::start) fn policy(_: &Ctx, change: &SnapshotChange) -> Vec<PolicyKey> {
    vec![policy_key(change.name.clone())]
}

/// Every namespace: a ClusterOverridePolicy may change what members receive of it.
pub(in crate::start) fn all_namespaces(ctx: &Ctx, _: &SnapshotChange) -> Vec<String> {
    super::all_namespaces(ctx)
}

/// Every cluster.
pub(in crate::start) fn all_clusters(ctx: &Ctx, (): &()) -> Vec<String> {
    ctx.cache.snapshot().clusters.iter().map(|cluster| cluster.metadata.name.clone()).collect()
}

fn policy_key(NamespacedName { namespace, name }: NamespacedName) -> PolicyKey {
    PolicyKey { namespace, name }
}

/// Whether the cache has this policy already, apart from its status.
fn is_known(ctx: &Ctx, types: &TypeMeta, object: &Value) -> bool {
    let Ok(read) = serde_json::from_value::<PropagationPolicy>(object.clone()) else { return false };
    let now = Policy::from(&PropagationPolicy { kind: types.kind.clone(), ..read });
    let snapshot = ctx.cache.snapshot();
    snapshot.policies.get(&policy_key(object.namespaced_name())).is_some_and(|known| {
        // Admission judges by the budget in the cache.
        let same_budget = known.budget == now.budget;
        known.mark() == now.mark() && known.deleting == now.deleting && known.id() == now.id() && same_budget
    })
}
