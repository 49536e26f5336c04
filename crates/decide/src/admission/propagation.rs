//! Validation of PropagationPolicies, ClusterPropagationPolicies and rollout policies.

use api::propagation::{DEFAULT_SCHEDULER, Preemption};
use api::{PropagationPolicy, RolloutPolicy, Scope, Suspension, kinds, labels};

use super::selectors::Owner;
use super::{Findings, Review, failover, placement, rollout, selectors};

/// A propagation policy of either scope.
pub(super) fn check(
    review: &Review<'_>,
    policy: &PropagationPolicy,
    old: Option<&PropagationPolicy>,
    findings: &mut Findings,
) {
    let spec = &policy.spec;
    let cluster_scoped = policy.kind == kinds::CLUSTER_PROPAGATION_POLICY.kind;
    let owner = owner(cluster_scoped, &policy.metadata.namespace);
    identity(policy, old, cluster_scoped, findings);
    selectors::check(owner, &spec.resource_selectors, &spec.exclude_resource_selectors, findings);
    if spec.preemption() == Preemption::Always {
        selectors::bounded(review, owner, &spec.resource_selectors, findings);
        preemption_warnings(review, findings);
    }
    placement::check(&spec.placement, findings);
    if let Some(wanted) = &spec.failover {
        failover::check(wanted, spec.propagate_deps, findings);
    }
    suspension(spec.suspension.as_ref(), findings);
    let of = rollout::Of::Propagation { propagate_deps: spec.propagate_deps };
    rollout::check(spec.rollout_strategy.as_ref(), of, findings);
    out_of_reach(review, policy, owner, findings);
}

/// A rollout policy of either scope (U7).
pub(super) fn check_rollout(
    _: &Review<'_>,
    policy: &RolloutPolicy,
    _: Option<&RolloutPolicy>,
    findings: &mut Findings,
) {
    let spec = &policy.spec;
    let owner = owner(policy.kind == kinds::CLUSTER_ROLLOUT_POLICY.kind, &policy.metadata.namespace);
    selectors::check(owner, &spec.resource_selectors, &spec.exclude_resource_selectors, findings);
    suspension(spec.suspension.as_ref(), findings);
    rollout::check(spec.rollout_strategy.as_ref(), rollout::Of::Rollout, findings);
}

fn owner(cluster_scoped: bool, namespace: &str) -> Owner<'_> {
    match cluster_scoped {
        true => Owner { scope: Scope::Cluster, namespace: "" },
        false => Owner { scope: Scope::Namespaced, namespace },
    }
}

/// What must not change while a policy lives.
fn identity(
    policy: &PropagationPolicy,
    old: Option<&PropagationPolicy>,
    cluster_scoped: bool,
    findings: &mut Findings,
) {
    let label = match cluster_scoped {
        true => labels::CLUSTER_PROPAGATION_POLICY_PERMANENT_ID,
        false => labels::PROPAGATION_POLICY_PERMANENT_ID,
    };
    let id = policy.metadata.label(label);
    if id.is_empty() {
        findings.refuse(
            "metadata.labels",
            format!("the label {label} is required; the system sets it at creation"),
        );
    }
    let Some(old) = old else { return };
    let scheduler = |policy: &PropagationPolicy| match policy.spec.scheduler_name.as_str() {
        "" => DEFAULT_SCHEDULER.to_owned(),
        name => name.to_owned(),
    };
    let before = scheduler(old);
    if before != scheduler(policy) {
        findings.refuse("spec.schedulerName", format!("must not be updated, keep {before:?}"));
    }
    let before = old.metadata.label(label);
    if !before.is_empty() && !id.is_empty() && before != id {
        findings.refuse("metadata.labels", format!("the label {label} must not be updated, keep {before:?}"));
    }
}

fn preemption_warnings(review: &Review<'_>, findings: &mut Findings) {
    if review.gates.static_policy {
        findings.warn("preemption: Always does nothing while the feature gate StaticPolicy is on (S5)");
    } else if !review.gates.preemption {
        findings.warn(
            "preemption: Always does nothing while the feature gate PropagationPolicyPreemption is off (P1)",
        );
    }
}

/// U1: holding everything and holding some clusters contradict each other.
fn suspension(written: Option<&Suspension>, findings: &mut Findings) {
    let Some(mut wanted) = written.cloned() else { return };
    wanted.normalise();
    let some = wanted.dispatching_on_clusters.is_some_and(|on| !on.cluster_names.is_empty());
    if wanted.dispatching == Some(true) && some {
        findings.refuse(
            "spec.suspension",
            "dispatching: true holds every cluster and cannot stand beside dispatchingOnClusters.clusterNames; keep one of them",
        );
    }
}

/// A namespaced policy never matches a kind without namespace; users wonder about it (karmada 4039).
fn out_of_reach(review: &Review<'_>, policy: &PropagationPolicy, owner: Owner<'_>, findings: &mut Findings) {
    let unreachable = policy.spec.resource_selectors.iter().filter(|selector| {
        owner.scope == Scope::Namespaced && (review.is_cluster_scoped)(&selector.api_version, &selector.kind)
    });
    for selector in unreachable {
        findings.warn(format!(
            "{} lives in no namespace, so a PropagationPolicy never matches it; use a ClusterPropagationPolicy",
            selector.kind
        ));
    }
}
