//! Schemas of the placement, which policies and bindings share.

use super::parts::{cluster_affinity, cluster_affinity_fields, tolerations};
use super::schema::{Described, Field, Schema, boolean, int64, integer, list_of, object, one_of, string};

pub(super) fn placement() -> Schema {
    object([
        (
            "clusterAffinities",
            list_of(affinity_term()).about(
                "Groups of clusters, tried in this order until a template fits into one. It moves on when \
                 its group no longer fits, and never back to an earlier group by itself. Cannot be combined \
                 with clusterAffinity.",
            ),
        ),
        (
            "clusterAffinity",
            cluster_affinity().about(
                "Clusters that may run the templates: those that match every part that is set. Absent: every \
                 cluster, unless clusterAffinities is set.",
            ),
        ),
        (
            "clusterTolerations",
            tolerations().about(
                "Taints of clusters that the templates tolerate. An untolerated `NoSchedule` taint keeps new \
                 copies away and leaves those that run; an untolerated `NoExecute` taint evicts those, too. \
                 The operators `Lt` and `Gt` are refused.",
            ),
        ),
        (
            "replicaScheduling",
            replica_scheduling().about(
                "How replicas reach the chosen clusters. Absent: each cluster gets all of them (Duplicated). \
                 An empty object is something else: Divided by equal weights.",
            ),
        ),
        (
            "spreadConstraints",
            list_of(spread_constraint()).about(
                "How many clusters, regions, zones or providers a template is spread over. One item by \
                 `cluster` must be among them. Ignored where replicas are divided by static weights.",
            ),
        ),
        ("workloadAffinity", workload_affinity()),
    ])
}

fn affinity_term() -> Schema {
    let overflow = list_of(object(named_affinity())).about(
        "Further groups that take, in this order, the replicas for which the clusters of this group have no \
         room. Only with replicaDivisionPreference Aggregated or dynamicWeight.",
    );
    object(named_affinity().chain([("overflowAffinities", overflow)]))
}

fn named_affinity() -> impl Iterator<Item = Field> {
    let name = string().length(1, 32).required().about(
        "Name of the group: 1 to 32 characters, unique in this placement. The binding's status names the \
         group in use.",
    );
    [("affinityName", name)].into_iter().chain(cluster_affinity_fields())
}

fn replica_scheduling() -> Schema {
    object([
        (
            "replicaDivisionPreference",
            one_of(&["Aggregated", "Weighted"]).about(
                "How Divided replicas are shared out: `Weighted` (default) by weightPreference, `Aggregated` \
                 into as few clusters as have room for them.",
            ),
        ),
        (
            "replicaSchedulingType",
            one_of(&["Duplicated", "Divided"]).default("Divided").about(
                "`Divided` (default) shares the replicas out among the clusters; `Duplicated` gives each \
                 cluster all of them. Duplicated templates follow every change of the clusters. Divided ones \
                 stay until placement or replicas change, a cluster leaves or a WorkloadRebalancer asks.",
            ),
        ),
        (
            "weightPreference",
            weight_preference().about("Weights for Weighted. Absent: every chosen cluster weighs the same."),
        ),
    ])
}

fn weight_preference() -> Schema {
    let static_weight = object([
        (
            "targetCluster",
            cluster_affinity()
                .required()
                .about("Clusters with this weight: those that match every part that is set."),
        ),
        (
            "weight",
            int64().at_least(1).required().about(
                "Share of each of these clusters in proportion to the other weights, for example 2 and 1 for \
                 twice as many. If several items match a cluster, the highest weight counts.",
            ),
        ),
    ]);
    object([
        (
            "dynamicWeight",
            one_of(&["AvailableReplicas"]).about(
                "`AvailableReplicas` weighs each cluster by how many more replicas fit into it, and keeps \
                 what is placed already where it is. It wins over staticWeightList.",
            ),
        ),
        (
            "staticWeightList",
            list_of(static_weight).about(
                "Fixed weights, whatever room the clusters have. A cluster that no item matches gets \
                 nothing; if no item matches any cluster, all weigh the same.",
            ),
        ),
    ])
}

fn spread_constraint() -> Schema {
    object([
        ("maxGroups", integer().about("Most groups to spread over. Absent or 0: no bound.")),
        (
            "minGroups",
            integer().about(
                "Fewest groups to spread over; default 1. With fewer to choose from, scheduling fails and \
                 what runs stays where it is.",
            ),
        ),
        (
            "spreadByField",
            one_of(&["cluster", "region", "zone", "provider"]).about(
                "What makes a group: each `cluster` (default) by itself, or the clusters of one `region`, \
                 `zone` or `provider`. Clusters that do not name theirs are not chosen.",
            ),
        ),
        (
            "spreadByLabel",
            string().about(
                "Accepted and not implemented: no groups are made by label, and a placement without any \
                 other constraint cannot be scheduled. Cannot be combined with spreadByField.",
            ),
        ),
    ])
}

fn workload_affinity() -> Described {
    let group = || {
        object([(
            "groupByLabelKey",
            string().required().about(
                "Key of a label of the templates, for example `example.com/team`. Templates of a namespace \
                 with the same value form a group.",
            ),
        )])
    };
    object([
        ("affinity", group().about("Workloads of one group belong into the same clusters.")),
        (
            "antiAffinity",
            group().about("Workloads of one group share no cluster. Must use another key than `affinity`."),
        ),
    ])
    .about(
        "Which workloads stay together or apart. Noted on the binding with the feature gate \
         WorkloadAffinity; Longshore's scheduler does not act on it.",
    )
}

/// What happens to an object that is already in a member.
pub(super) fn conflict_resolution() -> Described {
    one_of(&["Abort", "Overwrite"]).default("Abort").about(
        "What happens to an object that exists in a cluster and that the control plane did not deliver: \
         `Abort` (default) leaves it alone and reports the conflict in the Work's condition Applied, \
         `Overwrite` takes it over. The template's annotation work.karmada.io/conflict-resolution goes \
         before this field.",
    )
}

pub(super) fn preserve_resources_on_deletion() -> Described {
    boolean().about(
        "True leaves the objects in the clusters when the template is deleted or leaves a cluster, and takes \
         the control plane's labels and annotations off them. Default false: they are deleted.",
    )
}

pub(super) fn propagate_deps() -> Described {
    boolean().about(
        "True also delivers what the template needs: ConfigMaps, Secrets, ServiceAccounts and \
         PersistentVolumeClaims of its pods, TLS Secrets of an Ingress. Only objects of its own namespace. \
         Default false; failover.application needs true.",
    )
}
