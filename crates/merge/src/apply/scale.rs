//! Field ownership across the `scale` subresource: a Scale has one field that can be owned, which is another field of
//! the object behind it.

use serde_json::Value;

use super::managed::{Entry, Managed};
use super::set::PathSet;

const SCALE_VERSION: &str = "autoscaling/v1";
const SCALE_REPLICAS: [&str; 2] = ["spec", "replicas"];

/// The `managedFields` that the Scale of an object has while it is written: those who own `replicas`, the
/// path of the replica count in the object.
pub fn managed_fields_of_scale(object: &Value, replicas: &[&str]) -> Option<Value> {
    let managed = Managed::decode(&object["metadata"]["managedFields"]).ok()?;
    let owners = managed.entries.into_iter().filter(|entry| entry.set.has_fields(replicas));
    let entries = owners.map(|mut entry| {
        entry.owner.api_version = SCALE_VERSION.to_owned();
        Entry { set: only(&SCALE_REPLICAS), ..entry }
    });
    Managed { entries: entries.collect() }.encode()
}

/// The `managedFields` of the object after its Scale was written, from those it had and those that the
/// Scale has now. Owners that are new get no time, as in Kubernetes.
pub fn managed_fields_after_scale(
    object: &Value,
    scale: &Value,
    replicas: &[&str],
    api_version: &str,
) -> Option<Value> {
    let before = Managed::decode(&object["metadata"]["managedFields"]).unwrap_or_default();
    let scale = Managed::decode(&scale["metadata"]["managedFields"]).unwrap_or_default();
    let mut owners = scale.entries;
    owners.retain(|owner| owner.set.has_fields(&SCALE_REPLICAS));
    let mut after = Managed::default();
    for mut entry in before.entries {
        let kept = owners.iter().position(|owner| {
            owner.owner.manager == entry.owner.manager
                && owner.owner.operation == entry.owner.operation
                && owner.owner.subresource == entry.owner.subresource
        });
        if entry.set.has_fields(replicas) {
            match kept {
                Some(place) => drop(owners.remove(place)),
                None => entry.set.subtract(&only(replicas)),
            }
        }
        if !entry.set.is_empty() {
            after.entries.push(entry);
        }
    }
    for mut owner in owners {
        owner.owner.api_version = api_version.to_owned();
        after.grant(owner.owner, only(replicas), None);
    }
    after.encode()
}

fn only(path: &[&str]) -> PathSet {
    let mut set = PathSet::default();
    set.insert_fields(path);
    set
}
