//! What a control plane has before its controllers start: the kinds of policies, its members, and a note for
//! clients about the feature gates it runs with.

use controllers::gates::Switches;
use controllers::rest::{Collection, Error, Path, Rest};
use decide::left_out::Unreadable;
use serde_json::{Value, json};

/// The namespace whose purpose is to tell clients about their server; nothing in it is ever propagated.
const PUBLIC_NAMESPACE: &str = "kube-public";
/// The ConfigMap that names every feature gate and its value.
const GATES: &str = "longshore-feature-gates";

/// Why nobody knows which feature gates a control plane runs with.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// It does not answer.
    #[error(transparent)]
    Unanswered(#[from] Error),
    /// What somebody wrote there makes no sense.
    #[error("read ConfigMap {}/{}", PUBLIC_NAMESPACE, GATES)]
    Unreadable(#[from] Unreadable),
}

/// Definitions are applied, so that a newer version of ours replaces an older one.
pub async fn install_kinds(control: &Rest) -> Result<(), Error> {
    let definitions = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
    for definition in api::crd::crds() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        control.apply(&definitions.object(name), &definition, true).await?;
    }
    Ok(())
}

/// Whether every kind of ours is served by now; an API server may take a moment.
pub async fn are_kinds_served(control: &Rest) -> Result<bool, Error> {
    let definitions = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
    for definition in api::crd::crds() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let found: Option<Value> = control.get(&definitions.object(name)).await?;
        let conditions = found.as_ref().and_then(|found| found["status"]["conditions"].as_array());
        let is_established =
            |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        if !conditions.is_some_and(|conditions| conditions.iter().any(is_established)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes sure that a namespace is there.
pub async fn ensure_namespace(control: &Rest, name: &str, labels: &[(&str, &str)]) -> Result<(), Error> {
    let namespaces = Collection::new("v1", "namespaces", "");
    if control.get::<Value>(&namespaces.object(name)).await?.is_some() {
        return Ok(());
    }
    let labels: Value = labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels },
    });
    match control.create(&namespaces, &namespace).await {
        Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a member known, or tells what is new of one that is; everything else of its Cluster stays.
pub async fn join(control: &Rest, cluster: &Value) -> Result<(), Error> {
    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
    let clusters = Collection::of(&api::kinds::CLUSTER, "");
    control.apply(&clusters.object(name), cluster, true).await.map(drop)
}

/// Tells clients which feature gates the control plane runs with.
pub async fn publish_gates(control: &Rest, switches: &Switches) -> Result<(), Error> {
    let note = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": GATES, "namespace": PUBLIC_NAMESPACE },
        "data": switches.told(),
    });
    control.apply(&note_path(), &note, true).await.map(drop)
}

/// The feature gates a control plane says it runs with; the defaults where it says nothing, as Karmada's does.
pub async fn published_gates(control: &Rest) -> Result<Switches, NoteError> {
    let note: Option<Value> = control.get(&note_path()).await?;
    let data = note.and_then(|mut note| serde_json::from_value(note["data"].take()).ok());
    Ok(Switches::heard(&data.unwrap_or_default())?)
}

fn note_path() -> Path {
    Collection::new("v1", "configmaps", PUBLIC_NAMESPACE).object(GATES)
}
