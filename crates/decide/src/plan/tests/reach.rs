//! Which templates a change affects: namespaces and their contents, clusters and their taints, override policies that
//! fail, kinds that come with their CRDs, and the order of changes.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{cluster, put};
use crate::plan::{Plan, plan};
use crate::snapshot::{Change, Interpreters, Snapshot};

const SECOND: &str = "2026-01-01T00:00:00Z";

fn metadata(namespace: &str, name: &str) -> Value {
    json!({
        "namespace": namespace, "name": name, "uid": format!("uid-{name}"), "generation": 1,
        "resourceVersion": "1", "creationTimestamp": SECOND,
    })
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(namespace, name),
        "spec": { "replicas": 2 },
    })
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata("", name) })
}

fn everything(kinds: &[(&str, &str)], more: Value) -> Value {
    let selectors = kinds.iter().map(|(version, kind)| json!({ "apiVersion": version, "kind": kind }));
    let mut policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": metadata("", "all"),
        "spec": { "resourceSelectors": selectors.collect::<Vec<_>>() },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        policy["spec"][field] = value.clone();
    }
    policy
}

/// A world at rest with two clusters and these objects.
fn snapshot(objects: impl IntoIterator<Item = Value>) -> Snapshot {
    let mut snapshot = Snapshot { now: SECOND.parse().expect("a time"), ..Snapshot::default() };
    for change in ["m1", "m2"].map(cluster).into_iter().chain(objects.into_iter().map(put)) {
        snapshot.apply(&change).expect("readable");
    }
    snapshot.settle_all(Interpreters::BUILT_IN);
    snapshot
}

fn check(snapshot: &Snapshot, changes: &[Change], expected: Expect) -> Plan {
    let planned = plan(snapshot, changes, Interpreters::BUILT_IN).expect("readable");
    let mut said = String::new();
    for one in planned.templates.values() {
        said += &one.template.to_string();
        said += &one.claim.iter().map(|claim| format!(" {claim},")).collect::<String>();
        said += &one.clusters.iter().map(|(name, what)| format!(" {name} {what},")).collect::<String>();
        said += if one.held.is_some() { " waits,\n" } else { "\n" };
    }
    expected.assert_eq(&said);
    planned
}

fn delete(api_version: &str, kind: &str, namespace: &str, name: &str) -> Change {
    Change::Delete {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
    }
}

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");

