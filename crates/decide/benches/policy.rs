//! Benchmark: the cost of indexes and plans grows with what matches, not with what exists (B5).

use std::hint::black_box;
use std::sync::Arc;

use api::{Cluster, PropagationPolicy, kinds};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use decide::claim::Past;
use decide::plan::plan;
use decide::snapshot::{Change, Interpreters};
use decide::{Gates, Policies, Policy, Snapshot, Template, Templates, claim};
use serde_json::{Value, json};

/// The allocator that the program has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

fn template(namespace: &str, name: &str, app: &str) -> Template {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("{namespace}/{name}"), "resourceVersion": "1",
            "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"app": app},
        },
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": "nginx"}]}}},
    });
    Template::read(&object).expect("a template")
}

fn object(kind: &kinds::Kind, namespace: &str, name: &str, selector: Value, clusters: &[&str]) -> Value {
    let mut selects = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    selects.as_object_mut().expect("a map").extend(selector.as_object().expect("a map").clone());
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace, "uid": name, "generation": 1},
        "spec": {
            "resourceSelectors": [selects],
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
        },
    })
}

fn policy(kind: &kinds::Kind, namespace: &str, name: &str, selector: Value) -> Policy {
    let object = object(kind, namespace, name, selector, &["m1"]);
    Policy::from(&serde_json::from_value::<PropagationPolicy>(object).expect("a policy"))
}

/// Policies of every shape, of which ten match `team7-prod/web`.
fn many_policies(count: usize) -> Policies {
    let mut policies = Policies::default();
    for index in 0..count - 10 {
        let name = format!("p{index}");
        let made = match index % 4 {
            0 => policy(&kinds::PROPAGATION_POLICY, &format!("other{index}"), &name, json!({})),
            1 => policy(&kinds::CLUSTER_PROPAGATION_POLICY, "", &name, json!({"name": name})),
            2 => policy(
                &kinds::CLUSTER_PROPAGATION_POLICY,
                "",
                &name,
                json!({"labelSelector": {"matchLabels": {"app": name}}}),
            ),
            _ => policy(
                &kinds::CLUSTER_PROPAGATION_POLICY,
                "",
                &name,
                json!({"namespace": format!("{name}-*")}),
            ),
        };
        policies.insert(made);
    }
    for index in 0..10 {
        let selector = match index % 3 {
            0 => json!({"namespace": "team7-*"}),
            1 => json!({"labelSelector": {"matchLabels": {"app": "web"}}}),
            _ => json!({"name": "web"}),
        };
        policies.insert(policy(&kinds::CLUSTER_PROPAGATION_POLICY, "", &format!("match{index}"), selector));
    }
    policies
}

fn claim_one(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("claim, 10 of N policies match");
    let wanted = template("team7-prod", "web", "web");
    let past = Past { bound: false, changed: true, waiting: false, asked: false };
    for size in SIZES {
        let policies = many_policies(size);
        group.bench_with_input(BenchmarkId::from_parameter(size), &policies, |bencher, policies| {
            bencher.iter(|| black_box(claim(&wanted, past, policies, &Gates::default())));
        });
    }
    group.finish();
}

/// Templates in a thousand namespaces, of which a hundred have the label.
fn many_templates(count: usize) -> Templates {
    let mut templates = Templates::default();
    for index in 0..count {
        let app = if index % (count / 100) == 0 { "web" } else { "other" };
        templates.insert(template(&format!("ns{}", index % 1000), &format!("t{index}"), app));
    }
    templates
}

fn touched_by_one_edit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("touched, 100 of N templates match");
    let edited = policy(
        &kinds::CLUSTER_PROPAGATION_POLICY,
        "",
        "edited",
        json!({"labelSelector": {"matchLabels": {"app": "web"}}}),
    );
    for size in SIZES {
        let templates = many_templates(size);
        assert_eq!(templates.touched(None, Some(&edited)).len(), 100);
        group.bench_with_input(BenchmarkId::from_parameter(size), &templates, |bencher, templates| {
            bencher.iter(|| black_box(templates.touched(Some(&edited), Some(&edited))));
        });
    }
    group.finish();
}

fn member(name: &str) -> Cluster {
    let mut cluster = Cluster::new(&kinds::CLUSTER, "", name);
    let enabled =
        json!([{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]);
    cluster.status.api_enablements = serde_json::from_value(enabled).expect("enablements");
    cluster
}

/// The default policy moves everything from one cluster to another.
fn plan_default_edit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan of a default policy edit");
    group.sample_size(10);
    for (size, takes_along) in [(10_000, false), (100_000, false), (100_000, true)] {
        let default = |clusters: &[&str], generation: i64| {
            let mut object = object(&kinds::CLUSTER_PROPAGATION_POLICY, "", "default", json!({}), clusters);
            object["metadata"]["generation"] = generation.into();
            object["spec"]["propagateDeps"] = takes_along.into();
            Change::Put(Arc::new(object))
        };
        let clusters = ["m1", "m2", "m3"].map(member).to_vec();
        let mut snapshot =
            Snapshot { templates: many_templates(size), clusters: Arc::new(clusters), ..Snapshot::default() };
        snapshot.apply(&default(&["m1"], 1)).expect("a policy");
        snapshot.settle_all(Interpreters::BUILT_IN);
        let edit = [default(&["m2", "m3"], 2)];
        let name = if takes_along { "propagateDeps" } else { "alone" };
        group.bench_with_input(BenchmarkId::new(name, size), &snapshot, |bencher, snapshot| {
            bencher.iter(|| {
                let planned = plan(snapshot, &edit, Interpreters::BUILT_IN).expect("a plan");
                assert_eq!(planned.totals.moved, size);
                black_box(planned)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, claim_one, touched_by_one_edit, plan_default_edit);
criterion_main!(benches);
