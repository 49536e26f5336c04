//! Golden vectors of behaviour.md 5.5 and 5.7, which were recorded from Karmada itself, and the rules around them.

mod golden;
mod karmada;
mod properties;
mod rules;

use api::binding::TargetCluster;
use api::{Binding, Cluster, Placement as Rules, Time, labels};
use serde_json::{Value, json};

use super::*;

/// A cluster with room for so many pods that knows Deployments and ConfigMaps.
fn cluster(name: &str, room: i64) -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Push"},
        "status": {
            "apiEnablements": [
                {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]},
                {"groupVersion": "v1", "resources": [{"name": "configmaps", "kind": "ConfigMap"}]},
            ],
            "resourceSummary": {"allocatable": {"pods": room.to_string()}},
        },
    }))
    .expect("a cluster")
}

/// `m1`, `m2`, … with so much room each.
fn clusters(rooms: &[i64]) -> Vec<Cluster> {
    rooms.iter().enumerate().map(|(index, room)| cluster(&format!("m{}", index + 1), *room)).collect()
}

/// A claimed binding of a Deployment, not scheduled yet.
fn binding(placement: Value, replicas: i32) -> Binding {
    let mut binding: Binding = serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": "nginx-deployment", "namespace": "default", "generation": 1},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"},
            "placement": placement,
            "replicas": replicas,
        },
    }))
    .expect("a binding");
    binding.metadata.labels.insert(labels::PROPAGATION_POLICY_PERMANENT_ID.to_owned(), "id".to_owned());
    binding
}

fn with_previous(mut binding: Binding, previous: &[(&str, i32)]) -> Binding {
    let target =
        |(name, replicas): &(&str, i32)| TargetCluster { name: (*name).to_owned(), replicas: *replicas };
    binding.spec.clusters = previous.iter().map(target).collect();
    binding
}

/// When nothing depends on it.
const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

/// As if a fresh placement had been asked for after the last one.
fn asked_again(mut binding: Binding) -> Binding {
    let time = |text: &str| text.parse::<Time>().expect(text);
    binding.spec.reschedule_triggered_at = Some(time("2026-01-02T00:00:00Z"));
    binding.status.last_scheduled_time = Some(time("2026-01-01T00:00:00Z"));
    binding
}

fn divided(preference: &str) -> Value {
    json!({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": preference}})
}

fn static_weights(weights: &[(&str, i64)]) -> Value {
    let rule =
        |(name, weight): &(&str, i64)| json!({"targetCluster": {"clusterNames": [name]}, "weight": weight});
    let mut placement = divided("Weighted");
    placement["replicaScheduling"]["weightPreference"]["staticWeightList"] =
        weights.iter().map(rule).collect();
    placement
}

fn dynamic() -> Value {
    let mut placement = divided("Weighted");
    placement["replicaScheduling"]["weightPreference"]["dynamicWeight"] = json!("AvailableReplicas");
    placement
}

fn with(mut placement: Value, field: &str, value: Value) -> Value {
    placement[field] = value;
    placement
}

/// The chosen clusters, for example `m1:2 m2:1`; a failure as its sentence.
fn answer(placement: &Placement) -> String {
    match placement {
        Placement::Scheduled(schedule) => {
            let targets =
                schedule.clusters.iter().map(|target| format!("{}:{}", target.name, target.replicas));
            targets.collect::<Vec<_>>().join(" ")
        }
        Placement::Nowhere { failure, .. } | Placement::Kept { failure, .. } => failure.to_string(),
        other => other.to_string(),
    }
}

#[track_caller]
fn check(binding: &Binding, clusters: &[Cluster], expected: &str) {
    assert_eq!(answer(&placement(binding, clusters, NOW)), expected);
}
