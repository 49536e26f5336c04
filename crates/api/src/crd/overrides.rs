//! Schemas of the override policies.

use super::Version;
use super::parts::{cluster_affinity, exclude_resource_selectors, resource_selectors};
use super::schema::{Schema, anything, list_of, map_of, object, one_of, string, strings};

pub(super) fn override_policy() -> Version {
    let rule = object([("overriders", overriders().required()), ("targetCluster", cluster_affinity())]);
    let spec = object([
        ("excludeResourceSelectors", exclude_resource_selectors()),
        ("overrideRules", list_of(rule)),
        ("overriders", overriders()),
        ("resourceSelectors", resource_selectors()),
        ("targetCluster", cluster_affinity()),
    ]);
    Version::stored("v1alpha1", spec)
}

fn overriders() -> Schema {
    object([
        ("annotationsOverrider", list_of(pairs())),
        ("argsOverrider", list_of(words())),
        ("commandOverrider", list_of(words())),
        ("fieldOverrider", list_of(field())),
        ("imageOverrider", list_of(image())),
        ("labelsOverrider", list_of(pairs())),
        ("plaintext", list_of(patch("path"))),
    ])
}

fn operator() -> Schema {
    one_of(&["add", "remove", "replace"]).required()
}

fn pairs() -> Schema {
    object([("operator", operator()), ("value", map_of(string()).required())])
}

fn words() -> Schema {
    object([
        ("containerName", string().required()),
        ("operator", one_of(&["add", "remove"]).required()),
        ("value", strings()),
    ])
}

fn field() -> Schema {
    object([
        ("fieldPath", string().required()),
        ("json", list_of(patch("subPath"))),
        ("yaml", list_of(patch("subPath"))),
    ])
}

fn patch(path: &'static str) -> Schema {
    object([("operator", operator()), (path, string().required()), ("value", anything())])
}

fn image() -> Schema {
    object([
        ("component", one_of(&["Registry", "Repository", "Tag"]).required()),
        ("operator", operator()),
        ("predicate", object([("path", string().required())])),
        ("value", string()),
    ])
}
