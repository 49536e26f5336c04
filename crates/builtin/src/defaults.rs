//! Defaulting of built-in kinds, as kube-apiserver does on decode. Must not know whether the object is created or
//! changed.

use base64::Engine;
use serde_json::{Value, json};

use super::fill::Fill::{EmptyText, Flag, Null, Number, Object, Text};
use super::fill::{Rule, canonical_map, each, fill, is_unset, object, set};

mod autoscaling;
mod pod;
mod service;
mod workload;

pub use service::allocate_service;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Fills in the defaults of a built-in kind and writes its quantities canonically. Applying it twice is
/// the same as once.
pub fn apply_defaults(group: &str, kind: &str, value: &mut Value) {
    if SPECS.contains(&(group, kind)) {
        fill(value, &[("spec", Object)]);
    }
    match group {
        "" => core(kind, value),
        "apps" | "batch" => workload::apply(kind, value),
        "autoscaling" if kind == "HorizontalPodAutoscaler" => autoscaling::apply(value),
        "networking.k8s.io" => networking(kind, value),
        "discovery.k8s.io" if kind == "EndpointSlice" => fill(value, ENDPOINT_SLICE),
        "events.k8s.io" if kind == "Event" => fill(value, EVENTS_EVENT),
        RBAC => rbac(kind, value),
        "storage.k8s.io" => storage(kind, value),
        "scheduling.k8s.io" if kind == "PriorityClass" => {
            fill(value, &[("preemptionPolicy", Text("PreemptLowerPriority"))]);
        }
        "admissionregistration.k8s.io" => admission(kind, value),
        "apiregistration.k8s.io" => fill(value, &[("spec.service.port", Number(443))]),
        _ => {}
    }
}

/// Kinds whose spec is present even if the client sent none.
const SPECS: [(&str, &str); 10] = [
    ("", "LimitRange"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "ResourceQuota"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("coordination.k8s.io", "Lease"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("storage.k8s.io", "CSIDriver"),
];

const ENDPOINT_SLICE: &[Rule] = &[
    ("ports[].name", EmptyText),
    ("ports[].protocol", Text("TCP")),
    ("ports", Null),
    ("endpoints[].conditions", Object),
    ("endpoints", Null),
];
const EVENTS_EVENT: &[Rule] = &[
    ("deprecatedFirstTimestamp", Null),
    ("deprecatedLastTimestamp", Null),
    ("deprecatedSource", Object),
    ("eventTime", Null),
    ("regarding", Object),
];
const EVENT: &[Rule] = &[
    ("eventTime", Null),
    ("firstTimestamp", Null),
    ("lastTimestamp", Null),
    ("reportingComponent", EmptyText),
    ("reportingInstance", EmptyText),
    ("source", Object),
    ("involvedObject", Object),
];

fn core(kind: &str, value: &mut Value) {
    match kind {
        "Pod" => pod::pod(value),
        "PodTemplate" => pod::template(value, "template"),
        "ReplicationController" => workload::replication_controller(value),
        "Service" => service::apply(value),
        "Secret" => secret(value),
        "Namespace" => namespace(value),
        "Endpoints" => fill(value, &[("subsets[].ports[].protocol", Text("TCP"))]),
        "Event" => fill(value, EVENT),
        "LimitRange" => limit_range(value),
        "Node" => node(value),
        "PersistentVolume" => persistent_volume(value),
        "PersistentVolumeClaim" => {
            pod::claim_spec(value, "spec");
            canonical_map(value, "status.capacity");
        }
        "ResourceQuota" => {
            for path in ["spec.hard", "status.hard", "status.used"] {
                canonical_map(value, path);
            }
        }
        _ => {}
    }
}

/// `stringData` is written only: it ends up in `data`.
fn secret(value: &mut Value) {
    fill(value, &[("type", Text("Opaque"))]);
    let Some(plain) = value.as_object_mut().and_then(|fields| fields.remove("stringData")) else { return };
    let Value::Object(plain) = plain else { return };
    let Some(data) = object(value, "data").filter(|_| !plain.is_empty()) else { return };
    for (key, text) in plain {
        let bytes = text.as_str().unwrap_or_default();
        data.insert(key, base64::engine::general_purpose::STANDARD.encode(bytes).into());
    }
}

fn namespace(value: &mut Value) {
    let name = value["metadata"]["name"].clone();
    if name.is_string()
        && let Some(labels) = value.get_mut("metadata").and_then(|metadata| object(metadata, "labels"))
    {
        labels.insert(String::from("kubernetes.io/metadata.name"), name);
    }
    fill(value, &[("spec", Object), ("status", Object), ("status.phase", Text("Active"))]);
}

/// The largest limit is the default limit, which is the default request, unless a smallest one is.
fn limit_range(value: &mut Value) {
    for map in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        canonical_map(value, &format!("spec.limits[].{map}"));
    }
    each(value, "spec.limits[]", &mut |item| {
        if item["type"] != "Container" {
            return;
        }
        for (target, source) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
        {
            let Some(given) = item.get(source).and_then(Value::as_object).cloned() else { continue };
            let Some(fields) = object(item, target).filter(|_| !given.is_empty()) else { continue };
            given.into_iter().for_each(|(key, quantity)| {
                fields.entry(key).or_insert(quantity);
            });
        }
    });
}

fn node(value: &mut Value) {
    fill(value, &[("spec", Object)]);
    for path in ["status.capacity", "status.allocatable"] {
        canonical_map(value, path);
    }
    each(value, "status", &mut |status| {
        if let (Some(capacity), true) = (status.get("capacity").cloned(), status["allocatable"].is_null()) {
            set(status, "allocatable", capacity);
        }
    });
}

fn persistent_volume(value: &mut Value) {
    canonical_map(value, "spec.capacity");
    fill(
        value,
        &[("spec.persistentVolumeReclaimPolicy", Text("Retain")), ("spec.volumeMode", Text("Filesystem"))],
    );
    each(value, "spec", &mut |spec| fill(spec, pod::VOLUME_SOURCES));
}

fn networking(kind: &str, value: &mut Value) {
    match kind {
        "NetworkPolicy" => network_policy(value),
        "IngressClass" => fill(value, &[("spec.parameters.scope", Text("Cluster"))]),
        _ => {}
    }
}

fn network_policy(value: &mut Value) {
    fill(
        value,
        &[
            ("spec.podSelector", Object),
            ("spec.ingress[].ports[].protocol", Text("TCP")),
            ("spec.egress[].ports[].protocol", Text("TCP")),
        ],
    );
    each(value, "spec", &mut |spec| {
        if is_unset(spec, "policyTypes") {
            let types = match is_unset(spec, "egress") {
                true => json!(["Ingress"]),
                false => json!(["Ingress", "Egress"]),
            };
            set(spec, "policyTypes", types);
        }
    });
}

fn rbac(kind: &str, value: &mut Value) {
    if !matches!(kind, "RoleBinding" | "ClusterRoleBinding") {
        return;
    }
    fill(value, &[("roleRef.apiGroup", Text(RBAC))]);
    each(value, "subjects[]", &mut |subject| {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            fill(subject, &[("apiGroup", Text(RBAC))]);
        }
    });
}

