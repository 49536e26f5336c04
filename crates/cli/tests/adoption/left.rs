//! What Karmada leaves behind for one Deployment under a PropagationPolicy and for one ClusterRole under a
//! ClusterPropagationPolicy: claims, bindings, Works and the objects in the member, with its ids, labels, annotations
//! and finalizers, written as its components write them.

use std::collections::BTreeSet;

use checks::client::ApiClient;
use checks::kubernetes_clusters::KubernetesClusters;
use http::Method;
use serde_json::{Value, json};

use crate::facts;

pub const NAMESPACE: &str = "default";
pub const TEMPLATE: &str = "/apis/apps/v1/namespaces/default/deployments/nginx";

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader";
const BINDING: &str = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/nginx-deployment";
const CLUSTER_BINDING: &str = "/apis/work.karmada.io/v1alpha2/clusterresourcebindings/reader-clusterrole";
const POLICY: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/nginx";
pub const WORKS: &str = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works";

const POLICY_ID: &str = "6c1ad01e-2a91-43e7-9d3a-0a4a35e3a4f1";
const BINDING_ID: &str = "0b3f2c55-8f4e-4c39-bb7b-5cbe6d9dbe02";
const WORK_ID: &str = "f2d5a6f0-1f8a-4f6e-9a37-1f62f6c1f003";
const CLUSTER_POLICY_ID: &str = "b8d7a1f3-6bb1-4e29-8e2c-7a9d4b1c5e04";
const CLUSTER_BINDING_ID: &str = "3e1f9b57-9c06-4a2d-8f3b-2d6c8e7a9f05";
const CLUSTER_WORK_ID: &str = "9a4c7e12-5d3f-4b8a-a6c1-8b2e0f7d3a06";

/// What was left behind.
pub struct Left;

pub(crate) async fn must(api_client: &ApiClient, method: Method, path: &str, body: &Value) -> Value {
    let (status, answer) = api_client.request(method, path, body.to_string()).await;
    assert!(status.is_success(), "{path}: {answer}");
    answer
}

/// The part of a path before the name.
pub(crate) fn collection(path: &str) -> &str {
    path.rsplit_once('/').expect("a path has a name").0
}

impl Left {
    /// Writes all of it, from the policies to the objects in the member.
    pub async fn write(bed: &KubernetesClusters) -> Self {
        let (control, member) = (bed.control.api_client(), bed.members[0].api_client());
        execution_namespace(&control).await;
        policies(&control).await;
        deployment(&control, &member).await;
        cluster_role(&control, &member).await;
        facts::write(&control, &member).await;
        namespace_left_out(&control).await;
        Self
    }

    /// What must not change: where things are, what Works say, and the objects in the member.
    pub async fn state(&self, bed: &KubernetesClusters) -> Vec<Value> {
        let (control, member) = (bed.control.api_client(), bed.members[0].api_client());
        let mut state = Vec::new();
        for path in [BINDING, CLUSTER_BINDING].into_iter().chain(facts::BINDINGS) {
            let binding = control.request(Method::GET, path, "").await.1;
            state.push(json!([
                binding["spec"],
                binding["metadata"]["generation"],
                binding["status"]["lastScheduledTime"]
            ]));
        }
        let works = control.request(Method::GET, WORKS, "").await.1;
        for work in works["items"].as_array().expect("there are Works") {
            state.push(json!([work["metadata"]["name"], work["spec"], work["metadata"]["generation"]]));
        }
        for path in [TEMPLATE, ROLE].into_iter().chain(facts::OBJECTS) {
            let object = member.request(Method::GET, path, "").await.1;
            state.push(json!([
                object["spec"],
                object["rules"],
                object["metadata"]["labels"],
                object["metadata"]["uid"],
                object["metadata"]["generation"]
            ]));
        }
        state
    }

    /// Every label, annotation and finalizer of everything that Karmada wrote.
    pub async fn found(&self, bed: &KubernetesClusters) -> Vec<Found> {
        let (control, member) = (bed.control.api_client(), bed.members[0].api_client());
        let mut found = Vec::new();
        let ours = [TEMPLATE, ROLE, BINDING, CLUSTER_BINDING, POLICY];
        for path in ours.into_iter().chain(facts::BINDINGS).chain(facts::OBJECTS) {
            found.push(marks_of(&control.request(Method::GET, path, "").await.1));
        }
        let works = control.request(Method::GET, WORKS, "").await.1;
        found.extend(works["items"].as_array().expect("there are Works").iter().map(marks_of));
        for path in [TEMPLATE, ROLE] {
            found.push(marks_of(&member.request(Method::GET, path, "").await.1));
        }
        found
    }

