//! Metadata against the answers of kube-apiserver 1.35.4, recorded in the JSON file, and rules about changes.

use serde_json::{Value, json};

use super::*;
use crate::recorded::{check_all, lines};

/// Long annotations are recorded by their length.
fn unfolded(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    for value in metadata.pointer_mut("/annotations").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(length) = value.1["repeat"].as_u64() {
            *value.1 = "x".repeat(length as usize).into();
        }
    }
    metadata
}

/// What a name breaks depends on the kind; what the rest of the object breaks is not asked here.
fn check_recorded(case: &Value) -> Result<(), String> {
    let namespaced = case["namespaced"] == true;
    let rule = NameRule::of_kind(case["group"].as_str().unwrap(), case["kind"].as_str().unwrap());
    let mut metadata = unfolded(&case["metadata"]);
    let fields = metadata.as_object_mut().unwrap();
    match_namespace(fields, if namespaced { "default" } else { "" }).unwrap();
    let generated = fields.get("generateName").and_then(Value::as_str).map(|prefix| format!("{prefix}x7x7x"));
    if let Some(name) = generated {
        fields.insert(String::from("name"), name.into());
    }
    // The registry gives a namespace its name as a label before it looks at the labels.
    if case["kind"] == "Namespace" {
        let label = json!({ "kubernetes.io/metadata.name": fields.get("name") });
        fields.insert(String::from("labels"), label);
    }
    let in_metadata = |line: &&str| line.starts_with("metadata.");
    // A generated name is random, so that what is said about it cannot be recorded.
    let about_random =
        |line: &str| case["metadata"]["generateName"].is_string() && line.starts_with("metadata.name");
    let mut got = lines(&validate_create(&metadata, namespaced, rule, "metadata"));
    got.extend(lines(&validate_builtin_finalizers(&metadata, "metadata")));
    got.retain(|line| !about_random(line));
    let want = case["causes"].as_array().unwrap().iter().filter_map(Value::as_str);
    let want: Vec<&str> = want.filter(in_metadata).filter(|line| !about_random(line)).collect();
    if got == want { Ok(()) } else { Err(format!("{case}\n   got {got:#?}\n  want {want:#?}")) }
}

#[test]
fn metadata_is_judged_as_recorded() {
    check_all(include_str!("tests/metadata.json"), 150, check_recorded);
}

#[test]
fn two_controllers_are_refused() {
    let owner =
        |uid: &str| json!({ "apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid, "controller": true });
    let metadata = json!({ "name": "n", "ownerReferences": [owner("p"), owner("q")] });
    // FIXME: kube-apiserver prints `controller` last in each reference.
    assert_eq!(
        lines(&validate_create(&metadata, false, NameRule::Subdomain, "metadata")),
        ["metadata.ownerReferences: Invalid value: \
             [{\"apiVersion\":\"v1\",\"controller\":true,\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"p\"},\
             {\"apiVersion\":\"v1\",\"controller\":true,\"kind\":\"Pod\",\"name\":\"q\",\"uid\":\"q\"}]: Only one \
             reference can have Controller set to true. Found \"true\" in references for Pod/p and Pod/q",]
    );
}

fn stored() -> Value {
    json!({
        "name": "n", "namespace": "default", "uid": "u", "resourceVersion": "5", "generation": 2,
        "creationTimestamp": "2024-01-01T00:00:00Z",
    })
}

#[track_caller]
fn check_change(change: Value, old: Value, expected: &[&str]) {
    let mut new = old.clone();
    new.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    assert_eq!(lines(&validate_update(&new, &old, true, "metadata")), expected);
}

#[test]
fn changes_of_what_is_fixed_are_refused() {
    check_change(json!({}), stored(), &[]);
    check_change(
        json!({ "uid": "v" }),
        stored(),
        &["metadata.uid: Invalid value: \"v\": field is immutable"],
    );
    check_change(
        json!({ "name": "m" }),
        stored(),
        &["metadata.name: Invalid value: \"m\": field is immutable"],
    );
    check_change(
        json!({ "deletionTimestamp": "2020-01-01T00:00:00Z" }),
        stored(),
        &["metadata.deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable"],
    );
    check_change(
        json!({ "deletionGracePeriodSeconds": 5 }),
        stored(),
        &["metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"],
    );
    check_change(
        json!({ "generation": 1 }),
        stored(),
        &["metadata.generation: Invalid value: 1: must not be decremented"],
    );
    check_change(
        json!({ "resourceVersion": "" }),
        stored(),
        &["metadata.resourceVersion: Invalid value: \"\": must be specified for an update"],
    );
    check_change(
        json!({ "labels": { "a": "b" }, "finalizers": ["a/b/c"] }),
        stored(),
        &["metadata.finalizers: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric \
           characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  \
           or 'my.name',  or '123-abc', regex used for validation is \
           '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
           'example.com/MyName')"],
    );
}

#[test]
fn a_dying_object_gains_no_finalizer() {
    let mut old = stored();
    old["deletionTimestamp"] = "2024-01-02T00:00:00Z".into();
    old["finalizers"] = json!(["a/b"]);
    check_change(json!({ "finalizers": [] }), old.clone(), &[]);
    check_change(
        json!({ "finalizers": ["a/b", "c/d"] }),
        old,
        &[
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found \
           new finalizers []string{\"c/d\"}",
        ],
    );
}

#[test]
fn system_fields_come_from_the_stored_object() {
    let mut new =
        json!({ "name": "n", "uid": "", "generation": 9, "creationTimestamp": "2000-01-01T00:00:00Z" });
    keep_system_fields(new.as_object_mut().unwrap(), &stored());
    let expected = json!({
        "name": "n", "uid": "u", "generation": 2, "creationTimestamp": "2024-01-01T00:00:00Z",
    });
    assert_eq!(new, expected);
}

#[test]
fn a_foreign_namespace_is_refused() {
    let mut fields = Map::from_iter([(String::from("namespace"), json!("a"))]);
    let error = match_namespace(&mut fields, "b").unwrap_err();
    let expected = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!((error.code, error.message.as_str()), (400, expected));
    match_namespace(&mut fields, "").unwrap();
    assert!(fields.is_empty());
    match_namespace(&mut fields, "b").unwrap();
    assert_eq!(fields["namespace"], "b");
}

#[test]
fn finalizers_without_a_domain_are_warned_about() {
    let metadata = json!({ "finalizers": ["a", "b.c", "d.e/f", "orphan", "known"] });
    let advice = "to avoid accidental conflicts with other finalizer writers";
    assert_eq!(
        finalizer_warnings(&metadata, &json!({ "finalizers": ["known"] })),
        [
            format!("metadata.finalizers: \"a\": prefer a domain-qualified finalizer name {advice}"),
            format!(
                "metadata.finalizers: \"b.c\": prefer a domain-qualified finalizer name including a path (/) {advice}"
            ),
        ]
    );
}

#[test]
fn metadata_of_any_shape_is_answered() {
    for odd in
        [json!(null), json!(5), json!([1]), json!({ "labels": 5, "finalizers": { "a": 1 }, "name": [] })]
    {
        assert!(!validate_create(&odd, true, NameRule::Subdomain, "metadata").is_empty());
        assert!(!validate_update(&odd, &odd, true, "metadata").is_empty());
    }
}