fn storage(kind: &str, value: &mut Value) {
    match kind {
        "StorageClass" => {
            fill(value, &[("reclaimPolicy", Text("Delete")), ("volumeBindingMode", Text("Immediate"))])
        }
        "CSIDriver" => {
            fill(value, CSI_DRIVER);
            each(value, "spec", &mut |spec| {
                if is_unset(spec, "volumeLifecycleModes") {
                    set(spec, "volumeLifecycleModes", json!(["Persistent"]));
                }
            });
        }
        "CSINode" => fill(value, &[("spec.drivers[].topologyKeys", Null)]),
        _ => {}
    }
}

const CSI_DRIVER: &[Rule] = &[
    ("spec.attachRequired", Flag(true)),
    ("spec.podInfoOnMount", Flag(false)),
    ("spec.storageCapacity", Flag(false)),
    ("spec.fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
    ("spec.requiresRepublish", Flag(false)),
    ("spec.seLinuxMount", Flag(false)),
];

const WEBHOOK: &[Rule] = &[
    ("webhooks[].failurePolicy", Text("Fail")),
    ("webhooks[].matchPolicy", Text("Equivalent")),
    ("webhooks[].namespaceSelector", Object),
    ("webhooks[].objectSelector", Object),
    ("webhooks[].timeoutSeconds", Number(10)),
    ("webhooks[].rules[].scope", Text("*")),
    ("webhooks[].clientConfig.service.port", Number(443)),
];
const MATCHED: [Rule; 5] = [
    ("matchPolicy", Text("Equivalent")),
    ("namespaceSelector", Object),
    ("objectSelector", Object),
    ("resourceRules[].scope", Text("*")),
    ("excludeResourceRules[].scope", Text("*")),
];

fn admission(kind: &str, value: &mut Value) {
    match kind {
        "ValidatingWebhookConfiguration" => fill(value, WEBHOOK),
        "MutatingWebhookConfiguration" => {
            fill(value, WEBHOOK);
            fill(value, &[("webhooks[].reinvocationPolicy", Text("Never"))]);
        }
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            fill(value, &[("spec.failurePolicy", Text("Fail"))]);
            each(value, "spec.matchConstraints", &mut |matched| fill(matched, &MATCHED));
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            each(value, "spec.matchResources", &mut |matched| fill(matched, &MATCHED));
        }
        _ => {}
    }
}