    /// Whether a policy can be written.
    pub async fn edit_policy(&self, bed: &KubernetesClusters) -> bool {
        let patch = json!({ "metadata": { "annotations": { "edited": "after" } } }).to_string();
        bed.control.api_client().request(Method::PATCH, POLICY, patch).await.0.is_success()
    }
}

/// One that Karmada was told to send nowhere.
async fn namespace_left_out(control: &ApiClient) {
    let namespace = json!({ "metadata": { "name": "lab-1" } });
    must(control, Method::POST, "/api/v1/namespaces", &namespace).await;
}

/// What an object is marked with, a line each.
pub type Found = BTreeSet<String>;

fn marks_of(object: &Value) -> Found {
    let metadata = &object["metadata"];
    // Kubernetes counts the revisions of a Deployment itself.
    let is_karmadas = |key: &str| key.contains("karmada.io") || key.contains("longshore.io");
    let pairs = ["labels", "annotations"].into_iter().flat_map(|place| metadata[place].as_object());
    // What lists or counts follows the objects, which went on.
    let follows = |key: &str| ["/generation", "/managed-", "/applied-"].iter().any(|part| key.contains(part));
    let pairs = pairs.flatten().filter(|(key, _)| is_karmadas(key)).map(|(key, value)| match follows(key) {
        true => key.clone(),
        false => format!("{key}: {value}"),
    });
    let finalizers = metadata["finalizers"].as_array().into_iter().flatten().map(Value::to_string);
    pairs.chain(finalizers).collect()
}

async fn execution_namespace(control: &ApiClient) {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "karmada-es-member1", "labels": { "karmada.io/system": "true" } },
    });
    must(control, Method::POST, "/api/v1/namespaces", &namespace).await;
}

async fn policies(control: &ApiClient) {
    let placement = json!({ "clusterAffinity": { "clusterNames": ["member1"] } });
    let spec = |api_version: &str, kind: &str, name: &str, namespace: Option<&str>| {
        let mut selector = json!({ "apiVersion": api_version, "kind": kind, "name": name });
        if let Some(namespace) = namespace {
            selector["namespace"] = namespace.into();
        }
        json!({
            "conflictResolution": "Abort", "placement": placement, "preemption": "Never", "priority": 0,
            "resourceSelectors": [selector], "schedulerName": "default-scheduler",
            "propagateDeps": namespace.is_some(),
        })
    };
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {
            "name": "nginx", "namespace": NAMESPACE,
            "labels": { "propagationpolicy.karmada.io/permanent-id": POLICY_ID },
            "finalizers": ["karmada.io/propagation-policy-controller"],
        },
        "spec": spec("apps/v1", "Deployment", "nginx", Some(NAMESPACE)),
    });
    let path = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";
    must(control, Method::POST, path, &policy).await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": {
            "name": "reader",
            "labels": { "clusterpropagationpolicy.karmada.io/permanent-id": CLUSTER_POLICY_ID },
            "finalizers": ["karmada.io/cluster-propagation-policy-controller"],
        },
        "spec": spec("rbac.authorization.k8s.io/v1", "ClusterRole", "reader", None),
    });
    must(control, Method::POST, "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies", &policy).await;
}

async fn deployment(control: &ApiClient, member: &ApiClient) {
    let claim_labels = json!({ "propagationpolicy.karmada.io/permanent-id": POLICY_ID });
    let claim = json!({
        "propagationpolicy.karmada.io/name": "nginx", "propagationpolicy.karmada.io/namespace": NAMESPACE,
    });
    let template = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "nginx", "namespace": NAMESPACE, "annotations": claim,
            "labels": { "app": "nginx", "propagationpolicy.karmada.io/permanent-id": POLICY_ID },
        },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "nginx" } },
            "template": {
                "metadata": { "labels": { "app": "nginx" } },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx" }] },
            },
        },
    });
    let template = must(control, Method::POST, collection(TEMPLATE), &template).await;
    let marks = Marks {
        labels: json!({
            "app": "nginx", "propagationpolicy.karmada.io/permanent-id": POLICY_ID,
            "resourcebinding.karmada.io/permanent-id": BINDING_ID,
        }),
        annotations: json!({
            "propagationpolicy.karmada.io/name": "nginx", "propagationpolicy.karmada.io/namespace": NAMESPACE,
            "resourcebinding.karmada.io/name": "nginx-deployment",
            "resourcebinding.karmada.io/namespace": NAMESPACE,
        }),
    };
    let binding = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {
            "name": "nginx-deployment", "namespace": NAMESPACE,
            "labels": merged(&claim_labels, &json!({ "resourcebinding.karmada.io/permanent-id": BINDING_ID })),
            // The list of dependencies of a workload that has none, as Karmada writes it.
            "annotations": merged(
                &merged(&claim, &applied_placement()),
                &json!({ "resourcebinding.karmada.io/dependencies": "null" }),
            ),
            "finalizers": ["karmada.io/binding-controller", "karmada.io/binding-dependencies-distributor"],
            "ownerReferences": [owner(&template)],
        },
        "spec": merged(&binding_spec(&template, 2), &json!({ "propagateDeps": true })),
    });
    write_binding(control, BINDING, &binding, &json!({ "readyReplicas": 2 })).await;
    // Status comes later and counts up the version of the template, which Karmada's binding does not follow.
    let status = json!({ "status": { "observedGeneration": 1, "replicas": 2, "readyReplicas": 2 } });
    must(control, Method::PATCH, &format!("{TEMPLATE}/status"), &status).await;
    let place = Place {
        work: "nginx-687f7fb96f",
        work_id: WORK_ID,
        owner: ("resourcebinding.karmada.io/permanent-id", BINDING_ID),
    };
    write_work(control, member, &template, &marks, &place, TEMPLATE).await;
}

