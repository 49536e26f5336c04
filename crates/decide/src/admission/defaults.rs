//! Mutating admission: sets defaults before validation, on the JSON itself so that unknown fields are kept. Idempotent.

use api::taint::NO_EXECUTE;
use api::{Suspension, Time, finalizers, kinds, labels, names};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Operation, history};

/// Fills in what is missing; `old` is what is replaced. `random` becomes the permanent id of an object that needs
/// one, `now` the time of a taint that has just been set.
pub fn defaults(
    object: &mut Value,
    old: Option<&Value>,
    operation: Operation,
    random: [u8; 16],
    now: Timestamp,
) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (group, kind) = (crate::template::group(&text("/apiVersion")).to_owned(), text("/kind"));
    let namespace = text("/metadata/namespace");
    let create = operation == Operation::Create;
    match (group.as_str(), kind.as_str()) {
        (kinds::POLICY_GROUP, "PropagationPolicy") => {
            own_namespace(object, &namespace);
            propagation(object, old);
            if create {
                let id = labels::PROPAGATION_POLICY_PERMANENT_ID;
                new_policy(object, id, finalizers::PROPAGATION_POLICY, random);
            }
            history::record(object, old, now);
        }
        (kinds::POLICY_GROUP, "ClusterPropagationPolicy") => {
            propagation(object, old);
            if create {
                let id = labels::CLUSTER_PROPAGATION_POLICY_PERMANENT_ID;
                new_policy(object, id, finalizers::CLUSTER_PROPAGATION_POLICY, random);
            }
            history::record(object, old, now);
        }
        (kinds::POLICY_GROUP, "OverridePolicy") => own_namespace(object, &namespace),
        (kinds::POLICY_GROUP, "RolloutPolicy") => {
            own_namespace(object, &namespace);
            suspension(object, old);
        }
        (kinds::POLICY_GROUP, "ClusterRolloutPolicy") => suspension(object, old),
        (kinds::WORK_GROUP, "ResourceBinding") if create => {
            id(object, labels::RESOURCE_BINDING_PERMANENT_ID, random, false)
        }
        (kinds::WORK_GROUP, "ClusterResourceBinding") if create => {
            id(object, labels::CLUSTER_RESOURCE_BINDING_PERMANENT_ID, random, false);
        }
        (kinds::WORK_GROUP, "Work") => id(object, labels::WORK_PERMANENT_ID, random, false),
        (kinds::CLUSTER_GROUP, "Cluster") => {
            zones(object);
            dates(object, old, now);
        }
        _ => {}
    }
}

/// A permanent id is always fresh, even if the creator brought one: a copied policy is another policy.
fn new_policy(object: &mut Value, label: &str, finalizer: &str, random: [u8; 16]) {
    id(object, label, random, true);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let list = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut().filter(|list| !list.iter().any(|present| present == finalizer)) {
        list.push(finalizer.into());
    }
}

fn id(object: &mut Value, label: &str, random: [u8; 16], overwrite: bool) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(labels) = metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut() else { return };
    let absent = labels.get(label).and_then(Value::as_str).unwrap_or_default().is_empty();
    if absent || overwrite {
        labels.insert(label.to_owned(), names::permanent_id(random).into());
    }
}

/// Selectors and exclusions of a namespaced policy speak of its own namespace (B2).
fn own_namespace(object: &mut Value, namespace: &str) {
    for list in ["/spec/resourceSelectors", "/spec/excludeResourceSelectors"] {
        for selector in maps(object, list) {
            fill(selector, "namespace", namespace);
            if let Some(exclude) = selector.get_mut("exclude").and_then(Value::as_object_mut) {
                fill(exclude, "namespace", namespace);
            }
        }
    }
}

fn propagation(object: &mut Value, old: Option<&Value>) {
    for constraint in maps(object, "/spec/placement/spreadConstraints") {
        let by_label = constraint.get("spreadByLabel").and_then(Value::as_str).unwrap_or_default();
        if by_label.is_empty() {
            fill(constraint, "spreadByField", "cluster");
        }
        if constraint.get("minGroups").and_then(Value::as_i64).unwrap_or(0) == 0 {
            constraint.insert("minGroups".to_owned(), 1.into());
        }
    }
    let imports = |selector: &mut Map<String, Value>| {
        selector.get("kind").is_some_and(|kind| kind == "ServiceImport")
            && selector.get("apiVersion").is_some_and(|version| version == "multicluster.x-k8s.io/v1alpha1")
    };
    if maps(object, "/spec/resourceSelectors").any(imports) {
        object["spec"]["propagateDeps"] = true.into();
    }
    if let Some(scheduling) = map(object, "/spec/placement/replicaScheduling")
        && scheduling.get("replicaSchedulingType").is_none_or(|kind| kind == "Divided")
    {
        fill(scheduling, "replicaDivisionPreference", "Weighted");
    }
    if let Some(application) = map(object, "/spec/failover/application") {
        let mode = application.get("purgeMode").and_then(Value::as_str).unwrap_or("Gracefully");
        if matches!(mode, "Gracefully" | "Graciously") && application.get("gracePeriodSeconds").is_none() {
            application.insert("gracePeriodSeconds".to_owned(), 600.into());
        }
    }
    suspension(object, old);
}

