//! Validation against the causes that kube-apiserver reported.

use serde_json::{Value, json};

use super::super::{allocate_service, apply_defaults, prepare_for_create, prepare_for_update};
use super::*;

/// Requests that kube-apiserver 1.35.4 judged, with the causes it gave; `…` stands for a value that it
/// prints in a form of its own.
fn recorded() -> Vec<Value> {
    serde_json::from_str(include_str!("../refusals-1.35.json")).unwrap()
}

fn judged(record: &Value) -> Vec<FieldError> {
    let (group, kind) = (record["group"].as_str().unwrap(), record["kind"].as_str().unwrap());
    let mut object = record["new"].clone();
    apply_defaults(group, kind, &mut object);
    if kind == "Job" && object["metadata"]["uid"].is_null() {
        object["metadata"]["uid"] = "6e1b".into();
    }
    let old = record.get("old");
    match old {
        Some(old) => prepare_for_update(group, kind, &mut object, old),
        None => prepare_for_create(group, kind, &mut object),
    }
    if (group, kind) == ("", "Service") {
        allocate_service(&mut object, old, || None, || None);
    }
    validate(group, kind, &object, old)
}

type Cause = (String, String, String);

fn ours(errors: &[FieldError]) -> Vec<Cause> {
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap().to_owned();
    let causes = errors.iter().map(FieldError::cause);
    causes.map(|cause| (text(&cause, "field"), text(&cause, "reason"), text(&cause, "message"))).collect()
}

/// Names and labels of the object itself are judged elsewhere.
fn theirs(record: &Value) -> Vec<Cause> {
    let causes: Vec<Cause> = serde_json::from_value(record["causes"].clone()).unwrap();
    let is_metadata = |(field, reason, _): &Cause| {
        matches!(field.as_str(), "metadata.name" | "metadata.labels") && reason == "FieldValueInvalid"
    };
    causes.into_iter().filter(|cause| !is_metadata(cause)).collect()
}

fn agree(ours: &Cause, theirs: &Cause) -> bool {
    let same_message = match theirs.2.strip_prefix('…') {
        Some(end) => ours.2.ends_with(end),
        None => ours.2 == theirs.2,
    };
    (&ours.0, &ours.1) == (&theirs.0, &theirs.1) && same_message
}

#[test]
fn objects_are_refused_as_in_kubernetes() {
    let mut wrong = Vec::new();
    for record in &recorded() {
        let (mut ours, mut theirs) = (ours(&judged(record)), theirs(record));
        let of_map = ["limits[", "hard[", "data[", "matchLabels", "nodeSelector"];
        // Go walks maps in no order.
        if theirs.iter().any(|(field, _, _)| of_map.iter().any(|map| field.contains(map))) {
            ours.sort();
            theirs.sort();
        }
        // Some rules stand twice in Kubernetes, in Go and in tags.
        theirs.dedup();
        ours.dedup();
        let equal =
            ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(one, other)| agree(one, other));
        if !equal {
            wrong.push(format!("{}\n  ours   {ours:?}\n  theirs {theirs:?}", record["kind"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_kubernetes_stored_is_accepted() {
    let stored: Vec<Value> = serde_json::from_str(include_str!("../kubernetes-1.35.json")).unwrap();
    for record in &stored {
        let (group, kind) = (record["group"].as_str().unwrap(), record["kind"].as_str().unwrap());
        let object = &record["stored"];
        assert_eq!(validate(group, kind, object, None), [], "{kind} {}", object["metadata"]["name"]);
        assert_eq!(validate(group, kind, object, Some(object)), [], "{kind} {}", object["metadata"]["name"]);
    }
}

#[test]
fn too_much_data_is_refused() {
    let long = "x".repeat(1024 * 1024 + 1);
    let errors = validate("", "ConfigMap", &json!({ "data": { "a": long } }), None);
    assert_eq!(errors[0].to_string(), "[]: Too long: may not be more than 1048576 bytes");
    let encoded = "AAAA".repeat(1024 * 1024 / 3 + 1);
    let errors = validate("", "Secret", &json!({ "data": { "a": encoded } }), None);
    assert_eq!(errors[0].to_string(), "data: Too long: may not be more than 1048576 bytes");
    let fits = "x".repeat(1024 * 1024);
    assert_eq!(validate("", "ConfigMap", &json!({ "data": { "a": fits } }), None), []);
}

#[test]
fn odd_shapes_do_not_panic() {
    let odd = [
        json!(null),
        json!([1]),
        json!({ "spec": 3 }),
        json!({ "spec": { "template": [], "ports": [null, "x"], "rules": [[]] }, "data": [1], "webhooks": [3] }),
    ];
    for record in &recorded() {
        let (group, kind) = (record["group"].as_str().unwrap(), record["kind"].as_str().unwrap());
        for value in &odd {
            validate(group, kind, value, Some(&record["new"]));
            validate(group, kind, &record["new"], Some(value));
        }
    }
}
