//! Benchmark: one placement over a thousand clusters, by strategy.

use std::hint::black_box;

use api::{Binding, Cluster, labels};
use criterion::{Criterion, criterion_group, criterion_main};
use decide::placement::placement;
use serde_json::{Value, json};

fn cluster(number: usize) -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": format!("member{number:04}")},
        "spec": {
            "syncMode": "Push",
            "provider": format!("p{}", number % 4),
            "region": format!("r{:02}", number % 20),
            "zones": [format!("z{:03}", number % 100)],
            "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
        },
        "status": {
            "apiEnablements": (0..40).map(|group| json!({
                "groupVersion": if group == 20 { "apps/v1".to_owned() } else { format!("group{group}/v1") },
                "resources": [{"name": "daemonsets", "kind": "DaemonSet"}, {"name": "deployments", "kind": "Deployment"}],
            })).collect::<Vec<_>>(),
            "resourceSummary": {
                "allocatable": {"cpu": "640", "memory": "2560Gi", "pods": "5500"},
                "allocated": {"cpu": format!("{}m", 1000 + number * 7), "memory": "900Gi", "pods": "1200"},
                "allocating": {"cpu": "250m", "pods": "3"},
            },
        },
    }))
    .expect("a cluster")
}

fn binding(placement: Value) -> Binding {
    let mut binding: Binding = serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"name": "nginx-deployment", "namespace": "default"},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx", "uid": "a"},
            "replicas": 5000,
            "replicaRequirements": {"resourceRequest": {"cpu": "500m", "memory": "512Mi"}},
            "placement": placement,
        },
    }))
    .expect("a binding");
    binding.metadata.labels.insert(labels::PROPAGATION_POLICY_PERMANENT_ID.to_owned(), "id".to_owned());
    binding
}

fn thousand_clusters(criterion: &mut Criterion) {
    let clusters: Vec<Cluster> = (0..1000).map(cluster).collect();
    let tolerations = json!([{"key": "team", "operator": "Exists"}]);
    let divided = |preference: &str, weights: Value| {
        json!({
            "clusterTolerations": tolerations,
            "replicaScheduling": {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": preference,
                "weightPreference": weights,
            },
        })
    };
    let spread =
        |field: &str, min: i64, max: i64| json!({"spreadByField": field, "minGroups": min, "maxGroups": max});
    for (name, rules) in [
        ("duplicated", json!({"clusterTolerations": tolerations})),
        ("refused", json!({})),
        ("static", divided("Weighted", Value::Null)),
        ("dynamic", divided("Weighted", json!({"dynamicWeight": "AvailableReplicas"}))),
        ("aggregated", divided("Aggregated", Value::Null)),
        (
            "regions",
            json!({
                "clusterTolerations": tolerations,
                "spreadConstraints": [spread("region", 3, 5), spread("cluster", 10, 50)],
            }),
        ),
        (
            "zones",
            json!({
                "clusterTolerations": tolerations,
                "spreadConstraints": [spread("zone", 3, 5), spread("cluster", 10, 50)],
            }),
        ),
    ] {
        let binding = binding(rules);
        criterion.bench_function(&format!("placement over 1000 clusters, {name}"), |bencher| {
            bencher.iter(|| placement(black_box(&binding), black_box(&clusters), jiff::Timestamp::default()));
        });
    }
}

criterion_group!(benches, thousand_clusters);
criterion_main!(benches);
