//! Schemas that several kinds share: Kubernetes' own types and the selectors of policies.

use super::schema::{
    Field, Schema, date_time, int64, list_of, map_of, object, one_of, quantity, string, strings,
};
use crate::selector::SELECTORS_MAX;

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
    list_of(object([
        ("lastTransitionTime", date_time().required()),
        ("message", string().length(0, 32768).required()),
        ("observedGeneration", int64().at_least(0)),
        ("reason", reason(1024).required()),
        ("status", one_of(&["True", "False", "Unknown"]).required()),
        ("type", string().length(0, 316).pattern(CONDITION_TYPE).required()),
    ]))
}

pub(super) fn requirement() -> Schema {
    object([
        ("key", string().required()),
        ("operator", string().required()),
        ("values", strings().atomic_list()),
    ])
}

pub(super) fn label_selector() -> Schema {
    object([("matchExpressions", list_of(requirement()).atomic_list()), ("matchLabels", map_of(string()))])
        .atomic_map()
}

pub(super) fn tolerations() -> Schema {
    list_of(object([
        ("effect", string()),
        ("key", string()),
        ("operator", string()),
        ("tolerationSeconds", int64()),
        ("value", string()),
    ]))
}

pub(super) fn resource_list() -> Schema {
    map_of(quantity())
}

pub(super) fn cluster_affinity_fields() -> [Field; 4] {
    [
        ("clusterNames", strings()),
        ("exclude", strings()),
        ("fieldSelector", object([("matchExpressions", list_of(requirement()))])),
        ("labelSelector", label_selector()),
    ]
}

pub(super) fn cluster_affinity() -> Schema {
    object(cluster_affinity_fields())
}

/// The template a policy is about.
pub(super) fn resource_selectors() -> Schema {
    list_of(object([
        ("apiVersion", string().required()),
        ("kind", string().required()),
        ("labelSelector", label_selector()),
        ("name", string()),
        ("namespace", string()),
        ("exclude", object(exclude_fields()).about("What this selector leaves out of its kind.")),
    ]))
    .at_most(SELECTORS_MAX)
}

/// What a whole policy leaves out.
pub(super) fn exclude_resource_selectors() -> Schema {
    let kind = [("apiVersion", string().required()), ("kind", string().required())];
    list_of(object(kind.into_iter().chain(exclude_fields())))
        .at_most(SELECTORS_MAX)
        .about("Templates this policy leaves out, whatever its selectors say.")
}

fn exclude_fields() -> [Field; 3] {
    [
        ("labelSelector", label_selector()),
        ("name", string()),
        ("namespace", string().about("Names and prefix* items, separated by commas.")),
    ]
}

/// A reference to an object; the kinds differ in what else they keep.
pub(super) fn reference_fields() -> [Field; 4] {
    [
        ("apiVersion", string().required()),
        ("kind", string().required()),
        ("name", string().required()),
        ("namespace", string()),
    ]
}

/// Clusters that are held.
pub(super) fn suspended_clusters() -> Schema {
    object([("clusterNames", strings())])
}

pub(super) fn health() -> Schema {
    one_of(&["Healthy", "Unhealthy", "Unknown"])
}