async fn cluster_role(control: &ApiClient, member: &ApiClient) {
    let claim_labels = json!({ "clusterpropagationpolicy.karmada.io/permanent-id": CLUSTER_POLICY_ID });
    let claim = json!({ "clusterpropagationpolicy.karmada.io/name": "reader" });
    let template = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "reader", "labels": claim_labels, "annotations": claim },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
    });
    let template = must(control, Method::POST, collection(ROLE), &template).await;
    let marks = Marks {
        labels: merged(
            &claim_labels,
            &json!({ "clusterresourcebinding.karmada.io/permanent-id": CLUSTER_BINDING_ID }),
        ),
        annotations: merged(
            &claim,
            &json!({ "clusterresourcebinding.karmada.io/name": "reader-clusterrole" }),
        ),
    };
    let binding = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding",
        "metadata": {
            "name": "reader-clusterrole",
            "labels": merged(&claim_labels, &json!({ "clusterresourcebinding.karmada.io/permanent-id": CLUSTER_BINDING_ID })),
            "annotations": merged(&claim, &applied_placement()),
            "finalizers": ["karmada.io/cluster-resource-binding-controller"],
            "ownerReferences": [owner(&template)],
        },
        "spec": binding_spec(&template, 0),
    });
    write_binding(control, CLUSTER_BINDING, &binding, &Value::Null).await;
    let place = Place {
        work: &api::names::work_name("ClusterRole", "reader", ""),
        work_id: CLUSTER_WORK_ID,
        owner: ("clusterresourcebinding.karmada.io/permanent-id", CLUSTER_BINDING_ID),
    };
    write_work(control, member, &template, &marks, &place, ROLE).await;
}

