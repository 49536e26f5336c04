//! Defaults, resets and generations against objects that kube-apiserver stored.

use serde_json::{Value, json};

use super::*;

/// Manifests, and what kube-apiserver 1.35.4 stored for them.
fn recorded() -> Vec<Value> {
    serde_json::from_str(include_str!("kubernetes-1.35.json")).unwrap()
}

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap()
}

/// What the server adds that is neither a default nor a reset, taken from the recorded object.
fn with_system_fields(record: &Value) -> Value {
    let (mut object, stored) = (record["input"].clone(), &record["stored"]);
    for field in ["namespace", "creationTimestamp", "generation"] {
        if let Some(value) = stored["metadata"].get(field) {
            object["metadata"][field] = value.clone();
        }
    }
    match text(record, "kind") {
        "Job" => {
            let uid = &stored["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"];
            object["metadata"]["uid"] = uid.clone();
        }
        "CertificateSigningRequest" => object["spec"] = stored["spec"].clone(),
        _ => {}
    }
    object
}

/// Fields that the server fills with what it alone knows.
fn without_moments(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("uid");
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
        status.remove("conditions");
        // A Node's empty description is a list of empty texts in Go.
        status.remove("nodeInfo");
        status.remove("daemonEndpoints");
    }
    object
}

fn differences(ours: &Value, theirs: &Value, path: &str, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) => differences(one, other, &format!("{path}.{key}"), found),
                    (one, other) => found.push(format!("{path}.{key}: {one:?} != {other:?}")),
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(one, other, &format!("{path}[{index}]"), found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}: {ours} != {theirs}")),
    }
}

