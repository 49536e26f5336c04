//! Schemas of the bindings, in the storage version and in the one before it.

use super::failover::failover;
use super::parts::{conditions, health, reason, reference_fields, resource_list};
use super::placement::{conflict_resolution, placement, preserve_resources_on_deletion, propagate_deps};
use super::requirements::requirement_fields;
use super::schema::{
    Described, Field, Schema, boolean, date_time, int32, int64, list_of, map_of, object, one_of, raw_object,
    string, strings,
};
use super::selectors::dispatching_fields;
use super::staged::{rollout_progress, suspended_by_rollout};
use super::{Version, age, annotation, column, condition};
use crate::binding::{FULLY_APPLIED, SCHEDULED};
use crate::records::{SHOWN_GENERATION, SHOWN_POLICY};

pub(super) const ABOUT: &str = "Binds one namespaced template to member clusters: the rules of its policy, \
                                the clusters that the scheduler chose, and what they report. Controllers \
                                write it from template and policy; change those instead.";

pub(super) const ABOUT_CLUSTER_SCOPED: &str = "Binds one template of a kind without namespaces to member \
                                               clusters: the rules of its policy, the clusters that the \
                                               scheduler chose, and what they report. Controllers write it \
                                               from template and policy; change those instead.";

const SPEC: &str = "What is delivered where.";
const STATUS: &str = "What the scheduler and the clusters report.";
const REPLICAS: &str = "Replicas that the template asks for. Each cluster gets all of them or a share, as \
                        the placement says; 0 for kinds without replicas.";

/// Karmada still serves this version through a conversion webhook. It is listed, because a control
/// plane may have stored objects in it, but not served, because writing it loses most of a binding.
pub(super) fn v1alpha1() -> Version {
    let counts = [
        ("replicas", int32().about(REPLICAS)),
        ("resourcePerReplicas", resource_list().about("How much of each resource one replica requests.")),
        ("resourceVersion", resource_version()),
    ];
    let resource = object(reference_fields().into_iter().chain(counts)).required();
    let spec = object([
        ("clusters", target_clusters().about(CLUSTERS)),
        ("resource", resource.about("Template that the binding is about.")),
    ]);
    let status = object([
        ("aggregatedStatus", list_of(object(aggregated_status_fields())).about(AGGREGATED_STATUS)),
        ("conditions", conditions().about(CONDITIONS)),
    ]);
    Version {
        name: "v1alpha1",
        served: false,
        stored: false,
        spec: spec.required().about(SPEC),
        status: Some(status.about(STATUS)),
        columns: Vec::new(),
    }
}

pub(super) fn v1alpha2() -> Version {
    let spec = object(wanted().into_iter().chain(rules()).chain(results()));
    Version::stored("v1alpha2", spec, SPEC).status(status(), STATUS).columns([
        condition("SCHEDULED", SCHEDULED),
        condition("FULLYAPPLIED", FULLY_APPLIED),
        annotation("POLICY", SHOWN_POLICY),
        annotation("GENERATION", SHOWN_GENERATION),
        column("STAGE", ".status.rollout.stage"),
        column("PHASE", ".status.rollout.phase"),
        age(),
    ])
}

/// What the template asks for.
fn wanted() -> [Field; 4] {
    let own = [
        ("resourceVersion", resource_version()),
        (
            "uid",
            string()
                .about("UID of the template. A template that is deleted and created again has another one."),
        ),
    ];
    let resource = object(reference_fields().into_iter().chain(own)).required();
    let namespace = ("namespace", string().about("Namespace of the pods."));
    let requirements = object(requirement_fields().into_iter().chain([namespace]));
    [
        (
            "components",
            list_of(component()).about(
                "Parts of the workload with pods of their own, for example workers and their leader. Only \
                 with the feature gate MultiplePodTemplatesScheduling.",
            ),
        ),
        (
            "replicaRequirements",
            requirements
                .about("What one replica needs. Absent: only the number of pods is limited in a cluster."),
        ),
        ("replicas", int32().about(REPLICAS)),
        ("resource", resource.about("Template that the binding is about.")),
    ]
}

