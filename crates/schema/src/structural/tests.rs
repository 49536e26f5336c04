//! Defaulting, pruning and decoding by tables; the laws they obey are tested with the custom kinds.

use serde_json::{Value, json};

use super::*;

fn deployment() -> Schema {
    Schema::from_openapi(&json!({
        "type": "object",
        "properties": {
            "metadata": { "type": "object", "properties": {
                "name": { "type": "string" },
                "creationTimestamp": { "type": "string", "format": "date-time" },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            } },
            "spec": { "type": "object", "properties": {
                "replicas": { "type": "integer", "format": "int32" },
                "paused": { "type": "boolean" },
                "seconds": { "type": "integer", "format": "int64" },
                "surge": { "x-kubernetes-int-or-string": true },
                "args": { "type": "array", "items": { "type": "string" } },
                "limits": { "type": "object", "additionalProperties": { "type": "string", "format": "quantity" } },
                "data": { "type": "string", "format": "byte" },
                "items": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "string" } } } },
                "raw": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            } },
        },
    }))
}

#[track_caller]
fn check_decode(object: Value, expected: &str) {
    let answer = decode_builtin(&object, &deployment(), "Deployment", "v1", |_| "");
    let expected = match expected {
        "" => Ok(()),
        text => Err((400, format!("Deployment in version \"v1\" cannot be handled as a Deployment: {text}"))),
    };
    assert_eq!(answer.map_err(|error| (error.code, error.message)), expected);
}