#[test]
fn objects_are_stored_as_kubernetes_stores_them() {
    let mut wrong = Vec::new();
    for record in &recorded() {
        let (group, kind) = (text(record, "group"), text(record, "kind"));
        let mut object = with_system_fields(record);
        apply_defaults(group, kind, &mut object);
        prepare_for_create(group, kind, &mut object);
        if (group, kind) == ("", "Service") {
            allocate_service(&mut object, None, || None, || None);
        }
        let (object, stored) = (without_moments(object), without_moments(record["stored"].clone()));
        differences(&object, &stored, &format!("{kind} {}", stored["metadata"]["name"]), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn defaults_are_stable() {
    for record in &recorded() {
        let mut again = record["stored"].clone();
        apply_defaults(text(record, "group"), text(record, "kind"), &mut again);
        assert_eq!(again, record["stored"], "{}", record["stored"]["metadata"]["name"]);
    }
}

#[test]
fn kinds_with_generations_are_those_of_kubernetes() {
    for record in &recorded() {
        let (group, kind) = (text(record, "group"), text(record, "kind"));
        let counted = record["stored"]["metadata"].get("generation").is_some();
        assert_eq!(has_generation(group, kind), counted, "{group} {kind}");
    }
}

#[test]
fn nothing_panics_on_odd_shapes() {
    let odd = [
        json!(null),
        json!([]),
        json!("x"),
        json!({ "spec": [1], "metadata": 3, "status": "s", "webhooks": {} }),
    ];
    for record in &recorded() {
        let (group, kind) = (text(record, "group"), text(record, "kind"));
        for value in &odd {
            let mut object = value.clone();
            apply_defaults(group, kind, &mut object);
            prepare_for_create(group, kind, &mut object);
            prepare_for_update(group, kind, &mut object, value);
            prepare_for_status_update(group, kind, &mut object, &record["stored"]);
            allocate_service(&mut object, Some(value), || Some(String::from("10.0.0.1")), || Some(30_000));
        }
    }
}

#[test]
fn updates_keep_the_status_and_status_updates_the_rest() {
    let old = json!({ "metadata": { "name": "a", "labels": { "x": "1" } }, "spec": { "replicas": 1 }, "status": { "replicas": 1 } });
    let new = json!({ "metadata": { "name": "a", "labels": { "x": "2" } }, "spec": { "replicas": 5 }, "status": { "replicas": 5 } });
    let mut main = new.clone();
    prepare_for_update("apps", "Deployment", &mut main, &old);
    assert_eq!((&main["spec"], &main["status"]), (&new["spec"], &old["status"]));
    assert!(is_new_generation("apps", "Deployment", &main, &old));
    let mut status = new.clone();
    prepare_for_status_update("apps", "Deployment", &mut status, &old);
    assert_eq!((&status["spec"], &status["status"]), (&old["spec"], &new["status"]));
    assert_eq!(status["metadata"]["labels"]["x"], "1");
    assert!(!is_new_generation("apps", "Deployment", &status, &old));
    let mut statefulset = new.clone();
    prepare_for_status_update("apps", "StatefulSet", &mut statefulset, &old);
    assert_eq!(statefulset["metadata"]["labels"]["x"], "2");
    assert!(!is_new_generation("", "ConfigMap", &json!({ "data": { "a": "b" } }), &json!({})));
}

#[test]
fn daemon_sets_count_their_templates() {
    let template = |image: &str| json!({ "spec": { "containers": [{ "image": image }] } });
    let old = json!({ "metadata": { "annotations": { "deprecated.daemonset.template.generation": "4" } }, "spec": { "template": template("a") } });
    let check = |image: &str, expected: &str| {
        let mut new = json!({ "metadata": {}, "spec": { "template": template(image) } });
        prepare_for_update("apps", "DaemonSet", &mut new, &old);
        assert_eq!(new["metadata"]["annotations"]["deprecated.daemonset.template.generation"], expected);
    };
    check("a", "4");
    check("b", "5");
}

#[test]
fn services_get_and_keep_addresses() {
    let mut service = json!({ "spec": { "type": "NodePort", "ports": [{ "port": 80 }, { "port": 443, "nodePort": 30443 }] } });
    apply_defaults("", "Service", &mut service);
    allocate_service(&mut service, None, || Some(String::from("10.0.0.7")), || Some(31_000));
    assert_eq!(service["spec"]["clusterIPs"], json!(["10.0.0.7"]));
    assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(service["spec"]["ports"][0]["nodePort"], 31_000);
    assert_eq!(service["spec"]["ports"][1]["nodePort"], 30_443);
    let mut again = json!({ "spec": { "type": "NodePort", "ports": [{ "port": 80 }] } });
    apply_defaults("", "Service", &mut again);
    allocate_service(&mut again, Some(&service), || None, || None);
    assert_eq!(again["spec"]["clusterIP"], "10.0.0.7");
    assert_eq!(again["spec"]["ports"][0]["nodePort"], 31_000);
    let mut external = json!({ "spec": { "type": "ExternalName", "externalName": "x" } });
    apply_defaults("", "Service", &mut external);
    allocate_service(&mut external, None, || Some(String::from("10.0.0.8")), || Some(1));
    assert_eq!(external["spec"].get("clusterIP"), None);
}

#[test]
fn pods_are_classed_by_what_they_ask_for() {
    let check = |resources: Value, class: &str| {
        let mut pod = json!({ "spec": { "containers": [{ "name": "a", "resources": resources }] } });
        apply_defaults("", "Pod", &mut pod);
        prepare_for_create("", "Pod", &mut pod);
        assert_eq!(pod["status"]["qosClass"], class, "{pod}");
    };
    check(json!({}), "BestEffort");
    check(json!({ "requests": { "cpu": "1" } }), "Burstable");
    check(json!({ "limits": { "cpu": "1", "memory": "1Gi" } }), "Guaranteed");
    check(json!({ "limits": { "cpu": "1" } }), "Burstable");
}

#[test]
fn annotations_of_deployments_begin_a_generation() {
    let annotated = |annotations: Value| json!({ "metadata": { "annotations": annotations }, "spec": {} });
    let check = |group: &str, kind: &str, annotations: Value, expected: bool| {
        let (old, new) = (annotated(json!({})), annotated(annotations.clone()));
        assert_eq!(is_new_generation(group, kind, &new, &old), expected, "{kind} {annotations}");
    };
    check("apps", "Deployment", json!({ "a": "b" }), true);
    check("apps", "Deployment", Value::Null, false);
    check("apps", "StatefulSet", json!({ "a": "b" }), false);
}
