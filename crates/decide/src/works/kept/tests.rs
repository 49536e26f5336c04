//! M5: Works as Karmada v1.18 renders them are left as they are, and only until something changes.

use api::records::Pin;
use api::{Binding, Cluster, OverridePolicy};
use serde_json::json;

use super::super::{Sources, namespace_works, works};
use super::*;
use crate::template::Template;

fn template(object: &Value) -> Template {
    Template::read(object).expect("a template")
}

fn member() -> [Cluster; 1] {
    [Cluster::new(&api::kinds::CLUSTER, "", "m1")]
}

/// The binding of a template that a policy sends to `m1`.
fn binding(template: &Template) -> Binding {
    let mut binding: Binding = serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {
            "name": template.key.binding().name, "namespace": template.key.namespace,
            "labels": {
                "resourcebinding.karmada.io/permanent-id": "rb-id",
                "propagationpolicy.karmada.io/permanent-id": "pp-id",
            },
            "annotations": { "propagationpolicy.karmada.io/name": "pp" },
        },
        "spec": {
            "resource": template.key.as_ref(), "clusters": [{ "name": "m1" }], "preserveResourcesOnDeletion": false,
        },
    }))
    .expect("a binding");
    Pin { template: template.digest.clone(), ..Pin::default() }.write(&mut binding.metadata);
    binding
}

fn work(labels: Value, annotations: Value, owner: Value, spec: Value) -> Work {
    serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {
            "namespace": "karmada-es-m1", "name": annotations["work.karmada.io/name"], "generation": 1,
            "finalizers": ["karmada.io/execution-controller"], "labels": labels, "ownerReferences": owner,
        },
        "spec": spec,
    }))
    .expect("a work")
}

fn sorted_keys(map: &Value) -> String {
    let mut keys: Vec<&str> = map.as_object().expect("a map").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.join(",")
}

/// The annotations of a manifest with the two lists that Karmada keeps of its keys.
fn with_lists(mut annotations: Value, labels: &Value) -> Value {
    for list in ["managed-annotations", "managed-labels"] {
        annotations[format!("resourcetemplate.karmada.io/{list}")] = "".into();
    }
    annotations["resourcetemplate.karmada.io/managed-annotations"] = sorted_keys(&annotations).into();
    annotations["resourcetemplate.karmada.io/managed-labels"] = sorted_keys(labels).into();
    annotations
}

/// What Karmada's binding controller makes of a manifest whose own labels and annotations are these.
fn of_binding(
    template: &Template,
    mut manifest: Value,
    own: (&Value, &Value),
    suspended: Option<bool>,
) -> Work {
    let name = api::names::work_name(&template.key.kind, &template.key.name, &template.key.namespace);
    let mut labels = own.0.clone();
    for (key, value) in [
        ("resourcebinding.karmada.io/permanent-id", "rb-id"),
        ("karmada.io/managed", "true"),
        ("work.karmada.io/permanent-id", "work-id"),
    ] {
        labels[key] = value.into();
    }
    let mut annotations = own.1.clone();
    for (key, value) in [
        ("resourcebinding.karmada.io/namespace", template.key.namespace.as_str()),
        ("resourcebinding.karmada.io/name", &template.key.binding().name),
        ("resourcetemplate.karmada.io/uid", &template.uid),
        ("resourcetemplate.karmada.io/generation", "1"),
        ("work.karmada.io/name", &name),
        ("work.karmada.io/namespace", "karmada-es-m1"),
        ("work.karmada.io/conflict-resolution", "abort"),
    ] {
        annotations[key] = value.into();
    }
    let annotations = with_lists(annotations, &labels);
    manifest["metadata"] = json!({
        "name": template.key.name, "namespace": template.key.namespace, "labels": labels, "annotations": annotations,
    });
    let spec = json!({
        "workload": { "manifests": [manifest] },
        "suspendDispatching": suspended, "preserveResourcesOnDeletion": false,
    });
    let marks = json!({
        "resourcebinding.karmada.io/permanent-id": "rb-id", "work.karmada.io/permanent-id": "work-id",
    });
    work(marks, annotations, json!([]), spec)
}

#[track_caller]
fn stays(template: &Template, overrides: &[OverridePolicy], karmadas: &Work) {
    let answer = rendered(template, overrides, karmadas);
    assert_eq!(answer.spec, karmadas.spec, "{:#}", answer.spec.workload.manifests[0]);
}

fn rendered(template: &Template, overrides: &[OverridePolicy], existing: &Work) -> Work {
    let (clusters, existing) = (member(), [existing.clone()]);
    let sources = Sources {
        template: Some(template),
        overrides,
        clusters: &clusters,
        existing: &existing,
        needed_in: &[],
    };
    works(&binding(template), sources).works["m1"].clone()
}

fn claim() -> (Value, Value) {
    let labels = json!({ "propagationpolicy.karmada.io/permanent-id": "pp-id" });
    (labels, json!({ "propagationpolicy.karmada.io/name": "pp" }))
}