#[test]
fn wrong_types_are_reported_as_in_go() {
    let field = |found: &str, place: &str, wanted: &str| {
        format!("json: cannot unmarshal {found} into Go struct field {place} of type {wanted}")
    };
    let replicas = "DeploymentSpec.spec.replicas";
    check_decode(json!({ "spec": { "replicas": "x" } }), &field("string", replicas, "int32"));
    check_decode(json!({ "spec": { "replicas": 1.5 } }), &field("number 1.5", replicas, "int32"));
    check_decode(
        json!({ "spec": { "replicas": 99999999999_u64 } }),
        &field("number 99999999999", replicas, "int32"),
    );
    check_decode(json!({ "spec": { "replicas": [] } }), &field("array", replicas, "int32"));
    check_decode(json!({ "spec": { "seconds": 99999999999_u64 } }), "");
    check_decode(
        json!({ "spec": { "paused": "x" } }),
        &field("string", "DeploymentSpec.spec.paused", "bool"),
    );
    check_decode(
        json!({ "spec": { "args": "x" } }),
        &field("string", "DeploymentSpec.spec.args", "[]string"),
    );
    check_decode(json!({ "spec": { "args": [1] } }), &field("number", "DeploymentSpec.spec.args", "string"));
    check_decode(json!({ "spec": 5 }), &field("number", "Deployment.spec", "v1.DeploymentSpec"));
    check_decode(json!({ "metadata": 5 }), &field("number", "Deployment.metadata", "v1.ObjectMeta"));
    let labels = "ObjectMeta.metadata.labels";
    check_decode(json!({ "metadata": { "labels": { "a": 1 } } }), &field("number", labels, "string"));
    check_decode(json!({ "metadata": { "labels": [] } }), &field("array", labels, "map[string]string"));
    check_decode(json!({ "spec": { "surge": true } }), &field("bool", "DeploymentSpec.spec.surge", "int32"));
    check_decode(
        json!({ "spec": { "surge": "25%", "raw": { "a": [1] }, "limits": { "cpu": 1, "x": "1Gi" } } }),
        "",
    );
    check_decode(
        json!({ "metadata": { "creationTimestamp": "x" } }),
        "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
    );
    check_decode(
        json!({ "spec": { "limits": { "cpu": "x" } } }),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    check_decode(json!({ "spec": { "limits": { "cpu": "1ki" } } }), "unable to parse quantity's suffix");
    check_decode(json!({ "spec": { "data": "!!" } }), "illegal base64 data at input byte 0");
    check_decode(json!({ "spec": null, "metadata": { "creationTimestamp": null } }), "");
}

#[test]
fn nulls_become_absent_or_zero() {
    let mut object = json!({
        "metadata": { "creationTimestamp": null, "labels": { "a": null } },
        "spec": { "args": [null, "a"], "items": [null], "raw": { "keep": null }, "paused": null, "limits": { "cpu": null } },
    });
    drop_nulls(&mut object, &deployment());
    let expected = json!({
        "metadata": { "labels": { "a": "" } },
        "spec": { "args": ["", "a"], "items": [{}], "raw": { "keep": null }, "limits": { "cpu": "0" } },
    });
    assert_eq!(object, expected);
}

#[test]
fn unknown_fields_are_found_by_path() {
    let object = json!({
        "top": 1,
        "metadata": { "q": 1, "labels": { "any": "x" } },
        "spec": { "foo": 1, "items": [{ "n": "a" }, { "zz": 1 }], "raw": { "any": 1 } },
    });
    assert_eq!(unknown_fields(&object, &deployment()), ["metadata.q", "spec.foo", "spec.items[1].zz", "top"]);
}

#[test]
fn duplicates_are_found_by_path() {
    let raw = br#"{"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"replicas":1,"replicas":2,"replicas":3,
        "items":[{"n":"a","n":"b"}],"x":{"n":1}}}"#;
    let expected = ["metadata.labels.a", "spec.replicas", "spec.items[0].n"];
    assert_eq!(duplicate_fields(raw), expected);
    assert_eq!(duplicate_fields(br#"{"a":1,"a":2,"#), ["a"]);
    assert!(duplicate_fields(b"\xff{").is_empty());
    assert!(duplicate_fields("[".repeat(100_000).as_bytes()).is_empty());
    let many: String = (0..300).map(|n| format!("\"k{n}\":1,\"k{n}\":1,")).collect();
    assert_eq!(duplicate_fields(format!("{{{many}\"z\":1}}").as_bytes()).len(), 100);
}

#[test]
fn strict_decoding_is_worded_as_kubernetes_words_it() {
    let lines = strict_lines(&[String::from("spec.replicas")], &[String::from("spec.foo")]);
    assert_eq!(lines, ["duplicate field \"spec.replicas\"", "unknown field \"spec.foo\""]);
    let error = strict_error("Deployment", "v1", &lines);
    let expected = "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: \
                    duplicate field \"spec.replicas\", unknown field \"spec.foo\"";
    assert_eq!((error.code, error.message.as_str()), (400, expected));
}

/// What kube-apiserver 1.35.4 says of strategic merge patches with these values.
#[test]
fn patched_objects_are_refused_in_the_words_of_the_converter() {
    let check = |spec: Value, expected: Option<&str>| {
        let object = json!({ "spec": spec });
        let fault = converter_fault(&object, &deployment(), "Deployment", |_| "");
        assert_eq!(fault.as_deref(), expected, "{object}");
    };
    check(json!({ "replicas": 1, "paused": true, "args": ["a"], "surge": "1%", "data": "YQ==" }), None);
    check(json!({ "replicas": "many" }), Some("unrecognized type: int32"));
    check(json!({ "replicas": 1.5 }), Some("cannot convert float64 to int32"));
    check(json!({ "paused": 1 }), Some("unrecognized type: bool"));
    check(json!({ "args": "a" }), Some("cannot restore slice from string"));
    check(json!({ "args": [1] }), Some("cannot convert int64 to string"));
    check(json!({ "args": [true] }), Some("unrecognized type: string"));
    check(json!({ "limits": "a" }), Some("cannot restore map from string"));
    check(json!({ "items": ["a"] }), Some("cannot restore struct from: string"));
    check(json!({ "surge": true }), Some("json: cannot unmarshal bool into Go value of type int32"));
    check(json!({ "data": "%%" }), Some("error decoding from json: illegal base64 data at input byte 0"));
}
