//! Schemas of placement and failover, which policies and bindings share.

use super::parts::{cluster_affinity, cluster_affinity_fields, tolerations};
use super::schema::{Field, Schema, boolean, int32, int64, integer, list_of, object, one_of, string};

pub(super) fn placement() -> Schema {
    object([
        ("clusterAffinities", list_of(affinity_term())),
        ("clusterAffinity", cluster_affinity()),
        ("clusterTolerations", tolerations()),
        ("replicaScheduling", replica_scheduling()),
        ("spreadConstraints", list_of(spread_constraint())),
        ("workloadAffinity", object([("affinity", group_by_label()), ("antiAffinity", group_by_label())])),
    ])
}

fn affinity_term() -> Schema {
    let overflow = list_of(object(named_affinity()));
    object(named_affinity().chain([("overflowAffinities", overflow)]))
}

fn named_affinity() -> impl Iterator<Item = Field> {
    [("affinityName", string().length(1, 32).required())].into_iter().chain(cluster_affinity_fields())
}

fn replica_scheduling() -> Schema {
    let static_weight = object([
        ("targetCluster", cluster_affinity().required()),
        ("weight", int64().at_least(1).required()),
    ]);
    object([
        ("replicaDivisionPreference", one_of(&["Aggregated", "Weighted"])),
        ("replicaSchedulingType", one_of(&["Duplicated", "Divided"]).default("Divided")),
        (
            "weightPreference",
            object([
                ("dynamicWeight", one_of(&["AvailableReplicas"])),
                ("staticWeightList", list_of(static_weight)),
            ]),
        ),
    ])
}

fn spread_constraint() -> Schema {
    object([
        ("maxGroups", integer()),
        ("minGroups", integer()),
        ("spreadByField", one_of(&["cluster", "region", "zone", "provider"])),
        ("spreadByLabel", string()),
    ])
}

fn group_by_label() -> Schema {
    object([("groupByLabelKey", string().required())])
}

pub(super) fn failover() -> Schema {
    let application_modes = ["Directly", "Gracefully", "Never", "Immediately", "Graciously"];
    let decision_conditions = object([("tolerationSeconds", int32().default(300))]);
    object([
        (
            "application",
            object([
                ("decisionConditions", decision_conditions.required()),
                ("evictLastCopy", boolean()),
                ("gracePeriodSeconds", int32()),
                ("purgeMode", one_of(&application_modes).default("Gracefully")),
                ("statePreservation", state_preservation()),
            ]),
        ),
        (
            "cluster",
            object([
                ("evictLastCopy", boolean()),
                ("purgeMode", one_of(&["Directly", "Gracefully"]).default("Gracefully")),
                ("statePreservation", state_preservation()),
            ]),
        ),
    ])
}

fn state_preservation() -> Schema {
    let rule = object([("aliasLabelName", string().required()), ("jsonPath", string().required())]);
    object([("rules", list_of(rule).required())])
}

/// What happens to an object that is already in a member.
pub(super) fn conflict_resolution() -> Schema {
    one_of(&["Abort", "Overwrite"]).default("Abort")
}
