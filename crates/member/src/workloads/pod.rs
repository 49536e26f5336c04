//! The scheduler and kubelet of pods: binds a pod to a node with free capacity, runs its stages, and deletes it with
//! its node.

use serde_json::{Value, json};

use super::{Round, is_deleting, uid};
use crate::cache::Cache;
use crate::facts;
use crate::key::Key;
use crate::plan::{Plan, Write, status};

/// What comes before the stages of a pod; `None` when there is nothing.
pub fn reconcile(round: &mut Round<'_>, key: &Key, object: &Value) -> Option<Plan> {
    if is_deleting(object) || matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return None;
    }
    match object["spec"]["nodeName"].as_str().unwrap_or_default() {
        "" => Some(schedule(round, key, object)),
        node if round.cache.nodes.contains(node) => None,
        _ => Some(Plan::one(Write::Delete { key: key.clone(), uid: uid(object).to_owned() })),
    }
}

fn schedule(round: &mut Round<'_>, key: &Key, object: &Value) -> Plan {
    if object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return Plan::nothing();
    }
    let Some(wish) = round.cache.facts(key).and_then(|facts| Some(facts.pod()?.wish.clone())) else {
        return Plan::nothing();
    };
    if let Some(node) = round.cache.nodes.promise(&wish) {
        return Plan::one(Write::Bind { key: key.clone(), node: node.to_string() });
    }
    round.cache.wait_for_room(key);
    let refusal = round.cache.nodes.refusal(&wish);
    let conditions = object["status"]["conditions"].as_array();
    let is_said = |condition: &Value| condition["type"] == "PodScheduled" && condition["message"] == *refusal;
    if conditions.is_some_and(|conditions| conditions.iter().any(is_said)) {
        return Plan::nothing();
    }
    let mut next = object["status"].clone();
    let mut condition =
        super::condition(&next, "PodScheduled", "False", ("Unschedulable", &refusal), round.stamp);
    condition["lastProbeTime"] = Value::Null;
    next["conditions"] = json!([condition]);
    status(key, object, next).map_or_else(Plan::nothing, Plan::one)
}

/// A new pod on the node that has room for it, if one has.
pub fn placed(cache: &mut Cache, mut object: Value) -> Value {
    let has_gates = object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    let is_placed = !object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    if !has_gates
        && !is_placed
        && let Some(node) = cache.nodes.promise(&facts::wish(&object["spec"]))
    {
        object["spec"]["nodeName"] = (&*node).into();
    }
    object
}
