//! Bootstraps a control plane before its controllers start: installs the CRDs, joins members, and publishes the feature
//! gates in a ConfigMap for clients.

use std::collections::{BTreeMap, BTreeSet};

use controllers::gates::FeatureGates;
use controllers::rest::{Collection, Error, Path, Rest};
use decide::budget::Budget;
use decide::skipped::Unreadable;
use serde_json::{Value, json};

/// The namespace whose purpose is to tell clients about their server; nothing in it is ever propagated.
pub(crate) const PUBLIC_NAMESPACE: &str = "kube-public";
/// The ConfigMap that names every feature gate and its value.
pub(crate) const GATES: &str = "longshore-feature-gates";

/// What the limits of the control plane are called there.
const MAX_MOVED: &str = "max-moved";
const MAX_DELETED: &str = "max-deleted";

/// Why the feature gates of a control plane cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// It does not answer.
    #[error(transparent)]
    Unanswered(#[from] Error),
    /// The ConfigMap cannot be parsed.
    #[error("read ConfigMap {}/{}", PUBLIC_NAMESPACE, GATES)]
    Unreadable(#[from] Unreadable),
}

/// Definitions are applied, so that a newer version of ours replaces an older one. Kinds that an APIService serves are
/// left out.
pub async fn install_kinds(control: &Rest) -> Result<(), Error> {
    let definitions = definitions();
    for definition in wanted_definitions(control).await?.wanted {
        control.apply(&definitions.object(name(&definition)), &definition, true).await?;
    }
    Ok(())
}

/// The definitions that an API server needs, and those of kinds that it has from elsewhere.
#[derive(Debug, Default)]
pub struct Definitions {
    /// To be installed.
    pub wanted: Vec<Value>,
    /// Not to be installed, because an APIService leads to another server that serves the kind: as a rule Karmada's
    /// aggregated API server with its Clusters. Definition and aggregated server would share keys in etcd, so objects
    /// of the one would be found, and with the definition deleted, as objects of the other.
    pub aggregated: Vec<Value>,
}

/// Sorts our definitions by whether the API server needs them.
pub async fn wanted_definitions(control: &Rest) -> Result<Definitions, Error> {
    let aggregated = aggregated_versions(control).await?;
    let is_aggregated = |definition: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let group = text(&definition["spec"]["group"]);
        let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        versions.any(|version| aggregated.contains(&(group.clone(), text(&version["name"]))))
    };
    let (aggregated, wanted) = api::crd::crds().into_iter().partition(is_aggregated);
    Ok(Definitions { wanted, aggregated })
}

/// Groups and versions that an APIService leads to another server for. One that the API server made for a definition
/// of its own names no Service.
async fn aggregated_versions(control: &Rest) -> Result<BTreeSet<(String, String)>, Error> {
    let services = Collection::new("apiregistration.k8s.io/v1", "apiservices", "");
    let list: Value = match control.fetch(services.path()).await {
        Err(Error::NotFound { .. }) => Value::Null,
        fetched => fetched?,
    };
    let services = list["items"].as_array().into_iter().flatten();
    let aggregated = services.filter(|service| service["spec"]["service"].is_object());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(aggregated.map(|one| (text(&one["spec"]["group"]), text(&one["spec"]["version"]))).collect())
}

fn definitions() -> Collection {
    Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "")
}

fn name(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or_default()
}

/// Whether every kind of ours is served by now; an API server may take a moment.
pub async fn are_kinds_served(control: &Rest) -> Result<bool, Error> {
    let definitions = definitions();
    for definition in wanted_definitions(control).await?.wanted {
        let found: Option<Value> = control.get(&definitions.object(name(&definition))).await?;
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

/// Joins a member, or updates the given fields of one that has joined; everything else of its Cluster stays.
pub async fn join(control: &Rest, cluster: &Value) -> Result<(), Error> {
    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
    let clusters = Collection::of(&api::kinds::CLUSTER, "");
    control.apply(&clusters.object(name), cluster, true).await.map(drop)
}

/// Publishes the feature gates and the budget of the control plane for clients.
pub async fn publish_gates(
    control: &Rest,
    feature_gates: &FeatureGates,
    budget: Budget,
) -> Result<(), Error> {
    let limits = [(MAX_MOVED, budget.moved), (MAX_DELETED, budget.deleted)];
    let limits = limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?.to_string())));
    let data: BTreeMap<String, String> = feature_gates.to_map().into_iter().chain(limits).collect();
    let note = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": GATES, "namespace": PUBLIC_NAMESPACE },
        "data": data,
    });
    control.apply(&note_path(), &note, true).await.map(drop)
}

/// The feature gates a control plane says it runs with; the defaults where it says nothing, as Karmada's does.
pub async fn published_gates(control: &Rest) -> Result<FeatureGates, NoteError> {
    let note: Option<Value> = control.get(&note_path()).await?;
    let data = note.and_then(|mut note| serde_json::from_value(note["data"].take()).ok());
    Ok(FeatureGates::from_map(&data.unwrap_or_default())?)
}

/// The budget that a control plane says it has for all that says nothing of its own; none where it says nothing.
pub async fn published_budget(control: &Rest) -> Result<Budget, Error> {
    let note: Option<Value> = control.get(&note_path()).await?;
    let limit = |name: &str| note.as_ref()?["data"][name].as_str()?.parse().ok();
    Ok(Budget { moved: limit(MAX_MOVED), deleted: limit(MAX_DELETED) })
}

/// Where the note for clients about feature gates and budget is.
pub fn note_path() -> Path {
    Collection::new("v1", "configmaps", PUBLIC_NAMESPACE).object(GATES)
}