#[test]
fn m5_a_job_keeps_the_rest_of_its_selector_until_it_changes() {
    let (labels, annotations) = claim();
    let pods =
        |labels: Value| json!({ "metadata": { "labels": labels }, "spec": { "restartPolicy": "Never" } });
    let generated = json!({ "batch.kubernetes.io/controller-uid": "u", "controller-uid": "u", "app": "j" });
    let job = |parallelism: i64| {
        let selector = json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": "u" } });
        template(&json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": "j", "namespace": "default", "uid": "u", "generation": 1,
                "labels": labels, "annotations": annotations,
            },
            "spec": {
                "parallelism": parallelism, "selector": selector, "template": pods(generated.clone()),
            },
        }))
    };
    let manifest = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "spec": {
            "parallelism": 1, "selector": { "matchLabels": {} }, "template": pods(json!({ "app": "j" })),
        },
    });
    let karmadas = of_binding(&job(1), manifest, (&labels, &annotations), Some(false));
    stays(&job(1), &[], &karmadas);
    stays(
        &job(1),
        &[],
        &Work {
            spec: api::work::WorkSpec { suspend_dispatching: None, ..karmadas.spec.clone() },
            ..karmadas.clone()
        },
    );

    let changed = rendered(&job(2), &[], &karmadas);
    assert!(changed.spec.workload.manifests[0]["spec"].get("selector").is_none(), "ours from now on");
    let mut edited = karmadas.clone();
    edited.spec.workload.manifests[0]["spec"]["selector"]["matchLabels"]["app"] = "other".into();
    assert_ne!(rendered(&job(1), &[], &edited).spec, edited.spec, "Karmada never wrote that");
}

#[test]
fn m5_annotations_that_an_override_replaced_stay_as_it_left_them() {
    let (labels, annotations) = claim();
    let object = template(&json!({
        "apiVersion": "example.com/v1", "kind": "Car",
        "metadata": {
            "name": "mini", "namespace": "default", "uid": "u", "generation": 1,
            "labels": labels, "annotations": annotations,
        },
        "spec": { "doors": 2 },
    }));
    let replace = |value: Value| -> OverridePolicy {
        let plaintext = json!([{ "path": "/metadata/annotations", "operator": "replace", "value": value }]);
        serde_json::from_value(json!({
            "metadata": { "name": "o", "namespace": "default" },
            "spec": { "overrideRules": [{ "overriders": { "plaintext": plaintext } }] },
        }))
        .expect("an override policy")
    };
    let manifest = json!({ "apiVersion": "example.com/v1", "kind": "Car", "spec": { "doors": 2 } });
    let karmadas = of_binding(&object, manifest, (&labels, &json!({ "note": "of the member" })), Some(false));
    stays(&object, &[replace(json!({ "note": "of the member" }))], &karmadas);

    let forged = json!({ "note": "of the member", "propagationpolicy.karmada.io/name": "another" });
    let answer = rendered(&object, &[replace(forged)], &karmadas);
    let claimed =
        &answer.spec.workload.manifests[0]["metadata"]["annotations"]["propagationpolicy.karmada.io/name"];
    assert_eq!(claimed, "pp", "a claim cannot be made up");
}

#[test]
fn m5_a_token_without_data_and_a_namespace_with_its_finalizers_stay() {
    let (labels, annotations) = claim();
    let token = template(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": "t", "namespace": "default", "uid": "u", "generation": 1,
            "labels": labels, "annotations": annotations,
        },
        "data": { "token": "c2VjcmV0" },
    }));
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "data": null,
    });
    stays(&token, &[], &of_binding(&token, manifest, (&labels, &annotations), Some(false)));

    let namespace = |owner: &str| {
        template(&json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": "team", "uid": "u", "resourceVersion": "3", "labels": { "owner": owner } },
            "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
        }))
    };
    let name = api::names::work_name("Namespace", "team", "");
    let labels = json!({
        "owner": "me", "karmada.io/managed": "true", "work.karmada.io/permanent-id": "work-id",
    });
    let annotations = json!({
        "resourcetemplate.karmada.io/uid": "u", "work.karmada.io/name": name,
        "work.karmada.io/namespace": "karmada-es-m1",
    });
    let manifest = json!({
        "apiVersion": "v1", "kind": "Namespace", "spec": { "finalizers": ["kubernetes"] },
        "metadata": { "name": "team", "labels": labels, "annotations": with_lists(annotations.clone(), &labels) },
    });
    let owner = json!([{
        "apiVersion": "v1", "kind": "Namespace", "name": "team", "uid": "u", "controller": true,
        "blockOwnerDeletion": true,
    }]);
    let spec = json!({ "workload": { "manifests": [manifest] } });
    let karmadas = work(json!({ "work.karmada.io/permanent-id": "work-id" }), annotations, owner, spec);
    let (clusters, existing) = (member(), [karmadas.clone()]);
    let sources =
        Sources { template: None, overrides: &[], clusters: &clusters, existing: &existing, needed_in: &[] };
    assert_eq!(namespace_works(&namespace("me"), sources)["m1"].spec, karmadas.spec);
    let changed = &namespace_works(&namespace("you"), sources)["m1"];
    assert!(changed.spec.workload.manifests[0].get("spec").is_none(), "ours from now on");
}
