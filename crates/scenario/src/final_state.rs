//! The final state of a simulation: every object that matters, without what may differ between two runs that did the
//! same, such as ids and times.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::api_client::{ApiClient, collection};
use crate::error::PlayError;
use crate::simulated::{CONTROL, Simulated};

/// Kinds that say nothing about how it ended, or that others than Longshore make.
const IGNORED_KINDS: [&str; 12] = [
    "APIService",
    "ControllerRevision",
    "CustomResourceDefinition",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "FlowSchema",
    "Lease",
    "Node",
    "Pod",
    "PriorityLevelConfiguration",
    "ReplicaSet",
];
/// Fields that count writes, or tell ids and times.
const IGNORED_FIELDS: [&str; 11] = [
    "uid",
    "nodePort",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "schedulerObservedGeneration",
    "resourceTemplateGeneration",
    "resourcetemplate.karmada.io/generation",
    "managedFields",
    "creationTimestamp",
    "revisionHistoryLimit",
];

static ID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("it is a pattern")
});
/// Digests of templates, in which their ids and times are.
static DIGEST: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""[0-9a-f]{32}""#).expect("it is a pattern"));
/// Addresses that servers give out.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b10(\.\d+){3}\b").expect("it is a pattern"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").expect("it is a pattern"));

/// Objects by place, kind and name.
pub type FinalState = BTreeMap<String, Value>;

/// How it ended.
pub async fn final_state(simulated: &Simulated) -> Result<FinalState, PlayError> {
    let mut final_state = FinalState::new();
    collect(CONTROL, &simulated.control(), &mut final_state).await?;
    for name in simulated.members() {
        if let Some(api_client) = simulated.member(&name) {
            collect(&name, &api_client, &mut final_state).await?;
        }
    }
    Ok(final_state)
}

async fn collect(place: &str, api_client: &ApiClient, final_state: &mut FinalState) -> Result<(), PlayError> {
    for served in api_client.kinds().await? {
        if !served.listable || IGNORED_KINDS.contains(&served.kind.as_str()) {
            continue;
        }
        let list = api_client.fetch(collection(&served, "").path()).await?.unwrap_or_default();
        for mut object in list["items"].as_array().into_iter().flatten().cloned() {
            let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
            let key = format!("{place}: {} {}/{}", served.kind, text("namespace"), text("name"));
            let observed = observed(&object);
            blur(&mut object);
            object["observed"] = observed;
            final_state.insert(blurred(&key), object);
        }
    }
    Ok(())
}

/// Whether `observedGeneration`, if there is one, is the current generation. The numbers themselves may differ.
fn observed(object: &Value) -> Value {
    let latest = object["metadata"]["generation"].as_i64();
    let seen = object["status"]["observedGeneration"].as_i64();
    seen.zip(latest).map(|(seen, latest)| seen >= latest).into()
}

/// Takes out what may differ, and what is as good as nothing.
fn blur(value: &mut Value) {
    match value {
        Value::String(text) => *text = blurred(text),
        Value::Array(items) => items.iter_mut().for_each(blur),
        Value::Object(fields) => {
            // A controller that recreated an object and got no response finds it, as if it had never been gone.
            if let Some(reason) = fields.get_mut("reason").filter(|reason| **reason == "ReCreateSuccessful") {
                *reason = "AppliedSuccessful".into();
            }
            IGNORED_FIELDS.iter().for_each(|noise| drop(fields.remove(*noise)));
            fields.values_mut().for_each(blur);
            fields.retain(|_, value| !is_nothing(value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn blurred(text: &str) -> String {
    let text = ID.replace_all(text, "<id>");
    let text = DIGEST.replace_all(&text, "<digest>");
    let text = ADDRESS.replace_all(&text, "<address>");
    TIME.replace_all(&text, "<time>").into_owned()
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Where two endings differ, one line each.
pub fn differences(one: &FinalState, other: &FinalState) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, object) in one {
        match other.get(key) {
            None => lines.push(format!("{key} is missing")),
            Some(found) => compare(key, object, found, &mut lines),
        }
    }
    lines.extend(other.keys().filter(|key| !one.contains_key(*key)).map(|key| format!("{key} is too many")));
    lines
}

fn compare(path: &str, one: &Value, other: &Value, lines: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) => {
            let keys: std::collections::BTreeSet<&String> = fields.keys().chain(others.keys()).collect();
            for key in keys {
                compare(&format!("{path}.{key}"), &one[key], &other[key], lines);
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others).enumerate() {
                compare(&format!("{path}[{index}]"), item, other, lines);
            }
        }
        (one, other) if one == other => {}
        (one, other) => lines.push(format!("{path} is {other}, not {one}")),
    }
}
