//! PrepareForCreate and PrepareForUpdate: resets fields that a write may not set, such as the status of a new object,
//! and decides whether a change is a new generation. Must not know about validation.

use serde_json::{Map, Value, json};

use super::fill::Fill::Object;
use super::fill::{each, fill, object, set};
use apimachinery::quantity::Quantity;

/// Kinds whose status is written through `/status` only, with the status of a new object.
const FRESH_STATUS: &[(&str, &str, &str)] = &[
    ("", "Namespace", r#"{"phase":"Active"}"#),
    ("", "PersistentVolume", r#"{"phase":"Pending"}"#),
    ("", "PersistentVolumeClaim", r#"{"phase":"Pending"}"#),
    ("", "Pod", r#"{"phase":"Pending"}"#),
    ("", "ReplicationController", r#"{"replicas":0}"#),
    ("", "ResourceQuota", "{}"),
    ("", "Service", r#"{"loadBalancer":{}}"#),
    (
        "apps",
        "DaemonSet",
        r#"{"currentNumberScheduled":0,"desiredNumberScheduled":0,"numberMisscheduled":0,"numberReady":0}"#,
    ),
    ("apps", "Deployment", "{}"),
    ("apps", "ReplicaSet", r#"{"replicas":0}"#),
    ("apps", "StatefulSet", r#"{"availableReplicas":0,"replicas":0}"#),
    ("batch", "CronJob", "{}"),
    ("batch", "Job", "{}"),
    ("autoscaling", "HorizontalPodAutoscaler", r#"{"currentMetrics":null,"desiredReplicas":0}"#),
    ("networking.k8s.io", "Ingress", r#"{"loadBalancer":{}}"#),
    ("networking.k8s.io", "ServiceCIDR", "{}"),
    (
        "policy",
        "PodDisruptionBudget",
        r#"{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0}"#,
    ),
    ("storage.k8s.io", "VolumeAttachment", r#"{"attached":false}"#),
    ("certificates.k8s.io", "CertificateSigningRequest", "{}"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "{}"),
    ("apiregistration.k8s.io", "APIService", "{}"),
];

/// Kinds that count their generations.
const GENERATIONS: &[(&str, &[&str])] = &[
    ("", &["Pod", "PodTemplate", "ReplicationController"]),
    ("apps", &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
    ("batch", &["CronJob", "Job"]),
    ("networking.k8s.io", &["Ingress", "IngressClass", "NetworkPolicy"]),
    ("discovery.k8s.io", &["EndpointSlice"]),
    ("policy", &["PodDisruptionBudget"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
];

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Resets what a client may not set on create. Expects `metadata.uid` and the defaults to be there.
pub fn prepare_for_create(group: &str, kind: &str, value: &mut Value) {
    if let Some(status) = fresh_status(group, kind, value) {
        set(value, "status", status);
    }
    match (group, kind) {
        ("", "Pod") => {
            let class = quality_of_service(&value["spec"]);
            each(value, "status", &mut |status| set(status, "qosClass", class));
        }
        ("", "Namespace") => namespace_finalizer(value),
        ("", "Node") => fill(value, NODE_STATUS),
        ("apps", "DaemonSet") => template_generation(value, 1),
        ("batch", "Job") => job_selector(value),
        _ => {}
    }
}

/// Resets what an update of the main resource may not touch: the status stays as it was.
pub fn prepare_for_update(group: &str, kind: &str, new: &mut Value, old: &Value) {
    if has_status(group, kind) || (group, kind) == ("", "Node") {
        keep(new, old, "status");
    }
    match (group, kind) {
        ("", "Namespace") => {
            let finalizers = old["spec"]["finalizers"].clone();
            if let Some(spec) = object(new, "spec") {
                spec.insert(String::from("finalizers"), finalizers);
            }
        }
        ("", "Service") => super::retype::drop_fields_of_old_type(new, old),
        ("certificates.k8s.io", "CertificateSigningRequest") => keep(new, old, "spec"),
        ("apps", "DaemonSet") => {
            let changed = new["spec"]["template"] != old["spec"]["template"];
            let before = old["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
            let before = before.and_then(|number| number.parse::<i64>().ok()).unwrap_or(0);
            template_generation(new, before + i64::from(changed));
        }
        _ => {}
    }
}

/// Resets what an update of `/status` may not touch: everything but the status, and of the metadata what
/// decides about the object's life.
pub fn prepare_for_status_update(group: &str, kind: &str, new: &mut Value, old: &Value) {
    let status = new.get_mut("status").map(Value::take);
    let metadata = new.get_mut("metadata").map(Value::take);
    *new = old.clone();
    if let Some(status) = status {
        set(new, "status", status);
    }
    let Some(mut metadata) = metadata else { return };
    let kept: &[&str] = match (group, kind) {
        ("", "Pod") => &["deletionTimestamp", "ownerReferences"],
        ("apps", "Deployment" | "DaemonSet") => &["labels"],
        _ => &[],
    };
    kept.iter().for_each(|field| keep(&mut metadata, &old["metadata"], field));
    set(new, "metadata", metadata);
}

/// The deprecation warning of a deprecated kind.
pub fn deprecation(group: &str, kind: &str) -> Option<String> {
    let text = match (group, kind) {
        ("", "Endpoints") => "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ("", "ComponentStatus") => "v1 ComponentStatus is deprecated in v1.19+",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Whether a built-in kind has a status that only `/status` writes.
fn has_status(group: &str, kind: &str) -> bool {
    FRESH_STATUS.iter().any(|(in_group, name, _)| (*in_group, *name) == (group, kind))
}

/// Whether a built-in kind counts generations at all; a new object of such a kind has generation 1.
pub fn has_generation(group: &str, kind: &str) -> bool {
    GENERATIONS.iter().any(|(in_group, kinds)| *in_group == group && kinds.contains(&kind))
}

/// Whether an update begins a new generation: anything outside metadata and status changed. Deployments
/// also count their annotations, because their controller copies them to replica sets.
pub fn is_new_generation(group: &str, kind: &str, new: &Value, old: &Value) -> bool {
    let outside = |value: &Value, field: &str| {
        !matches!(field, "metadata" | "status" | "apiVersion" | "kind") && !value.is_null()
    };
    let fields = |object: &Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields
            .filter(|(field, value)| outside(value, field))
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect()
    };
    let annotated = (group, kind) == ("apps", "Deployment") && annotations(new) != annotations(old);
    has_generation(group, kind) && kind != "PriorityClass" && (annotated || fields(new) != fields(old))
}

/// Without any is the same as not having them.
fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object["metadata"]["annotations"].as_object().filter(|annotations| !annotations.is_empty())
}

fn fresh_status(group: &str, kind: &str, value: &Value) -> Option<Value> {
    if kind == "HorizontalPodAutoscaler" && value["apiVersion"] == "autoscaling/v1" {
        return Some(json!({ "currentReplicas": 0, "desiredReplicas": 0 }));
    }
    let found = FRESH_STATUS.iter().find(|(in_group, name, _)| (*in_group, *name) == (group, kind));
    found.map(|(_, _, status)| serde_json::from_str(status).expect("the table holds JSON"))
}

const NODE_STATUS: &[super::fill::Rule] = &[
    ("status", Object),
    ("status.daemonEndpoints", Object),
    ("status.daemonEndpoints.kubeletEndpoint", Object),
    ("status.nodeInfo", Object),
];

fn keep(new: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(kept) => set(new, field, kept.clone()),
        None => drop(new.as_object_mut().and_then(|fields| fields.remove(field))),
    }
}

fn namespace_finalizer(value: &mut Value) {
    let Some(spec) = object(value, "spec") else { return };
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut().filter(|list| !list.contains(&json!("kubernetes"))) {
        finalizers.push("kubernetes".into());
    }
}

fn template_generation(value: &mut Value, generation: i64) {
    let annotations = value.get_mut("metadata").and_then(|metadata| object(metadata, "annotations"));
    if let Some(annotations) = annotations {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}

/// A Job finds its Pods by its own uid, unless it brings a selector.
fn job_selector(value: &mut Value) {
    if value["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (value["metadata"]["uid"].clone(), value["metadata"]["name"].clone());
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    // Labels that the Job took from its template are one map in kube-apiserver, and grow together.
    let shared = value["metadata"]["labels"] == value["spec"]["template"]["metadata"]["labels"];
    let holders: &[&str] =
        if shared { &["spec.template.metadata", "metadata"] } else { &["spec.template.metadata"] };
    for path in holders {
        each(value, path, &mut |metadata| {
            let Some(fields) = object(metadata, "labels") else { return };
            for (key, label) in labels {
                fields.insert(key.to_owned(), label.clone());
            }
        });
    }
    each(value, "spec", &mut |spec| {
        let Some(selector) = object(spec, "selector") else { return };
        let matched = selector.entry("matchLabels").or_insert_with(|| json!({}));
        set(matched, "batch.kubernetes.io/controller-uid", uid.clone());
    });
}

/// Guaranteed where every container limits CPU and memory to what it requests, BestEffort where none asks
/// for either.
fn quality_of_service(spec: &Value) -> &'static str {
    let lists = ["containers", "initContainers"].map(|list| spec[list].as_array());
    let containers: Vec<&Value> = lists.into_iter().flatten().flatten().collect();
    let amount = |container: &Value, side: &str, resource: &str| {
        let quantity = Quantity::from_value(&container["resources"][side][resource]).ok();
        quantity.filter(|quantity| !quantity.is_zero())
    };
    let sides = ["limits", "requests"];
    let resources = ["cpu", "memory"];
    let asks = |container: &&Value| {
        sides.iter().any(|side| resources.iter().any(|resource| amount(container, side, resource).is_some()))
    };
    let is_exact = |container: &&Value| {
        resources.iter().all(|resource| {
            let limit = amount(container, "limits", resource);
            limit.is_some() && limit == amount(container, "requests", resource)
        })
    };
    match () {
        () if !containers.iter().any(asks) => "BestEffort",
        () if containers.iter().all(is_exact) => "Guaranteed",
        () => "Burstable",
    }
}