fn resource_version() -> Described {
    string()
        .about("Version of the template that the binding is made from. Changes of its status do not move it.")
}

/// What the policy says, as far as it is in effect.
fn rules() -> [Field; 9] {
    [
        ("conflictResolution", conflict_resolution()),
        (
            "failover",
            failover().about(
                "How the template leaves clusters that fail, by the generation of its policy in effect.",
            ),
        ),
        (
            "placement",
            placement().about(
                "Which clusters may run the template, by the generation of its policy in effect. Absent \
                 where only other bindings require the object: then it goes where they go.",
            ),
        ),
        ("preserveResourcesOnDeletion", preserve_resources_on_deletion()),
        ("propagateDeps", propagate_deps()),
        ("schedulePriority", schedule_priority()),
        (
            "schedulerName",
            string().about(
                "Scheduler that chooses the clusters. Empty: default-scheduler, which is Longshore's own.",
            ),
        ),
        ("suspension", suspension()),
        ("workloadAffinityGroups", workload_affinity_groups()),
    ]
}

fn schedule_priority() -> Described {
    let priority = int32().default(0).about("Higher goes first; default 0.");
    object([("priority", priority)]).about(
        "Priority in the queue of the scheduler. Kept for Karmada; Longshore's scheduler does not order its \
         work by it.",
    )
}

fn suspension() -> Described {
    let scheduling = boolean().about(
        "True keeps the scheduler from choosing clusters; what runs stays. Default false. No policy sets it: \
         it is for people and programs that prepare a placement.",
    );
    let more = [("rollout", suspended_by_rollout()), ("scheduling", scheduling)];
    object(dispatching_fields().into_iter().chain(more)).about(
        "What is held back for this template: all that its policy and the rollout policies that select it \
         suspend, and what waits for its stage.",
    )
}

fn workload_affinity_groups() -> Described {
    object([
        (
            "affinityGroup",
            string().about("Group that stays together, as `key=value` of the template's label."),
        ),
        (
            "antiAffinityGroup",
            string().about("Group that stays apart, as `key=value` of the template's label."),
        ),
    ])
    .about(
        "Groups that placement.workloadAffinity puts the template into. Longshore's scheduler does not act \
         on them.",
    )
}

const CLUSTERS: &str = "Clusters that the scheduler chose, with the replicas that each of them gets. Each \
                        gets a Work with the object.";

/// What the scheduler, evictions and other bindings add.
fn results() -> [Field; 4] {
    let required_by = object([
        ("clusters", target_clusters().about("Clusters of that binding.")),
        ("name", string().required().about("Name of the binding.")),
        ("namespace", string().about("Namespace of the binding. Empty for a ClusterResourceBinding.")),
    ]);
    [
        ("clusters", target_clusters().about(CLUSTERS)),
        (
            "gracefulEvictionTasks",
            list_of(eviction_task()).about(
                "Clusters that the template is leaving. While a task stands, the scheduler does not choose \
                 its cluster again; when it goes, so does the old copy.",
            ),
        ),
        (
            "requiredBy",
            list_of(required_by).about(
                "Bindings that need this object as a dependency (propagateDeps). It goes to their clusters \
                 as well as to its own.",
            ),
        ),
        (
            "rescheduleTriggeredAt",
            date_time().about(
                "When a WorkloadRebalancer last asked for a fresh placement. The scheduler makes one, once, \
                 if this is later than status.lastScheduledTime.",
            ),
        ),
    ]
}

fn target_clusters() -> Schema {
    list_of(object([
        ("name", string().required().about("Name of the cluster.")),
        ("replicas", int32().about("Replicas in the cluster. Absent for kinds without replicas, and for 0.")),
    ]))
}

