//! The revision of a binding: a digest of everything that decides what its members receive (G2). How many replicas there
//! are is left out: scaling never waits.

use api::{BindingSpec, OverridePolicy};
use serde_json::{Value, json};

use crate::interpret::{revise_replicas, told_replicas};
use crate::overrides::concerns;
use crate::template::{Template, digest};

/// Enough that two revisions of one binding never meet by chance, and short enough to be read.
const LENGTH: usize = 16;

/// Metadata that no member receives: the same content is the same revision, also after it was deleted and made again.
const OF_THE_SERVER: [&str; 6] =
    ["uid", "creationTimestamp", "deletionTimestamp", "ownerReferences", "finalizers", "generateName"];

/// The revision that template, rules and override policies make together.
pub fn revision(template: &Template, spec: &BindingSpec, overrides: &[OverridePolicy]) -> String {
    let BindingSpec {
        placement, conflict_resolution, preserve_resources_on_deletion, propagate_deps, ..
    } = spec;
    let concerned = overrides.iter().filter(|policy| concerns(policy, &template.key, &template.labels));
    let mut concerned: Vec<Value> = concerned
        .map(|policy| json!([policy.metadata.namespace, policy.metadata.name, policy.spec]))
        .collect();
    concerned.sort_by_key(ToString::to_string);
    let mut object = template.object();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        OF_THE_SERVER.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    let parts = json!({
        "template": content(&object),
        "placement": placement,
        "conflictResolution": conflict_resolution,
        "preserve": preserve_resources_on_deletion.unwrap_or(false),
        "dependencies": propagate_deps,
        "overrides": concerned,
    });
    let mut text = digest(&parts);
    text.truncate(LENGTH);
    text
}

/// A digest of an object but for its replicas and bookkeeping.
pub(crate) fn content(object: &Value) -> String {
    match told_replicas(object) {
        None => digest(object),
        Some(_) => {
            let mut object = object.clone();
            revise_replicas(&mut object, 0);
            digest(&object)
        }
    }
}