#[test]
fn a_namespace_goes_everywhere_and_takes_what_is_in_it_along() {
    let shop = snapshot([everything(&[DEPLOYMENT], json!({}))]);
    let made =
        [put(namespace("shop")), put(deployment("shop", "web")), put(deployment("kube-system", "dns"))];
    check(
        &shop,
        &made,
        expect![[r#"
        Deployment shop/web claimed by ClusterPropagationPolicy all, m1 create with 2 replicas, m2 create with 2 replicas,
        Namespace shop m1 create with 0 replicas, m2 create with 0 replicas,
    "#]],
    );
    let shop = snapshot([everything(&[DEPLOYMENT], json!({})), namespace("shop"), deployment("shop", "web")]);
    check(
        &shop,
        &[delete("v1", "Namespace", "", "shop")],
        expect![[r#"
        Deployment shop/web released by ClusterPropagationPolicy all, m1 delete with 2 replicas, m2 delete with 2 replicas,
        Namespace shop m1 delete with 0 replicas, m2 delete with 0 replicas,
    "#]],
    );
    let mut labelled = namespace("shop");
    labelled["metadata"]["labels"] = json!({ "tier": "gold" });
    check(
        &shop,
        &[put(labelled.clone())],
        expect![[r#"
        Namespace shop m1 update, m2 update,
    "#]],
    );
    labelled["metadata"]["labels"] = json!({ "namespace.karmada.io/skip-auto-propagation": "true" });
    check(&shop, &[put(labelled)], expect![""]);
}

fn tainted(effect: &str) -> Change {
    let Change::Put(object) = cluster("m1") else { unreachable!("it is put") };
    let mut object = Value::clone(&object);
    object["spec"] = json!({ "taints": [{ "key": "broken", "effect": effect }] });
    put(object)
}

#[test]
fn a_cluster_that_is_tainted_or_leaves_is_left() {
    let spread = json!({ "placement": {
        "replicaScheduling": { "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted" },
    } });
    let web = snapshot([everything(&[DEPLOYMENT], spread), deployment("default", "web")]);
    let moved = expect![[r#"
        Deployment default/web m1 delete with 1 replicas, after it is applied in m2, m2 scale from 1 to 2 replicas,
    "#]];
    let plan = check(&web, &[tainted("NoExecute")], moved);
    assert_eq!((plan.totals.deleted, plan.totals.scaled), (1, 1));
    let whys: Vec<&str> = plan.templates.values().map(|one| &*one.why).collect();
    assert_eq!(whys, ["it has to leave m1: TaintUntolerated"]);
    check(&web, &[tainted("NoSchedule")], expect![""]);
    check(
        &web,
        &[delete("cluster.karmada.io/v1alpha1", "Cluster", "", "m1")],
        expect![[r#"
        Deployment default/web m1 delete with 1 replicas, m2 scale from 1 to 2 replicas,
    "#]],
    );
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": metadata("", "t"),
        "spec": {
            "targetClusters": { "clusterNames": ["m1"] },
            "addOnConditions": [{ "conditionType": "Ready", "operator": "In", "statusValues": ["True"] }],
            "taints": [{ "key": "broken", "effect": "NoExecute" }],
        },
    });
    let Change::Put(object) = cluster("m1") else { unreachable!("it is put") };
    let mut ready = Value::clone(&object);
    ready["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
    let mut off = web.clone();
    off.gates.failover = false;
    check(&off, &[put(ready.clone()), put(policy.clone())], expect![""]);
    check(
        &web,
        &[put(ready), put(policy)],
        expect![[r#"
        Deployment default/web m1 delete with 1 replicas, after it is applied in m2, m2 scale from 1 to 2 replicas,
    "#]],
    );
}

fn overriding(path: &str, value: Value) -> Change {
    let plaintext = json!([{ "path": path, "operator": "replace", "value": value }]);
    put(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy", "metadata": metadata("default", "o"),
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment" }],
            "overrideRules": [{
                "targetCluster": { "clusterNames": ["m2"] }, "overriders": { "plaintext": plaintext },
            }],
        },
    }))
}

#[test]
fn what_an_override_policy_makes_of_it_is_what_comes() {
    let empty = snapshot([everything(&[DEPLOYMENT], json!({}))]);
    let web = put(deployment("default", "web"));
    check(
        &empty,
        &[overriding("/spec/replicas", json!(7)), web.clone()],
        expect![[r#"
        Deployment default/web claimed by ClusterPropagationPolicy all, m1 create with 2 replicas, m2 create with 7 replicas,
    "#]],
    );
    check(
        &empty,
        &[overriding("/spec/no/such", json!(7)), web],
        expect![[r#"
        Deployment default/web claimed by ClusterPropagationPolicy all, m1 create with 2 replicas,
    "#]],
    );
    let running = snapshot([everything(&[DEPLOYMENT], json!({})), deployment("default", "web")]);
    check(
        &running,
        &[overriding("/spec/replicas", json!(7))],
        expect![[r#"
        Deployment default/web m2 scale from 2 to 7 replicas,
    "#]],
    );
    check(&running, &[overriding("/spec/no/such", json!(7))], expect![""]);
}

#[test]
fn a_definition_brings_its_kind() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": metadata("", "cars.example.io"),
        "spec": {
            "group": "example.io", "names": { "kind": "Car", "plural": "cars" }, "versions": [{ "name": "v1" }],
        },
    });
    let car =
        json!({ "apiVersion": "example.io/v1", "kind": "Car", "metadata": metadata("default", "mini") });
    let knows_definitions = |name: &str| {
        let Change::Put(object) = cluster(name) else { unreachable!("it is put") };
        let mut object = Value::clone(&object);
        object["status"]["apiEnablements"] = json!([{
            "groupVersion": "apiextensions.k8s.io/v1",
            "resources": [{ "name": "customresourcedefinitions", "kind": "CustomResourceDefinition" }],
        }]);
        object
    };
    let kinds = [("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("example.io/v1", "Car")];
    let parked = snapshot([knows_definitions("m1"), car, everything(&kinds, json!({}))]);
    check(
        &parked,
        &[put(definition.clone())],
        expect![[r#"
        CustomResourceDefinition cars.example.io claimed by ClusterPropagationPolicy all, m1 create with 0 replicas,
        Car default/mini m1 create with 0 replicas,
    "#]],
    );
    let mut driving = parked;
    driving.apply(&put(definition)).expect("readable");
    driving.settle_all(Interpreters::BUILT_IN);
    let gone = delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "cars.example.io");
    check(
        &driving,
        &[gone],
        expect![[r#"
        CustomResourceDefinition cars.example.io released by ClusterPropagationPolicy all, m1 delete with 0 replicas,
        Car default/mini released by ClusterPropagationPolicy all, m1 delete with 0 replicas,
    "#]],
    );
}

/// Without a version, as a server answers to what is only tried.
fn tried(mut object: Value) -> Change {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    put(object)
}

#[test]
fn changes_come_one_after_the_other() {
    let lazy = || everything(&[DEPLOYMENT], json!({ "activationPreference": "Lazy" }));
    let web = || deployment("default", "web");
    check(
        &snapshot([]),
        &[tried(lazy()), tried(web())],
        expect![[r#"
        Deployment default/web claimed by ClusterPropagationPolicy all, m1 create with 2 replicas, m2 create with 2 replicas,
    "#]],
    );
    check(
        &snapshot([]),
        &[tried(web()), tried(lazy())],
        expect![[r#"
        Deployment default/web claimed by ClusterPropagationPolicy all, waits,
    "#]],
    );
}

#[test]
fn a_rebalancer_places_anew() {
    let spread = json!({ "placement": {
        "replicaScheduling": { "replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted" },
    } });
    let mut alone = Snapshot { now: SECOND.parse().expect("a time"), ..Snapshot::default() };
    for change in [cluster("m1"), put(everything(&[DEPLOYMENT], spread)), put(deployment("default", "web"))] {
        alone.apply(&change).expect("readable");
    }
    alone.settle_all(Interpreters::BUILT_IN);
    for binding in std::sync::Arc::make_mut(&mut alone.bindings).values_mut() {
        let status = &mut std::sync::Arc::make_mut(binding).status;
        status.last_scheduled_time = Some(alone.now.into());
    }
    check(&alone, &[cluster("m2")], expect![""]);
    alone.apply(&cluster("m2")).expect("readable");
    let mut rebalancer = json!({
        "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": metadata("", "again"),
        "spec": { "workloads": [
            { "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web" },
        ] },
    });
    rebalancer["metadata"]["creationTimestamp"] = "2026-01-01T00:01:00Z".into();
    check(
        &alone,
        &[put(rebalancer)],
        expect![[r#"
        Deployment default/web m1 scale from 2 to 1 replicas, after it is applied in m2, m2 create with 1 replicas,
    "#]],
    );
}
