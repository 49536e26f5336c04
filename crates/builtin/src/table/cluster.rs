//! Rows of configuration kinds and cluster-scoped kinds. Must not know about workloads.

use std::collections::BTreeSet;

use serde_json::Value;

use super::age::human_duration;
use super::object::{NONE, Object, joined, list, or, quantity, text};

/// What Kubernetes prints for kinds it has no printer for.
pub(super) fn created(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), object.at("metadata.creationTimestamp").clone()]
}

pub(super) fn name_and_age(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), object.age().into()]
}

pub(super) fn config_map(object: &Object<'_>) -> Vec<Value> {
    let entries = entries(object.at("data")) + entries(object.at("binaryData"));
    vec![object.name().into(), entries.into(), object.age().into()]
}

pub(super) fn secret(object: &Object<'_>) -> Vec<Value> {
    let entries = entries(object.at("data"));
    vec![object.name().into(), object.text("type").into(), entries.into(), object.age().into()]
}

fn entries(map: &Value) -> usize {
    map.as_object().map_or(0, serde_json::Map::len)
}

pub(super) fn namespace(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), object.text("status.phase").into(), object.age().into()]
}

pub(super) fn node(object: &Object<'_>) -> Vec<Value> {
    let info = |field: &str| text(object.at("status.nodeInfo"), field);
    let known = |field: &str| Value::from(or(info(field), "<unknown>"));
    vec![
        object.name().into(),
        node_status(object).into(),
        node_roles(object).into(),
        object.age().into(),
        info("kubeletVersion").into(),
        node_address(object, "InternalIP").into(),
        node_address(object, "ExternalIP").into(),
        known("osImage"),
        known("kernelVersion"),
        known("containerRuntimeVersion"),
    ]
}

fn node_status(node: &Object<'_>) -> String {
    let ready = match node.condition("Ready") {
        "" => "Unknown",
        "True" => "Ready",
        _ => "NotReady",
    };
    match node.at("spec.unschedulable") == true {
        true => format!("{ready},SchedulingDisabled"),
        false => ready.to_owned(),
    }
}

fn node_roles(node: &Object<'_>) -> String {
    let labels = node.at("metadata.labels").as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    or(&joined(roles, ","), NONE).to_owned()
}

fn node_address<'a>(node: &Object<'a>, kind: &str) -> &'a str {
    let address = node.list("status.addresses").iter().find(|address| text(address, "type") == kind);
    address.map_or(NONE, |address| text(address, "address"))
}

pub(super) fn lease(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), object.text("spec.holderIdentity").into(), object.age().into()]
}

pub(super) fn priority_class(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name().into(),
        object.integer("value").into(),
        object.at("globalDefault").as_bool().unwrap_or(false).into(),
        object.age().into(),
        object.text("preemptionPolicy").into(),
    ]
}

pub(super) fn runtime_class(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), object.text("handler").into(), object.age().into()]
}

pub(super) fn webhook_configuration(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), object.list("webhooks").len().into(), object.age().into()]
}

pub(super) fn validating_admission_policy(object: &Object<'_>) -> Vec<Value> {
    let parameters = match object.at("spec.paramKind") {
        Value::Null => String::from("<unset>"),
        kind => format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
    };
    vec![
        object.name().into(),
        object.list("spec.validations").len().into(),
        parameters.into(),
        object.age().into(),
    ]
}

pub(super) fn validating_admission_policy_binding(object: &Object<'_>) -> Vec<Value> {
    let reference = object.at("spec.paramRef");
    let parameters = match (text(reference, "name"), text(reference, "namespace")) {
        ("", _) => String::from("<unset>"),
        (name, namespace) => format!("{}/{name}", or(namespace, "*")),
    };
    vec![object.name().into(), object.text("spec.policyName").into(), parameters.into(), object.age().into()]
}

pub(super) fn api_service(object: &Object<'_>) -> Vec<Value> {
    let service = match object.at("spec.service") {
        Value::Null => String::from("Local"),
        service => format!("{}/{}", text(service, "namespace"), text(service, "name")),
    };
    let mut conditions = object.list("status.conditions").iter();
    let condition = conditions.find(|condition| text(condition, "type") == "Available");
    let available = condition.map_or_else(
        || String::from("Unknown"),
        |condition| match text(condition, "status") {
            "True" => String::from("True"),
            other => format!("{other} ({})", text(condition, "reason")),
        },
    );
    vec![object.name().into(), service.into(), available.into(), object.age().into()]
}

pub(super) fn certificate_signing_request(object: &Object<'_>) -> Vec<Value> {
    let duration = match object.at("spec.expirationSeconds").as_i64() {
        Some(seconds) => human_duration(seconds),
        None => NONE.to_owned(),
    };
    vec![
        object.name().into(),
        object.age().into(),
        object.text_or_none("spec.signerName").into(),
        object.text("spec.username").into(),
        duration.into(),
        request_status(object).into(),
    ]
}

fn request_status(request: &Object<'_>) -> String {
    let has = |kind: &str| request.list("status.conditions").iter().any(|one| text(one, "type") == kind);
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if request.text("status.certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

pub(super) fn resource_quota(object: &Object<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in object.at("status.hard").as_object().into_iter().flatten() {
        let used = quantity(&object.at("status.used")[resource]);
        let line = format!("{resource}: {used}/{}", quantity(hard));
        match resource.starts_with("limits.") {
            true => limits.push(line),
            false => requests.push(line),
        }
    }
    vec![object.name().into(), requests.join(", ").into(), limits.join(", ").into(), object.age().into()]
}

pub(super) fn role_binding(object: &Object<'_>) -> Vec<Value> {
    let of = |kind: &str| {
        let subjects = list(object.value, "subjects").iter().filter(|subject| text(subject, "kind") == kind);
        let names: Vec<String> = subjects.map(subject_name).collect();
        Value::from(names.join(", "))
    };
    vec![
        object.name().into(),
        format!("{}/{}", object.text("roleRef.kind"), object.text("roleRef.name")).into(),
        object.age().into(),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]
}

fn subject_name(subject: &Value) -> String {
    match (text(subject, "kind"), text(subject, "namespace")) {
        ("ServiceAccount", namespace) if !namespace.is_empty() => {
            format!("{namespace}/{}", text(subject, "name"))
        }
        _ => text(subject, "name").to_owned(),
    }
}
