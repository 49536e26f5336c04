//! The workload controllers of a cluster, one file per kind: each gets an object and its cached children, and returns
//! what to write. This file holds what they share.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::hash;
use crate::key::{Key, Kind};

pub mod budget;
pub mod claim;
pub mod daemon_set;
pub mod deployment;
pub mod job;
pub mod pod;
pub mod replica_set;
pub mod stateful_set;

/// How many children are made at once, as in Kubernetes; the next ones follow when these are known.
pub const BURST_MAX: usize = 500;

/// The input of reconciling an object.
pub struct Round<'a> {
    pub cache: &'a mut Cache,
    pub now: Timestamp,
    /// The same time, as objects carry it.
    pub stamp: &'a str,
}

/// Whether an object's deletion has begun.
pub fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// An object's uid.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// A count in an object, with what its absence means.
pub fn count(value: &Value, absent: i64) -> i64 {
    value.as_i64().unwrap_or(absent)
}

/// The length of a list, or the size of a group of pods, as objects carry it.
pub fn as_count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The entry in `ownerReferences` of a child.
pub fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// A pod from its owner's template.
pub fn pod(owner: &Value, name: &str, labels: &[(&str, &str)]) -> Value {
    let template = &owner["spec"]["template"];
    let mut metadata = json!({
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [owner_reference(owner)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if !template["metadata"][field].is_null() {
            metadata[field] = template["metadata"][field].clone();
        }
    }
    for (key, value) in labels {
        metadata["labels"][key] = (*value).into();
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] })
}

/// What the names of an owner's children begin with.
pub fn name_stem(owner: &str) -> String {
    format!("{}-", owner.get(..57).unwrap_or(owner).trim_end_matches(['-', '.']))
}

/// Unused names for new pods: they follow from the owner's uid and a number, and the lowest numbers whose names are
/// free are taken.
pub fn free_names<'a>(
    cache: &'a Cache,
    owner: &'a Value,
    salt: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let namespace = owner["metadata"]["namespace"].as_str().unwrap_or_default();
    let stem = name_stem(owner["metadata"]["name"].as_str().unwrap_or_default());
    let name = move |slot: u64| format!("{stem}{}", hash::word(5, &[uid(owner), salt, &slot.to_string()]));
    let is_free = move |name: &String| cache.facts(&Key::new(Kind::Pod, namespace, name)).is_none();
    (0..).map(name).filter(is_free)
}

/// A number or a percentage of a whole, as in `maxUnavailable`.
pub fn share(value: &Value, whole: i64, round_up: bool) -> Option<i64> {
    let percent = match value {
        Value::Number(number) => return number.as_i64(),
        Value::String(text) => text.strip_suffix('%')?.parse::<i64>().ok()?,
        _ => return None,
    };
    let scaled = percent.saturating_mul(whole);
    Some(if round_up { scaled.saturating_add(99) / 100 } else { scaled / 100 })
}

/// A condition of a status, with the times of its predecessor where it says the same.
pub fn condition(old: &Value, kind: &str, status: &str, why: (&str, &str), stamp: &str) -> Value {
    let conditions = old["conditions"].as_array().into_iter().flatten();
    let before = conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null);
    let same = before["status"] == status;
    let since = before["lastTransitionTime"].as_str().filter(|_| same).unwrap_or(stamp);
    let (reason, message) = why;
    json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    })
}

/// Counters without those that are zero, which Kubernetes leaves out.
pub fn counters(counts: &[(&str, i64)]) -> Value {
    let shown = counts.iter().filter(|(_, count)| *count != 0);
    shown.map(|(name, count)| ((*name).to_owned(), Value::from(*count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_or_percentages() {
        for (value, up, down) in [
            (json!(2), Some(2), Some(2)),
            (json!("25%"), Some(1), Some(0)),
            (json!("100%"), Some(3), Some(3)),
            (json!("x"), None, None),
            (Value::Null, None, None),
        ] {
            assert_eq!((share(&value, 3, true), share(&value, 3, false)), (up, down), "{value}");
        }
    }

    #[test]
    fn stems_leave_room_for_the_rest_of_a_name() {
        assert_eq!(name_stem("nginx"), "nginx-");
        assert_eq!(name_stem(&"a".repeat(80)).len(), 58);
        assert_eq!(name_stem(&format!("{}-{}", "a".repeat(56), "b")), format!("{}-", "a".repeat(56)));
    }
}
