//! Schemas that several kinds share: Kubernetes' own types, cluster affinities, references.

use super::schema::{
    Described, Field, Schema, date_time, int64, list_of, map_of, object, one_of, quantity, string, strings,
};

const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const CONDITION_TYPE: &str = concat!(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
);

/// A reason in CamelCase of at most so many characters.
pub(super) fn reason(most: u32) -> Schema {
    string().length(1, most).pattern(REASON)
}

pub(super) fn conditions() -> Schema {
    let condition_type = string().length(0, 316).pattern(CONDITION_TYPE).required();
    list_of(object([
        ("lastTransitionTime", date_time().required().about("When `status` last changed, in UTC.")),
        ("message", string().length(0, 32768).required().about("What the condition means here, for people.")),
        (
            "observedGeneration",
            int64().at_least(0).about(
                "Generation of the object that the condition was judged by. If it is lower than \
                 metadata.generation, the condition may be out of date.",
            ),
        ),
        ("reason", reason(1024).required().about("Why `status` is what it is, as one word for programs.")),
        (
            "status",
            one_of(&["True", "False", "Unknown"])
                .required()
                .about("Whether the condition holds: `True`, `False` or `Unknown`."),
        ),
        ("type", condition_type.about("Name of the condition. The list holds each name at most once.")),
    ]))
}

/// What must hold for the value behind one key.
pub(super) struct Requirement {
    pub key: &'static str,
    pub operator: &'static str,
    pub values: &'static str,
}

impl Requirement {
    pub(super) fn schema(self) -> Schema {
        object([
            ("key", string().required().about(self.key)),
            ("operator", string().required().about(self.operator)),
            ("values", strings().atomic_list().about(self.values)),
        ])
    }
}

const OF_LABELS: Requirement = Requirement {
    key: "Key of the label.",
    operator: "`In` and `NotIn` compare with `values`; `Exists` and `DoesNotExist` look at the key alone. \
               `NotIn` also holds where the label is absent.",
    values: "Values for `In` and `NotIn`, at least one. Must be empty for `Exists` and `DoesNotExist`.",
};

const OF_CLUSTER_FIELDS: Requirement = Requirement {
    key: "Field of the cluster: `provider`, `region` or `zone`.",
    operator: "`In` or `NotIn`. A cluster with several zones matches `In` when one of them is listed and \
               `NotIn` when none is.",
    values: "Values to compare with, for example `eu-west-1`. An empty list matches no cluster.",
};

pub(super) fn label_selector() -> Schema {
    object([
        (
            "matchExpressions",
            list_of(OF_LABELS.schema()).atomic_list().about(
                "Requirements on labels. All of them and all of matchLabels must hold; a selector without \
                 any selects everything.",
            ),
        ),
        (
            "matchLabels",
            map_of(string())
                .about("Labels that must be there with exactly these values, for example `app: nginx`."),
        ),
    ])
    .atomic_map()
}

pub(super) fn tolerations() -> Schema {
    list_of(object([
        (
            "effect",
            string().about(
                "Effect that is tolerated: `NoSchedule`, `PreferNoSchedule` or `NoExecute`; empty for all.",
            ),
        ),
        (
            "key",
            string().about(
                "Key of the taint that is tolerated. Empty, together with operator `Exists`, tolerates every \
                 taint.",
            ),
        ),
        (
            "operator",
            string().about(
                "`Equal` (default) compares the taint's value with `value`; `Exists` takes any value.",
            ),
        ),
        (
            "tolerationSeconds",
            int64().about(
                "Seconds that a `NoExecute` taint is tolerated after it was set; then the workload has to \
                 leave, and does not come back while the taint stands. Absent: for ever. Other effects \
                 ignore it.",
            ),
        ),
        ("value", string().about("Value that `Equal` compares with. Leave it out with `Exists`.")),
    ]))
}

pub(super) fn resource_list() -> Schema {
    map_of(quantity())
}

pub(super) fn cluster_affinity_fields() -> [Field; 4] {
    let by_fields = list_of(OF_CLUSTER_FIELDS.schema())
        .about("Requirements on provider, region and zones of the cluster. All of them must hold.");
    [
        ("clusterNames", strings().about("Names of clusters that match. Empty: every name matches.")),
        ("exclude", strings().about("Names of clusters that never match, whatever the other parts say.")),
        (
            "fieldSelector",
            object([("matchExpressions", by_fields)])
                .about("Matches clusters by provider, region and zone. Absent: all match."),
        ),
        (
            "labelSelector",
            label_selector().about("Matches clusters by labels of their Cluster object. Absent: all match."),
        ),
    ]
}

pub(super) fn cluster_affinity() -> Schema {
    object(cluster_affinity_fields())
}

/// A reference to an object; the kinds differ in what else they keep.
pub(super) fn reference_fields() -> [Field; 4] {
    [
        ("apiVersion", string().required().about("Group and version of the object, for example `apps/v1`.")),
        ("kind", string().required().about("Kind of the object, for example `Deployment`.")),
        ("name", string().required().about("Name of the object.")),
        ("namespace", string().about("Namespace of the object. Empty for kinds without namespaces.")),
    ]
}

pub(super) fn health() -> Described {
    one_of(&["Healthy", "Unhealthy", "Unknown"]).about(
        "What the object's status in the cluster says: `Healthy`, `Unhealthy`, or `Unknown` while it cannot \
         be told, for example before the object is applied. Kinds whose health Longshore cannot judge count \
         as Healthy.",
    )
}