pub(crate) fn applied_placement() -> Value {
    json!({ "policy.karmada.io/applied-placement": r#"{"clusterAffinity":{"clusterNames":["member1"]}}"# })
}

pub(crate) fn owner(template: &Value) -> Value {
    json!({
        "apiVersion": template["apiVersion"], "kind": template["kind"], "name": template["metadata"]["name"],
        "uid": template["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

pub(crate) fn binding_spec(template: &Value, replicas: u32) -> Value {
    let metadata = &template["metadata"];
    let mut spec = json!({
        "clusters": [{ "name": "member1" }],
        "conflictResolution": "Abort",
        "placement": { "clusterAffinity": { "clusterNames": ["member1"] } },
        "resource": {
            "apiVersion": template["apiVersion"], "kind": template["kind"], "name": metadata["name"],
            "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        },
        "schedulerName": "default-scheduler",
    });
    if !metadata["namespace"].is_null() {
        spec["resource"]["namespace"] = metadata["namespace"].clone();
    }
    if replicas > 0 {
        spec["replicas"] = replicas.into();
        spec["clusters"][0]["replicas"] = replicas.into();
    }
    spec
}

pub(crate) async fn write_binding(control: &ApiClient, path: &str, binding: &Value, status: &Value) {
    let written = must(control, Method::POST, collection(path), binding).await;
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let mut aggregated = json!({ "clusterName": "member1", "applied": true, "health": "Unknown" });
    if !status.is_null() {
        aggregated["status"] = status.clone();
        aggregated["health"] = "Healthy".into();
    }
    let patch = json!({ "status": {
        "schedulerObservedGeneration": written["metadata"]["generation"],
        "lastScheduledTime": "2026-01-01T00:00:00Z",
        "conditions": [
            condition("Scheduled", "Success", "Binding has been scheduled successfully."),
            condition("FullyApplied", "FullyAppliedSuccess", "All works have been successfully applied"),
        ],
        "aggregatedStatus": [aggregated],
    } });
    must(control, Method::PATCH, &format!("{path}/status"), &patch).await;
}

/// What Karmada adds to the labels and annotations of a template.
pub(crate) struct Marks {
    pub labels: Value,
    pub annotations: Value,
}

/// Where a Work is, and whose it is.
pub(crate) struct Place<'p> {
    pub work: &'p str,
    pub work_id: &'p str,
    pub owner: (&'p str, &'p str),
}

/// The Work, and the object that came of it in the member.
async fn write_work(
    control: &ApiClient,
    member: &ApiClient,
    template: &Value,
    marks: &Marks,
    place: &Place<'_>,
    path: &str,
) {
    deliver(control, member, &manifest(template, marks, place), marks, place, path).await;
}

/// The Work that has this manifest, and the object that came of it in the member.
pub(crate) async fn deliver(
    control: &ApiClient,
    member: &ApiClient,
    manifest: &Value,
    marks: &Marks,
    place: &Place<'_>,
    path: &str,
) {
    let work = json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {
            "name": place.work, "namespace": "karmada-es-member1",
            "labels": { place.owner.0: place.owner.1, "work.karmada.io/permanent-id": place.work_id },
            "annotations": binding_of(marks),
            "finalizers": ["karmada.io/execution-controller"],
        },
        "spec": {
            "workload": { "manifests": [manifest] },
            "suspendDispatching": false, "preserveResourcesOnDeletion": false,
        },
    });
    must(control, Method::POST, WORKS, &work).await;
    must(
        member,
        Method::POST,
        &format!("{}?fieldManager=karmada-controller-manager", collection(path)),
        manifest,
    )
    .await;
    applied(control, place.work).await;
}

/// What Karmada says of a Work that it has applied.
pub(crate) async fn applied(control: &ApiClient, work: &str) {
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let patch = json!({ "status": { "conditions": [
        condition("Dispatching", "Dispatching", "Work is being dispatched to the target cluster."),
        condition("Applied", "AppliedSuccessful", "Manifest has been successfully applied"),
    ] } });
    must(control, Method::PATCH, &format!("{WORKS}/{work}/status"), &patch).await;
}

/// What a Work says about its binding.
fn binding_of(marks: &Marks) -> Value {
    let all = marks.annotations.as_object().expect("a map");
    let about = |key: &String| key.contains("resourcebinding.karmada.io/");
    let mut found: Value =
        all.iter().filter(|(key, _)| about(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    found["work.karmada.io/conflict-resolution"] = "abort".into();
    found
}

/// The template as it goes to the member: without what the server set, with what Karmada marks it by.
pub(crate) fn manifest(template: &Value, marks: &Marks, place: &Place<'_>) -> Value {
    let mut manifest = template.clone();
    manifest.as_object_mut().expect("a map").remove("status");
    let metadata = &template["metadata"];
    let mut annotations = merged(
        &marks.annotations,
        &json!({
            "resourcetemplate.karmada.io/uid": metadata["uid"],
            "work.karmada.io/conflict-resolution": "abort",
            "work.karmada.io/name": place.work,
            "work.karmada.io/namespace": "karmada-es-member1",
        }),
    );
    if let Some(generation) = metadata["generation"].as_i64() {
        annotations["resourcetemplate.karmada.io/generation"] = generation.to_string().into();
    }
    for list in ["managed-annotations", "managed-labels"] {
        annotations[format!("resourcetemplate.karmada.io/{list}")] = "".into();
    }
    let labels = merged(
        &marks.labels,
        &json!({ "karmada.io/managed": "true", "work.karmada.io/permanent-id": place.work_id }),
    );
    let keys = |map: &Value| {
        let mut keys: Vec<String> = map.as_object().expect("a map").keys().cloned().collect();
        keys.sort();
        keys.join(",")
    };
    annotations["resourcetemplate.karmada.io/managed-annotations"] = keys(&annotations).into();
    annotations["resourcetemplate.karmada.io/managed-labels"] = keys(&labels).into();
    let mut kept = json!({ "name": metadata["name"], "labels": labels, "annotations": annotations });
    if !metadata["namespace"].is_null() {
        kept["namespace"] = metadata["namespace"].clone();
    }
    manifest["metadata"] = kept;
    manifest
}

pub(crate) fn merged(one: &Value, other: &Value) -> Value {
    let mut all = one.as_object().expect("a map").clone();
    all.extend(other.as_object().expect("a map").clone());
    Value::Object(all)
}