/// U1: the proposal's names become the canonical ones. They are never stored, so if they are present this request wrote
/// them; an unchanged canonical name is the result of the last conversion, and is overwritten.
fn suspension(object: &mut Value, old: Option<&Value>) {
    let Some(written) = object.pointer_mut("/spec/suspension") else { return };
    let proposals = ["suspendDispatching", "suspendDispatchingOnClusters"];
    if !proposals.iter().any(|name| written.get(name).is_some()) {
        return;
    }
    let before = old.and_then(|old| old.pointer("/spec/suspension"));
    if let (Some(fields), Some(before)) = (written.as_object_mut(), before) {
        for (proposal, canonical) in proposals.iter().zip(["dispatching", "dispatchingOnClusters"]) {
            if fields.contains_key(*proposal) && fields.get(canonical) == before.get(canonical) {
                fields.remove(canonical);
            }
        }
    }
    if let Ok(mut wanted) = serde_json::from_value::<Suspension>(written.clone()) {
        wanted.normalise();
        *written = serde_json::to_value(wanted).expect("strings and booleans are always JSON");
    }
}

/// The deprecated `zone` moves to `zones`.
fn zones(object: &mut Value) {
    let Some(spec) = map(object, "/spec") else { return };
    let zone = spec.get("zone").and_then(Value::as_str).unwrap_or_default().to_owned();
    let listed = spec.get("zones").and_then(Value::as_array).is_some_and(|zones| !zones.is_empty());
    if !zone.is_empty() && !listed {
        spec.insert("zones".to_owned(), json!([zone]));
        spec.remove("zone");
    }
}

/// The toleration time of a NoExecute taint counts from when it was set. A client that writes the same taint again has
/// not set it anew.
fn dates(object: &mut Value, old: Option<&Value>, now: Timestamp) {
    let text = |taint: &Map<String, Value>, field: &str| {
        taint.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let name = |taint: &Map<String, Value>| ["key", "value", "effect"].map(|field| text(taint, field));
    let before = old.and_then(|old| old.pointer("/spec/taints")).and_then(Value::as_array);
    let before: Vec<&Map<String, Value>> =
        before.into_iter().flatten().filter_map(Value::as_object).collect();
    for taint in maps(object, "/spec/taints").filter(|taint| text(taint, "effect") == NO_EXECUTE) {
        let same = before.iter().find(|before| name(before) == name(taint));
        let time = match same.map(|same| text(same, "timeAdded")) {
            Some(time) if !time.is_empty() => time,
            _ => Time::from(now).to_string(),
        };
        fill(taint, "timeAdded", &time);
    }
}

fn map<'o>(object: &'o mut Value, pointer: &str) -> Option<&'o mut Map<String, Value>> {
    object.pointer_mut(pointer)?.as_object_mut()
}

fn maps<'o>(object: &'o mut Value, pointer: &str) -> impl Iterator<Item = &'o mut Map<String, Value>> {
    let list = object.pointer_mut(pointer).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn fill(map: &mut Map<String, Value>, field: &str, value: &str) {
    if map.get(field).is_none_or(|present| present.is_null() || present == "") {
        map.insert(field.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00.5Z".parse().expect("a time")
    }

    #[test]
    fn taints_that_evict_are_dated_once() {
        let cluster = |taints: Value| json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "spec": {"taints": taints}});
        let check = |old: Option<Value>, taints: Value, expected: Value| {
            let mut object = cluster(taints);
            defaults(&mut object, old.map(cluster).as_ref(), Operation::Update, [1; 16], now());
            assert_eq!(object["spec"]["taints"], expected);
        };
        let dated =
            |time: &str| json!([{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": time}]);
        let bare = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
        let (stamp, earlier) = ("2026-01-01T00:00:00Z", "2025-06-01T00:00:00Z");
        check(None, bare.clone(), dated(stamp));
        check(None, dated(earlier), dated(earlier));
        check(Some(json!([])), bare.clone(), dated(stamp));
        check(Some(bare.clone()), bare.clone(), dated(stamp));
        check(Some(dated(earlier)), bare.clone(), dated(earlier));
        let other = json!([{"key": "k", "value": "w", "effect": "NoExecute", "timeAdded": earlier}]);
        check(Some(other), bare, dated(stamp));
        let soft = json!([{"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "PreferNoSchedule"}]);
        check(None, soft.clone(), soft);
    }

    #[test]
    fn u1_the_proposals_names_replace_what_they_became_before() {
        let with = |suspension: Value| json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "RolloutPolicy", "spec": {"suspension": suspension}});
        let check = |old: Value, written: Value, expected: Value| {
            let (old, mut object) = (with(old), with(written));
            defaults(&mut object, Some(&old), Operation::Update, [1; 16], now());
            assert_eq!(object["spec"]["suspension"], expected);
        };
        let on = |names: &[&str]| json!({"clusterNames": names});
        check(
            json!({"dispatchingOnClusters": on(&["a", "b"])}),
            json!({"dispatchingOnClusters": on(&["a", "b"]), "suspendDispatchingOnClusters": on(&["b"])}),
            json!({"dispatchingOnClusters": on(&["b"])}),
        );
        check(
            json!({"dispatching": true}),
            json!({"dispatching": true, "suspendDispatching": false}),
            json!({"dispatching": false}),
        );
        // Another kind of brake does not take the place of the first: that would let clusters go. Both are refused.
        check(
            json!({"dispatching": true}),
            json!({"dispatching": true, "suspendDispatchingOnClusters": on(&["a"])}),
            json!({"dispatching": true, "dispatchingOnClusters": on(&["a"])}),
        );
        // Who changes both at once means both.
        check(
            json!({"dispatchingOnClusters": on(&["a"])}),
            json!({"dispatchingOnClusters": on(&["b"]), "suspendDispatchingOnClusters": on(&["c"])}),
            json!({"dispatchingOnClusters": on(&["b", "c"])}),
        );
    }
}
