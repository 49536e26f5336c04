//! Every kind of change is read from the objects, and nothing else is.

use std::sync::Arc;

use api::{Work, kinds, names};
use decide::snapshot::Change;
use serde_json::json;

use super::*;

/// The world with one Deployment that this policy owns.
fn snapshot(owner: &str, taken_from: &str) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let put = |snapshot: &mut Snapshot, object: Value| {
        snapshot.apply(&Change::Put(Arc::new(object))).expect("readable");
    };
    for name in ["a", "b"] {
        put(
            &mut snapshot,
            json!({
                "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
                "metadata": { "name": name, "uid": name, "generation": 1 },
            }),
        );
    }
    let record = json!({ "policy": { "uid": owner, "generation": 1 }, "takenFrom": taken_from }).to_string();
    let marks = match owner {
        "" => json!({}),
        owner => json!({ annotations::CLUSTER_PROPAGATION_POLICY_NAME: owner, "longshore.io/claim": record }),
    };
    put(
        &mut snapshot,
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "web", "namespace": "default", "uid": "w", "annotations": marks },
            "spec": { "replicas": 2 },
        }),
    );
    let pin = json!({ "policy": { "uid": "a", "generation": 1 } }).to_string();
    put(
        &mut snapshot,
        json!({
            "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
            "metadata": { "name": "web-deployment", "namespace": "default", "annotations": { "longshore.io/pin": pin } },
            "spec": { "resource": { "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web" }, "clusters": [{ "name": "m1", "replicas": 2 }] },
        }),
    );
    snapshot
}

/// A Work for m1 with so many replicas, this image, and a suspension.
fn work(replicas: i32, image: &str, suspended: bool) -> BTreeMap<WorkKey, Work> {
    let mut work = Work::new(&kinds::WORK, &names::execution_namespace("m1"), "web");
    work.spec.suspend_dispatching = Some(suspended);
    work.spec.workload.manifests = vec![json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default", "labels": { "work.karmada.io/x": image } },
        "spec": { "replicas": replicas, "image": image },
    })];
    [(WorkKey { cluster: "m1".to_owned(), name: "web".to_owned() }, work)].into()
}

#[track_caller]
fn check(
    before: (Snapshot, BTreeMap<WorkKey, Work>),
    after: (Snapshot, BTreeMap<WorkKey, Work>),
    expected: &[&str],
) {
    let happened = happened(&Observed::of(&before.0, &before.1), &Observed::of(&after.0, &after.1));
    let said: Vec<&str> = happened.values().flatten().map(String::as_str).collect();
    assert_eq!(said, expected);
    assert!(happened.keys().all(|name| name == "apps/v1/Deployment default/web"));
}

#[test]
fn what_happens_to_copies_is_seen() {
    let at = |works: BTreeMap<WorkKey, Work>| (snapshot("a", ""), works);
    let none = BTreeMap::new;
    check(at(none()), at(work(2, "x", false)), &["m1: create with 2 replicas"]);
    check(at(work(2, "x", true)), at(none()), &["m1: delete with 2 replicas"]);
    check(at(work(2, "x", false)), at(work(3, "x", false)), &["m1: scale from 2 to 3 replicas"]);
    check(at(work(2, "x", false)), at(work(2, "y", false)), &["m1: update"]);
    check(at(work(2, "x", false)), at(work(2, "x", true)), &["m1: suspend"]);
    check(at(work(2, "x", true)), at(work(2, "x", false)), &["m1: resume"]);
    check(at(work(2, "x", false)), at(work(2, "x", false)), &[]);
    let mut marked = work(2, "x", false);
    for one in marked.values_mut() {
        one.spec.workload.manifests[0]["metadata"]["labels"] = json!({ "work.karmada.io/x": "other" });
    }
    check(at(work(2, "x", false)), at(marked), &[]);
}

#[test]
fn what_happens_to_claims_is_seen() {
    let at = |owner: &str, taken_from: &str| (snapshot(owner, taken_from), BTreeMap::new());
    check(at("", ""), at("a", ""), &["claimed by ClusterPropagationPolicy a"]);
    check(at("a", ""), at("", ""), &["released by ClusterPropagationPolicy a"]);
    let (a, b) = ("ClusterPropagationPolicy a", "ClusterPropagationPolicy b");
    check(at("a", ""), at("b", ""), &[&format!("handed from {a} to {b}"), WAITS]);
    check(at("a", ""), at("b", "a"), &[&format!("taken from {a} by {b}"), WAITS]);
    check(at("b", "a"), at("b", "a"), &[]);
}

#[test]
fn a_copy_that_waits_for_its_successor_is_gone_already() {
    let mut moved = snapshot("a", "");
    for binding in Arc::make_mut(&mut moved.bindings).values_mut() {
        Arc::make_mut(binding).spec.clusters[0].name = "m2".to_owned();
    }
    check(
        (snapshot("a", ""), work(2, "x", false)),
        (moved, work(2, "x", true)),
        &["m1: delete with 2 replicas"],
    );
}

#[test]
fn a_copy_that_leaves_by_itself_is_gone_already() {
    let leaving = |suppress: Option<bool>, held: bool| {
        let mut snapshot = snapshot("a", "");
        for binding in Arc::make_mut(&mut snapshot.bindings).values_mut() {
            let task = api::binding::GracefulEvictionTask {
                from_cluster: "m1".to_owned(),
                suppress_deletion: suppress,
                ..api::binding::GracefulEvictionTask::default()
            };
            Arc::make_mut(binding).spec.graceful_eviction_tasks = vec![task];
        }
        (snapshot, work(2, "x", held))
    };
    let before = || (snapshot("a", ""), work(2, "x", false));
    check(before(), leaving(None, false), &["m1: delete with 2 replicas"]);
    check(before(), leaving(Some(false), false), &["m1: delete with 2 replicas"]);
    check(before(), leaving(Some(true), false), &[]);
    check(before(), leaving(None, true), &["m1: suspend"]);
}