fn component() -> Schema {
    object([
        (
            "name",
            string()
                .length(0, 32)
                .required()
                .about("Name of the component, unique in the workload; 32 characters at most."),
        ),
        (
            "replicaRequirements",
            object(requirement_fields()).about("What one replica of the component needs."),
        ),
        ("replicas", int32().required().about("How many replicas the component has.")),
    ])
}

fn eviction_task() -> Schema {
    object(eviction().into_iter().chain(eviction_state()))
}

/// Which cluster is left, why and how.
fn eviction() -> [Field; 6] {
    let modes = ["Immediately", "Directly", "Graciously", "Gracefully", "Never"];
    [
        ("fromCluster", string().required().about("Cluster that the template leaves.")),
        (
            "gracePeriodSeconds",
            int32().about(
                "Longest time in seconds, from creationTimestamp on, that the old copy waits for the new \
                 ones to become healthy. Default 600.",
            ),
        ),
        ("message", string().length(0, 1024).about("Why the template leaves, for people.")),
        ("producer", string().required().about("Controller that evicts, for example `TaintManager`.")),
        (
            "purgeMode",
            one_of(&modes).about(
                "How the old copy goes: `Gracefully` after the new ones are healthy, `Directly` before they \
                 are created, `Never` by hand. `Graciously` and `Immediately` are older words for the first \
                 two.",
            ),
        ),
        (
            "reason",
            reason(32)
                .required()
                .about("Why the template leaves, for programs: `TaintUntolerated` or `ApplicationFailure`."),
        ),
    ]
}

/// What an eviction remembers.
fn eviction_state() -> [Field; 5] {
    [
        (
            "clustersBeforeFailover",
            strings().about(
                "Clusters that ran the template before. Kept for Karmada; Longshore does not fill it in.",
            ),
        ),
        ("creationTimestamp", date_time().about("When the eviction began. Filled in by the controller.")),
        (
            "preservedLabelState",
            map_of(string())
                .about("Labels for the new copy. Kept for Karmada; Longshore does not inject them."),
        ),
        ("replicas", int32().about("Replicas that the cluster had.")),
        (
            "suppressDeletion",
            boolean().about(
                "True keeps the old copy until a person decides; setting it to false lets the copy go now. \
                 Absent: health of the new copies and grace period decide.",
            ),
        ),
    ]
}

const AGGREGATED_STATUS: &str = "What each cluster reports of the object, sorted by the name of the cluster.";
const CONDITIONS: &str = "`Scheduled`: clusters are chosen. `FullyApplied`: all of them have the object. \
                          `LastCopyKept`: a copy stays although it should leave, because no other cluster \
                          fits. `RolledOut`: the last change has reached every cluster; only where changes \
                          spread in stages.";

fn status() -> Schema {
    let item = object(aggregated_status_fields().into_iter().chain([("health", health())]));
    object([
        ("aggregatedStatus", list_of(item).about(AGGREGATED_STATUS)),
        ("conditions", conditions().about(CONDITIONS)),
        ("lastScheduledTime", date_time().about("When the scheduler last chose clusters.")),
        ("rollout", rollout_progress()),
        (
            "schedulerObservedGeneration",
            int64().about(
                "Generation of the binding that was last scheduled. If it is lower than metadata.generation, \
                 the scheduler has not answered yet, or found no cluster.",
            ),
        ),
        (
            "schedulerObservingAffinityName",
            string().about(
                "Group of placement.clusterAffinities that is in use. Empty where there are no groups.",
            ),
        ),
    ])
}

fn aggregated_status_fields() -> [Field; 4] {
    [
        ("applied", boolean().about("True when the cluster has taken the object.")),
        ("appliedMessage", string().about("Why the cluster has not taken the object. Empty when it has.")),
        ("clusterName", string().required().about("Name of the cluster.")),
        (
            "status",
            raw_object()
                .about("Status of the object in the cluster, as far as it is collected for its kind."),
        ),
    ]
}
