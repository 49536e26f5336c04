//! Prunes what never leaves the control plane: fields that the API server maintains, values that another cluster
//! assigned, and our own annotations and labels.

use api::records;
use serde_json::Value;

use crate::fields::{at, list, map, put, remove, text};

/// Fields of every object that belong to the control plane.
const METADATA: [&str; 10] = [
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
    "ownerReferences",
    "finalizers",
];
/// Labels with which Kubernetes ties a Job to its pods.
const JOB_LABELS: [&str; 4] =
    ["controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"];

/// Removes from a manifest what belongs to the server it comes from and no other should get.
pub fn prune(manifest: &mut Value) {
    for field in METADATA {
        remove(manifest, &["metadata", field]);
    }
    remove(manifest, &["status"]);
    if let Some(annotations) = map_if_there(manifest, &["metadata", "annotations"]) {
        annotations.retain(|key, _| !key.starts_with(records::PREFIX));
    }
    match text(manifest, &["kind"]) {
        "Deployment" => prune_deployment(manifest),
        "Job" => prune_job(manifest),
        "Secret" => prune_secret(manifest),
        "ServiceAccount" => prune_service_account(manifest),
        "Service" => prune_service(manifest),
        "PersistentVolumeClaim" => {
            remove(manifest, &["metadata", "annotations", "volume.kubernetes.io/selected-node"]);
        }
        _ => {}
    }
}

fn map_if_there<'a>(
    manifest: &'a mut Value,
    path: &[&str],
) -> Option<&'a mut serde_json::Map<String, Value>> {
    at(manifest, path)?;
    map(manifest, path)
}

fn prune_deployment(manifest: &mut Value) {
    for annotation in ["deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"] {
        remove(manifest, &["metadata", "annotations", annotation]);
    }
}

/// A Job deletes itself in the control plane, not in the members; a selector made for it there means nothing here.
/// It goes as a whole: what is left of it would be applied in place of the one that the member made.
fn prune_job(manifest: &mut Value) {
    remove(manifest, &["spec", "ttlSecondsAfterFinished"]);
    if keeps_selector(manifest) {
        return;
    }
    remove(manifest, &["spec", "selector"]);
    if let Some(labels) = map_if_there(manifest, &["spec", "template", "metadata", "labels"]) {
        labels.retain(|key, _| !JOB_LABELS.contains(&key.as_str()));
    }
}

/// True for a Job whose author chose its selector.
pub(super) fn keeps_selector(job: &Value) -> bool {
    at(job, &["spec", "manualSelector"]) == Some(&Value::Bool(true))
}

/// A token is worth nothing in another cluster, which will make its own.
fn prune_secret(manifest: &mut Value) {
    if text(manifest, &["type"]) == "kubernetes.io/service-account-token" {
        remove(manifest, &["metadata", "annotations", "kubernetes.io/service-account.uid"]);
        remove(manifest, &["data"]);
    }
}

fn prune_service_account(manifest: &mut Value) {
    let prefix = format!("{}-token-", text(manifest, &["metadata", "name"]));
    let secrets = list(manifest, &["secrets"]);
    let kept: Vec<Value> =
        secrets.iter().filter(|secret| !text(secret, &["name"]).starts_with(&prefix)).cloned().collect();
    if kept.len() != secrets.len() {
        put(manifest, &["secrets"], kept.into());
    }
}

/// Addresses are given out by each cluster itself, except that there is to be none.
fn prune_service(manifest: &mut Value) {
    if text(manifest, &["spec", "clusterIP"]) != "None" {
        remove(manifest, &["spec", "clusterIP"]);
        remove(manifest, &["spec", "clusterIPs"]);
    }
}
