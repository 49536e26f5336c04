//! Schemas of taints, and of the policy that sets them.

use super::Version;
use super::parts::cluster_affinity;
use super::schema::{Field, list_of, object, string, strings};

pub(super) const ABOUT: &str = "Sets and removes taints of clusters by their conditions, for example \
                                `NoSchedule` while a condition that a monitoring tool writes is False. Needs \
                                the feature gate Failover, which is on by default. Deleting the policy \
                                removes no taint.";

pub(super) fn cluster_taint() -> Version {
    let match_condition = object([
        (
            "conditionType",
            string().required().about(
                "Type of the condition, for example `Ready`. A cluster without such a condition never \
                 matches.",
            ),
        ),
        (
            "operator",
            string().required().about(
                "`In` matches when the condition's status is among statusValues, `NotIn` when it is not.",
            ),
        ),
        ("statusValues", strings().required().about("Statuses to compare with: `True`, `False`, `Unknown`.")),
    ]);
    let spec = object([
        (
            "addOnConditions",
            list_of(match_condition.clone())
                .about("When the taints are set: all items must match. Empty: never."),
        ),
        (
            "removeOnConditions",
            list_of(match_condition).about(
                "When the taints are removed: all items must match. Empty: never. Judged after \
                 addOnConditions, so removal wins.",
            ),
        ),
        (
            "taints",
            list_of(object(taint_fields())).not_empty().required().about(
                "Taints to set and to remove, each key and effect once. A taint that the cluster has already \
                 keeps its value. `NoExecute` evicts.",
            ),
        ),
        (
            "targetClusters",
            cluster_affinity().about(
                "Clusters that the policy is about: those that match every part that is set. Absent: all \
                 clusters.",
            ),
        ),
    ]);
    Version::stored("v1alpha1", spec, "Which clusters get which taints, and when.")
}

pub(super) fn taint_fields() -> [Field; 3] {
    [
        (
            "effect",
            string().required().about(
                "`NoSchedule` keeps new templates away, `NoExecute` also evicts those that run. \
                 `PreferNoSchedule` is accepted and changes nothing.",
            ),
        ),
        ("key", string().required().about("Key of the taint, for example `example.com/maintenance`.")),
        ("value", string().about("Value of the taint. May be empty.")),
    ]
}
