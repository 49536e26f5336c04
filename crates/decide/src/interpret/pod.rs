//! Resource requests and referenced objects of a pod spec. Reads nothing else.

use std::collections::{BTreeMap, BTreeSet};

use api::binding::{NodeClaim, ReplicaRequirements};
use api::quantity::ResourceList;
use serde_json::Value;

use crate::fields::{at, list, pairs, text};
use crate::quantity::Amount;

/// What one pod needs; none if it asks for nothing.
pub(super) fn requirements(spec: &Value) -> Option<ReplicaRequirements> {
    let (node_claim, resource_request) = (node_claim(spec), requests(spec));
    let asks = node_claim.is_some() || !resource_request.is_empty();
    asks.then(|| ReplicaRequirements { node_claim, resource_request, ..ReplicaRequirements::default() })
}

fn node_claim(spec: &Value) -> Option<NodeClaim> {
    let affinity = at(spec, &["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"]);
    let claim = NodeClaim {
        hard_node_affinity: affinity.and_then(|affinity| serde_json::from_value(affinity.clone()).ok()),
        node_selector: read(spec, "nodeSelector"),
        tolerations: read(spec, "tolerations"),
    };
    (claim != NodeClaim::default()).then_some(claim)
}

fn read<T: serde::de::DeserializeOwned + Default>(spec: &Value, field: &str) -> T {
    at(spec, &[field]).and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or_default()
}

/// The sum over the containers, or the largest init container where that is more, plus the overhead.
fn requests(spec: &Value) -> ResourceList {
    let mut total: BTreeMap<String, Amount> = BTreeMap::new();
    for (name, amount) in list(spec, &["containers"]).iter().flat_map(container_requests) {
        let sum = total.entry(name).or_default();
        *sum = *sum + amount;
    }
    for (name, amount) in list(spec, &["initContainers"]).iter().flat_map(container_requests) {
        let most = total.entry(name).or_default();
        *most = amount.max(*most);
    }
    for (name, amount) in amounts(spec, &["overhead"]) {
        let sum = total.entry(name).or_default();
        *sum = *sum + amount;
    }
    let positive = total.into_iter().filter(|(_, amount)| *amount > Amount::default());
    positive.map(|(name, amount)| (name, amount.quantity())).collect()
}

/// A limit without a request is a request.
fn container_requests(container: &Value) -> BTreeMap<String, Amount> {
    let mut requests: BTreeMap<String, Amount> = amounts(container, &["resources", "limits"]).collect();
    requests.extend(amounts(container, &["resources", "requests"]));
    requests
}

fn amounts<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = (String, Amount)> + use<'a> {
    pairs(object, path).filter_map(|(name, value)| {
        let amount = match value {
            Value::Number(number) => number.to_string().parse(),
            other => other.as_str().unwrap_or_default().parse(),
        };
        Some((name.clone(), amount.ok()?))
    })
}

/// Names of the secrets a pod uses.
pub(super) fn secrets(spec: &Value) -> BTreeSet<String> {
    /// Kinds of volumes and where they name a secret.
    const IN_VOLUMES: [&[&str]; 10] = [
        &["secret", "secretName"],
        &["azureFile", "secretName"],
        &["cephfs", "secretRef", "name"],
        &["cinder", "secretRef", "name"],
        &["flexVolume", "secretRef", "name"],
        &["rbd", "secretRef", "name"],
        &["scaleIO", "secretRef", "name"],
        &["iscsi", "secretRef", "name"],
        &["storageos", "secretRef", "name"],
        &["csi", "nodePublishSecretRef", "name"],
    ];
    let pull = list(spec, &["imagePullSecrets"]).iter().map(|secret| text(secret, &["name"]));
    let volumes = list(spec, &["volumes"]).iter();
    let in_volumes = volumes.flat_map(|volume| IN_VOLUMES.iter().map(move |path| text(volume, path)));
    let names = pull.chain(in_volumes).chain(in_environment(spec, "secretRef", "secretKeyRef"));
    names.chain(projected(spec, "secret")).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Names of the config maps a pod uses.
pub(super) fn config_maps(spec: &Value) -> BTreeSet<String> {
    let volumes = list(spec, &["volumes"]).iter().map(|volume| text(volume, &["configMap", "name"]));
    let names = volumes.chain(in_environment(spec, "configMapRef", "configMapKeyRef"));
    names.chain(projected(spec, "configMap")).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Names of the volume claims a pod uses.
pub(super) fn volume_claims(spec: &Value) -> BTreeSet<String> {
    let volumes = list(spec, &["volumes"]).iter();
    let names = volumes.map(|volume| text(volume, &["persistentVolumeClaim", "claimName"]));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The service account a pod runs as, unless it is the one every namespace has.
pub(super) fn service_account(spec: &Value) -> Option<String> {
    let name = text(spec, &["serviceAccountName"]);
    (!matches!(name, "" | "default")).then(|| name.to_owned())
}

fn projected<'a>(spec: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a str> {
    let sources = list(spec, &["volumes"]).iter().flat_map(|volume| list(volume, &["projected", "sources"]));
    sources.map(move |source| text(source, &[kind, "name"]))
}

fn in_environment<'a>(spec: &'a Value, whole: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let containers = lists.into_iter().flat_map(|name| list(spec, &[name]));
    containers.flat_map(move |container| {
        let from = list(container, &["envFrom"]).iter().map(move |source| text(source, &[whole, "name"]));
        let single = list(container, &["env"]).iter();
        from.chain(single.map(move |variable| text(variable, &["valueFrom", key, "name"])))
    })
}
