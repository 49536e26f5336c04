//! Tables against the rows that kube-apiserver answered.

use serde_json::{Value, json};

use super::*;

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Objects with the rows that kube-apiserver 1.35.4 answered for them.
#[test]
fn builtin_kinds_print_as_in_kubernetes() {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("../kubernetes-1.35.json")).unwrap();
    assert!(recorded.len() > 80);
    let mut wrong = Vec::new();
    for record in &recorded {
        let text = |field: &str| record[field].as_str().unwrap();
        let printer = Printer::builtin(text("group"), text("kind"));
        let columns: Vec<String> = printer
            .columns
            .iter()
            .map(|column| format!("{}:{}:{}:{}", column.name, column.kind, column.format, column.priority))
            .collect();
        let object = if record["object"].is_null() { &record["stored"] } else { &record["object"] };
        let row = printer.row(object, moment(text("now")));
        let name = &object["metadata"]["name"];
        if json!(columns) != record["columns"] {
            wrong.push(format!("{name}: {columns:?} != {}", record["columns"]));
        }
        if json!(row.cells) != record["cells"] {
            wrong.push(format!("{name}: {} != {}", json!(row.cells), record["cells"]));
        }
        if row.conditions != record["conditions"] {
            wrong.push(format!("{name}: {} != {}", row.conditions, record["conditions"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn cells(group: &str, kind: &str, object: Value) -> Value {
    json!(Printer::builtin(group, kind).row(&object, moment("2026-01-10T00:00:00Z")).cells)
}

/// States that a server does not let a client create.
#[test]
fn objects_on_their_way_out() {
    let gone = json!({ "name": "a", "creationTimestamp": "2026-01-09T23:59:00Z", "deletionTimestamp": "2026-01-10T00:00:00Z" });
    let pod = json!({ "metadata": gone, "spec": { "containers": [{ "name": "c" }] }, "status": { "phase": "Running" } });
    assert_eq!(cells("", "Pod", pod.clone())[2], "Terminating");
    let mut lost = pod.clone();
    lost["status"]["reason"] = "NodeLost".into();
    assert_eq!(cells("", "Pod", lost)[2], "Unknown");
    let mut done = pod;
    done["status"]["phase"] = "Succeeded".into();
    assert_eq!(cells("", "Pod", done)[2], "Succeeded");
    assert_eq!(cells("batch", "Job", json!({ "metadata": gone }))[1], "Terminating");
    assert_eq!(cells("", "PersistentVolumeClaim", json!({ "metadata": gone }))[1], "Terminating");
}

#[test]
fn api_services_and_requests() {
    let metadata = json!({ "name": "a", "creationTimestamp": "2026-01-09T23:59:00Z" });
    let conditions = json!([{ "type": "Available", "status": "False", "reason": "Missing" }]);
    let service = json!({ "metadata": metadata, "spec": { "service": { "name": "s", "namespace": "n" } }, "status": { "conditions": conditions } });
    assert_eq!(
        cells("apiregistration.k8s.io", "APIService", service),
        json!(["a", "n/s", "False (Missing)", "60s"])
    );
    let request = json!({ "metadata": metadata, "spec": { "signerName": "x", "username": "u" },
        "status": { "certificate": "Zg==", "conditions": [{ "type": "Approved" }, { "type": "Failed" }] } });
    let expected = json!(["a", "60s", "x", "u", "<none>", "Approved,Failed,Issued"]);
    assert_eq!(cells("certificates.k8s.io", "CertificateSigningRequest", request), expected);
}

#[test]
fn custom_kinds_print_their_columns() {
    let printer = Printer::custom(&json!([
        { "name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big" },
        { "name": "Half", "type": "number", "jsonPath": ".spec.half", "priority": 1 },
        { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
        { "name": "On", "type": "boolean", "jsonPath": ".spec.on" },
        { "name": "Since", "type": "date", "jsonPath": ".status.since" },
        { "name": "Map", "type": "string", "jsonPath": ".spec" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "format": "x" },
    ]));
    let columns = &printer.columns;
    assert_eq!(columns[0].name, "Name");
    assert_eq!(columns[1].description, "How big");
    assert_eq!(columns[2].description, "Custom resource definition column (in JSONPath format): .spec.half");
    assert_eq!((columns[2].priority, &*columns[7].format), (1, "x"));
    let object = json!({
        "metadata": { "name": "a", "creationTimestamp": "2026-01-09T23:59:00Z" },
        "spec": { "size": 3, "half": 2, "on": "yes" },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }], "since": "soon" },
    });
    let cells = printer.row(&object, moment("2026-01-10T00:00:00Z")).cells;
    let map = r#"{"half":2,"on":"yes","size":3}"#;
    assert_eq!(json!(cells), json!(["a", 3, 2.0, "True", null, "<invalid>", map, "60s"]));
    let empty = printer.row(&json!({ "metadata": { "name": "b" } }), moment("2026-01-10T00:00:00Z")).cells;
    assert_eq!(json!(empty), json!(["b", null, null, null, null, null, null, null]));
    let plain = Printer::custom(&Value::Null);
    assert_eq!(plain.columns.iter().map(|column| &*column.name).collect::<Vec<_>>(), ["Name", "Age"]);
}

#[test]
fn tables_carry_what_was_asked_for() {
    let object =
        json!({ "kind": "ConfigMap", "metadata": { "name": "a", "resourceVersion": "7" }, "data": {} });
    let printer = Printer::builtin("", "ConfigMap");
    let table = |include: &str, with_columns: bool| {
        let include = IncludeObject::parse(include).unwrap();
        let now = moment("2026-01-10T00:00:00Z");
        let table = printer.table([&object], &object["metadata"], include, with_columns, now);
        serde_json::to_value(table).unwrap()
    };
    let metadata = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"] });
    assert_eq!(table("", true)["rows"], json!([{ "cells": ["a", 0, "<unknown>"], "object": metadata }]));
    assert_eq!(table("Object", true)["rows"][0]["object"], object);
    assert_eq!(table("None", true)["rows"][0]["object"], Value::Null);
    assert_eq!(table("", true)["metadata"], json!({ "resourceVersion": "7" }));
    assert_eq!(table("", true)["columnDefinitions"][0]["format"], "name");
    assert_eq!(table("", false)["columnDefinitions"], Value::Null);
    assert_eq!(
        (&table("", true)["kind"], &table("", true)["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    let list = json!({ "resourceVersion": "9", "continue": "c", "remainingItemCount": 3 });
    let partial = serde_json::to_value(PartialObjectMetadataList::of([&object], &list)).unwrap();
    let expected = json!({ "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": list, "items": [metadata] });
    assert_eq!(partial, expected);
    let error = IncludeObject::parse("Foo").unwrap_err();
    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be 'Metadata', 'Object', 'None', or empty";
    assert_eq!((error.code, error.message.as_str()), (400, message));
}
