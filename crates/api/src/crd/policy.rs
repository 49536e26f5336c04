//! Schemas of the propagation, rollout and taint policies.

use super::parts::{
    cluster_affinity, conditions, exclude_resource_selectors, resource_selectors, suspended_clusters,
};
use super::placement::{conflict_resolution, failover, placement};
use super::schema::{Schema, boolean, int32, int64, list_of, object, one_of, string, strings};
use super::{Version, age, column, count, wide};
use crate::propagation::DEFAULT_SCHEDULER;

pub(super) fn propagation() -> Version {
    let schedule_priority = object([
        ("priorityClassName", string().required()),
        ("priorityClassSource", one_of(&["KubePriorityClass"]).required()),
    ]);
    let spec = object([
        ("activationPreference", one_of(&["Lazy"])),
        ("association", boolean()),
        ("conflictResolution", conflict_resolution()),
        ("dependentOverrides", strings()),
        ("excludeResourceSelectors", exclude_resource_selectors()),
        ("failover", failover()),
        ("placement", placement()),
        ("preemption", one_of(&["Always", "Never"]).default("Never")),
        ("preserveResourcesOnDeletion", boolean()),
        ("priority", int32().default(0)),
        ("propagateDeps", boolean()),
        ("resourceSelectors", resource_selectors().not_empty().required()),
        ("schedulePriority", schedule_priority),
        ("schedulerName", string().default(DEFAULT_SCHEDULER)),
        ("suspension", suspension()),
    ]);
    Version::stored("v1alpha1", spec).status(policy_status()).columns([
        column("CONFLICT-RESOLUTION", ".spec.conflictResolution"),
        column("PRIORITY", ".spec.priority"),
        count("CLAIMED", ".status.templates.claimed"),
        count("PENDING", ".status.templates.pendingActivation"),
        count("SUSPENDED", ".status.templates.suspended"),
        wide(column("ACTIVATION", ".spec.activationPreference")),
        wide(column("PREEMPTION", ".spec.preemption")),
        wide(count("UP-TO-DATE", ".status.templates.upToDate")),
        wide(count("PREEMPTED-FROM", ".status.templates.preemptedFrom")),
        wide(count("PREEMPTED-BY", ".status.templates.preemptedBy")),
        age(),
    ])
}

/// Both spellings; admission turns the second pair into the first (U1).
fn suspension() -> Schema {
    object([
        ("dispatching", boolean()),
        ("dispatchingOnClusters", suspended_clusters()),
        ("suspendDispatching", boolean().about("Another name for dispatching.")),
        (
            "suspendDispatchingOnClusters",
            suspended_clusters().about("Another name for dispatchingOnClusters."),
        ),
    ])
}

fn policy_status() -> Schema {
    let templates = object([
        ("claimed", int32().required().about("Claimed by this policy.")),
        ("upToDate", int32().required().about("Claimed, and propagated as the policy says now.")),
        (
            "pendingActivation",
            int32().required().about("Claimed, but propagated by older rules until the template changes."),
        ),
        ("suspended", int32().required().about("Claimed, and held back in at least one cluster.")),
        ("preemptedFrom", int32().required().about("Claimed by taking it from another policy.")),
        ("preemptedBy", int32().required().about("Taken from this policy by another one.")),
    ]);
    object([
        ("observedGeneration", int64()),
        ("templates", templates.about("How the templates of this policy fare.")),
        ("conditions", conditions().keyed_by("type")),
    ])
}

pub(super) fn rollout() -> Version {
    let spec = object([
        ("excludeResourceSelectors", exclude_resource_selectors()),
        ("resourceSelectors", resource_selectors().not_empty().required()),
        ("suspension", suspension()),
    ]);
    let status = object([
        ("observedGeneration", int64()),
        ("suspended", int32().about("How many templates this policy holds back.")),
        ("conditions", conditions().keyed_by("type")),
    ]);
    Version::stored("v1alpha1", spec).status(status).columns([count("SUSPENDED", ".status.suspended"), age()])
}

pub(super) fn cluster_taint() -> Version {
    let match_condition = object([
        ("conditionType", string().required()),
        ("operator", string().required()),
        ("statusValues", strings().required()),
    ]);
    let taint = object([("effect", string().required()), ("key", string().required()), ("value", string())]);
    let spec = object([
        ("addOnConditions", list_of(match_condition.clone())),
        ("removeOnConditions", list_of(match_condition)),
        ("taints", list_of(taint).not_empty().required()),
        ("targetClusters", cluster_affinity()),
    ]);
    Version::stored("v1alpha1", spec)
}
