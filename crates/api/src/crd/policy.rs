//! Schema of the propagation policies.

use super::failover::failover;
use super::parts::conditions;
use super::placement::{conflict_resolution, placement, preserve_resources_on_deletion, propagate_deps};
use super::schema::{Field, Schema, boolean, int32, int64, object, one_of, string, strings};
use super::selectors::{exclude_resource_selectors, required_selectors, suspension};
use super::staged::{rollout_counts, rollout_strategy};
use super::{Version, age, column, count, wide};
use crate::propagation::DEFAULT_SCHEDULER;

pub(super) const ABOUT: &str = "Delivers templates of its own namespace to member clusters: it claims the \
                                templates that it selects, and a ResourceBinding says for each of them where \
                                it runs. Of the policies that match a template, PropagationPolicies go \
                                before ClusterPropagationPolicies; then the higher priority, the more exact \
                                selector and the first name decide.";

pub(super) const ABOUT_CLUSTER_SCOPED: &str = "Delivers templates of all namespaces, and of kinds without \
                                               namespaces, to member clusters: it claims the templates that \
                                               it selects, and a binding says for each of them where it \
                                               runs. A PropagationPolicy that matches the same template goes \
                                               first, whatever the priorities.";

pub(super) fn propagation() -> Version {
    let spec = object(relationship().into_iter().chain(activation()).chain(delivery()));
    Version::stored(
        "v1alpha1",
        spec,
        "Which templates the policy claims, where they run, and when its changes act.",
    )
    .status(policy_status(), "How the templates that the policy claims follow it.")
    .columns([
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

/// Which templates are its own.
fn relationship() -> [Field; 4] {
    [
        (
            "excludeResourceSelectors",
            exclude_resource_selectors(
                "A template that becomes excluded loses this policy's claim at once and is matched with \
                 other policies.",
            ),
        ),
        (
            "preemption",
            one_of(&["Always", "Never"]).default("Never").about(
                "Whether the policy takes templates that other policies claim: `Never` (default) or \
                 `Always`. With Always, a PropagationPolicy takes from PropagationPolicies of lower priority \
                 and from all ClusterPropagationPolicies, a ClusterPropagationPolicy from those of lower \
                 priority; equal priority takes nothing. Each selector of a ClusterPropagationPolicy must \
                 then have a name or a namespace. The feature gates StaticPolicy=true and \
                 PropagationPolicyPreemption=false switch it off.",
            ),
        ),
        (
            "priority",
            int32().default(0).about(
                "The higher priority claims a template that several policies of this kind match; default 0, \
                 negative is allowed. What another policy has claimed already stays with it unless \
                 preemption is Always.",
            ),
        ),
        ("resourceSelectors", required_selectors()),
    ]
}

/// When it acts.
fn activation() -> [Field; 4] {
    [
        (
            "activationPreference",
            one_of(&["Lazy"]).about(
                "When changes of the policy reach the templates that it claims. Absent: at once. `Lazy`: \
                 claims follow at once, everything else waits for the next change of the template or for \
                 `longshore reconcile`; a template older than the policy is not delivered before that. \
                 Suspension never waits, and removing Lazy activates all that waits. With the feature gate \
                 StaticPolicy the changes of every policy wait.",
            ),
        ),
        (
            "dependentOverrides",
            strings().about(
                "Names of override policies that must exist before the policy acts: OverridePolicies of its \
                 namespace, for a ClusterPropagationPolicy ClusterOverridePolicies. Until then bindings stay \
                 as they are.",
            ),
        ),
        ("rolloutStrategy", rollout_strategy()),
        ("suspension", suspension()),
    ]
}

/// What becomes of its templates.
fn delivery() -> [Field; 8] {
    [
        ("association", boolean().about("Deprecated and ignored. Use propagateDeps.")),
        ("conflictResolution", conflict_resolution()),
        (
            "failover",
            failover().about(
                "How templates leave clusters that fail. What is suspended is not moved, and the last copy \
                 stays where no other cluster fits.",
            ),
        ),
        (
            "placement",
            placement().about(
                "Which clusters run the templates, and how many replicas each of them gets. Absent: every \
                 cluster gets all of it.",
            ),
        ),
        ("preserveResourcesOnDeletion", preserve_resources_on_deletion()),
        ("propagateDeps", propagate_deps()),
        ("schedulePriority", schedule_priority().about(
            "Priority of the bindings in the queue of the scheduler. Kept for Karmada; Longshore's scheduler \
             does not order its work by it.",
        )),
        (
            "schedulerName",
            string().default(DEFAULT_SCHEDULER).about(
                "Scheduler that chooses the clusters; `default-scheduler` (default) is Longshore's own, \
                 which leaves bindings with another name alone. Cannot be changed after creation.",
            ),
        ),
    ]
}

fn schedule_priority() -> Schema {
    object([
        ("priorityClassName", string().required().about("Name of the priority class.")),
        (
            "priorityClassSource",
            one_of(&["KubePriorityClass"]).required().about(
                "Where the class is looked up: `KubePriorityClass`, the PriorityClasses of the control \
                 plane.",
            ),
        ),
    ])
}

fn policy_status() -> Schema {
    let templates = object([
        ("claimed", int32().required().about("Templates that this policy claims.")),
        (
            "upToDate",
            int32().required().about("Claimed templates that are delivered as the policy says now."),
        ),
        (
            "pendingActivation",
            int32().required().about(
                "Claimed templates that follow an older generation or another policy, as a rule because of \
                 Lazy or StaticPolicy, until the template changes or `longshore reconcile` is called.",
            ),
        ),
        (
            "suspended",
            int32().required().about("Claimed templates that are suspended in at least one cluster."),
        ),
        ("preemptedFrom", int32().required().about("Claimed templates that it took from another policy.")),
        ("preemptedBy", int32().required().about("Templates that another policy took from it.")),
    ]);
    object([
        (
            "observedGeneration",
            int64().about("Generation of the policy that the rest of the status is about."),
        ),
        ("templates", templates.about("How many templates follow the policy, and how.")),
        ("rollout", rollout_counts()),
        (
            "conditions",
            conditions().keyed_by("type").about(
                "`InEffect`: every claimed template follows the policy as it is now. `Dispatching`: none of \
                 them is suspended. `RolledOut`: the last change of each has reached all its clusters; only \
                 where changes spread in stages.",
            ),
        ),
    ])
}
