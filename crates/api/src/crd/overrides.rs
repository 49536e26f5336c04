//! Schemas of the override policies.

use super::Version;
use super::parts::{cluster_affinity, exclude_resource_selectors, resource_selectors};
use super::schema::{Schema, anything, list_of, map_of, object, one_of, string, strings};
use crate::override_policy::{OVERRIDE_RULES_MAX, OVERRIDERS_MAX};

pub(super) fn override_policy() -> Version {
    let rule = object([("overriders", overriders().required()), ("targetCluster", cluster_affinity())]);
    let spec = object([
        ("excludeResourceSelectors", exclude_resource_selectors()),
        ("overrideRules", list_of(rule).at_most(OVERRIDE_RULES_MAX)),
        ("overriders", overriders()),
        ("resourceSelectors", resource_selectors()),
        ("targetCluster", cluster_affinity()),
    ]);
    Version::stored("v1alpha1", spec)
}

fn overriders() -> Schema {
    object([
        ("annotationsOverrider", list_of(pairs()).at_most(OVERRIDERS_MAX)),
        ("argsOverrider", list_of(words()).at_most(OVERRIDERS_MAX)),
        ("commandOverrider", list_of(words()).at_most(OVERRIDERS_MAX)),
        ("fieldOverrider", list_of(field()).at_most(OVERRIDERS_MAX)),
        ("imageOverrider", list_of(image()).at_most(OVERRIDERS_MAX)),
        ("labelsOverrider", list_of(pairs()).at_most(OVERRIDERS_MAX)),
        ("plaintext", list_of(patch("path")).at_most(OVERRIDERS_MAX)),
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
        ("json", list_of(patch("subPath")).at_most(OVERRIDERS_MAX)),
        ("yaml", list_of(patch("subPath")).at_most(OVERRIDERS_MAX)),
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
