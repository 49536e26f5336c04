//! Schemas of the bindings, in the version that is stored and in the one that came before.

use super::parts::{
    conditions, health, reason, reference_fields, requirement, resource_list, suspended_clusters, tolerations,
};
use super::placement::{conflict_resolution, failover, placement};
use super::schema::{
    Field, Schema, boolean, date_time, int32, int64, list_of, map_of, object, one_of, raw_object, string,
    strings,
};
use super::{Version, age, annotation, condition};
use crate::binding::{FULLY_APPLIED, SCHEDULED};
use crate::records::{SHOWN_GENERATION, SHOWN_POLICY};

/// Karmada still serves this version through a conversion webhook. It is listed, because a control
/// plane may have stored objects in it, but not served, because writing it loses most of a binding.
pub(super) fn v1alpha1() -> Version {
    let counts =
        [("replicas", int32()), ("resourcePerReplicas", resource_list()), ("resourceVersion", string())];
    let resource = object(reference_fields().into_iter().chain(counts));
    Version {
        name: "v1alpha1",
        served: false,
        stored: false,
        spec: object([("clusters", target_clusters()), ("resource", resource.required())]),
        status: Some(object([
            ("aggregatedStatus", list_of(object(aggregated_status_fields()))),
            ("conditions", conditions()),
        ])),
        columns: Vec::new(),
    }
}

pub(super) fn v1alpha2() -> Version {
    Version::stored("v1alpha2", spec()).status(status()).columns([
        condition("SCHEDULED", SCHEDULED),
        condition("FULLYAPPLIED", FULLY_APPLIED),
        annotation("POLICY", SHOWN_POLICY),
        annotation("GENERATION", SHOWN_GENERATION),
        age(),
    ])
}

fn spec() -> Schema {
    let resource =
        object(reference_fields().into_iter().chain([("resourceVersion", string()), ("uid", string())]));
    let required_by =
        object([("clusters", target_clusters()), ("name", string().required()), ("namespace", string())]);
    let suspension = object([
        ("dispatching", boolean()),
        ("dispatchingOnClusters", suspended_clusters()),
        ("scheduling", boolean()),
    ]);
    object([
        ("clusters", target_clusters()),
        ("components", list_of(component())),
        ("conflictResolution", conflict_resolution()),
        ("failover", failover()),
        ("gracefulEvictionTasks", list_of(eviction_task())),
        ("placement", placement()),
        ("preserveResourcesOnDeletion", boolean()),
        ("propagateDeps", boolean()),
        ("replicaRequirements", object(requirement_fields().into_iter().chain([("namespace", string())]))),
        ("replicas", int32()),
        ("requiredBy", list_of(required_by)),
        ("rescheduleTriggeredAt", date_time()),
        ("resource", resource.required()),
        ("schedulePriority", object([("priority", int32().default(0))])),
        ("schedulerName", string()),
        ("suspension", suspension),
        ("workloadAffinityGroups", object([("affinityGroup", string()), ("antiAffinityGroup", string())])),
    ])
}

fn target_clusters() -> Schema {
    list_of(object([("name", string().required()), ("replicas", int32())]))
}

fn component() -> Schema {
    object([
        ("name", string().length(0, 32).required()),
        ("replicaRequirements", object(requirement_fields())),
        ("replicas", int32().required()),
    ])
}

fn requirement_fields() -> [Field; 3] {
    let requirements = || list_of(requirement()).atomic_list();
    let term = object([("matchExpressions", requirements()), ("matchFields", requirements())]).atomic_map();
    let node_affinity = object([("nodeSelectorTerms", list_of(term).atomic_list().required())]).atomic_map();
    let node_claim = object([
        ("hardNodeAffinity", node_affinity),
        ("nodeSelector", map_of(string())),
        ("tolerations", tolerations()),
    ]);
    [("nodeClaim", node_claim), ("priorityClassName", string()), ("resourceRequest", resource_list())]
}

fn eviction_task() -> Schema {
    let modes = ["Immediately", "Directly", "Graciously", "Gracefully", "Never"];
    object([
        ("clustersBeforeFailover", strings()),
        ("creationTimestamp", date_time()),
        ("fromCluster", string().required()),
        ("gracePeriodSeconds", int32()),
        ("message", string().length(0, 1024)),
        ("preservedLabelState", map_of(string())),
        ("producer", string().required()),
        ("purgeMode", one_of(&modes)),
        ("reason", reason(32).required()),
        ("replicas", int32()),
        ("suppressDeletion", boolean()),
    ])
}

fn status() -> Schema {
    let item = object(aggregated_status_fields().into_iter().chain([("health", health())]));
    object([
        ("aggregatedStatus", list_of(item)),
        ("conditions", conditions()),
        ("lastScheduledTime", date_time()),
        ("schedulerObservedGeneration", int64()),
        ("schedulerObservingAffinityName", string()),
    ])
}

fn aggregated_status_fields() -> [Field; 4] {
    [
        ("applied", boolean()),
        ("appliedMessage", string()),
        ("clusterName", string().required()),
        ("status", raw_object()),
    ]
}
