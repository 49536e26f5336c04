//! What is pending, case by case, in a snapshot of two clusters and one Deployment.

use api::work::ManifestStatus;
use serde_json::{Value, json};

use super::*;
use crate::snapshot::Change;

fn put(snapshot: &mut Snapshot, object: Value) {
    snapshot.apply(&Change::Put(Arc::new(object))).expect("readable");
}

fn cluster(name: &str, ready: &str) -> Value {
    let deployments =
        json!({"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]});
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "status": {
            "apiEnablements": [deployments],
            "conditions": [{"type": "Ready", "status": ready, "reason": "", "message": "no answer"}],
        },
    })
}

fn policy(generation: i64, clusters: &[&str], suspended: bool, lazy: bool) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "pp", "namespace": "default", "uid": "pp", "generation": generation},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
            "suspension": {"dispatching": suspended},
            "activationPreference": lazy.then_some("Lazy"),
        },
    })
}

fn deployment(version: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": version},
        "metadata": {
            "name": "web", "namespace": "default", "uid": "web", "generation": version,
            "resourceVersion": version.to_string(), "creationTimestamp": "2024-01-01T00:00:00Z",
        },
    })
}

fn key() -> Arc<TemplateKey> {
    let text = str::to_owned;
    let (api_version, kind) = (text("apps/v1"), text("Deployment"));
    Arc::new(TemplateKey { api_version, kind, namespace: text("default"), name: text("web") })
}

/// A snapshot at rest in which the policy says this.
fn settled(policy: Value) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for object in [cluster("m1", "True"), cluster("m2", "True"), policy, deployment(1)] {
        put(&mut snapshot, object);
    }
    snapshot.settle_all(Interpreters::BUILT_IN);
    snapshot
}

/// The Works of a snapshot, as the controllers would write them beside those that there are.
fn rendered(snapshot: &Snapshot, existing: &[Work]) -> Vec<Work> {
    let template = snapshot.templates.get(&key());
    let binding = snapshot.bindings.get(&key().binding()).expect("a binding");
    let (clusters, overrides) = (&snapshot.clusters, &[]);
    let sources =
        Sources { template: template.map(AsRef::as_ref), overrides, clusters, existing, needed_in: &[] };
    works(binding, sources).works.into_values().collect()
}

/// Its member has a Work, and it is healthy there.
fn delivered(mut work: Work) -> Work {
    work.metadata.generation = 1;
    let applied = conditions::condition(APPLIED, ConditionStatus::True, "AppliedSuccessful", "");
    work.status.conditions = vec![Condition { observed_generation: 1, ..applied }];
    work.status.manifest_statuses =
        vec![ManifestStatus { health: Some(Health::Healthy), ..ManifestStatus::default() }];
    work
}

fn all_delivered(snapshot: &Snapshot) -> Vec<Work> {
    rendered(snapshot, &[]).into_iter().map(delivered).collect()
}

#[track_caller]
fn check(snapshot: &Snapshot, works: &[Work], expected: &str) {
    let found = progress(snapshot, &[key()].into(), Interpreters::BUILT_IN, |_| works.to_vec());
    let told: Vec<String> = found[0].pending.iter().map(ToString::to_string).collect();
    assert_eq!(told.join("; "), expected);
}

#[test]
fn a_copy_is_done_when_it_is_applied_and_healthy() {
    let snapshot = settled(policy(1, &["m1", "m2"], false, false));
    let done = all_delivered(&snapshot);
    check(&snapshot, &done, "");
    check(&snapshot, &[], "m1: not yet applied; m2: not yet applied");
    let with = |change: fn(&mut Work)| {
        let mut works = done.clone();
        change(&mut works[0]);
        works
    };
    check(&snapshot, &with(|work| work.status.conditions.clear()), "m1: not yet applied");
    // What a member said of an older state of the Work says nothing about this one; Karmada says nothing of states.
    check(&snapshot, &with(|work| work.metadata.generation = 2), "m1: not yet applied");
    check(&snapshot, &with(|work| work.status.conditions[0].observed_generation = 0), "");
    check(
        &snapshot,
        &with(|work| {
            work.status.conditions[0].status = ConditionStatus::False;
            work.status.conditions[0].message = "refused".to_owned();
        }),
        "m1: not applied: refused",
    );
    let unhealthy = |work: &mut Work| work.status.manifest_statuses[0].health = Some(Health::Unhealthy);
    check(&snapshot, &with(unhealthy), "m1: applied, not yet healthy");
    let older = |work: &mut Work| work.spec.workload.manifests[0]["spec"]["replicas"] = json!(9);
    check(&snapshot, &with(older), "m1: not yet applied");
    let mut silent = snapshot.clone();
    put(&mut silent, cluster("m2", "False"));
    check(&silent, &done, "m2: unknown: no answer");
}

#[test]
fn what_the_controllers_have_not_seen_is_pending() {
    let mut snapshot = settled(policy(1, &["m1", "m2"], false, false));
    let done = all_delivered(&snapshot);
    put(&mut snapshot, deployment(2));
    check(&snapshot, &done, "the controllers have not acted on it yet");
    snapshot.settle_all(Interpreters::BUILT_IN);
    check(&snapshot, &done, "m1: not yet applied; m2: not yet applied");
    // A lazy policy sets nothing off.
    let mut snapshot = settled(policy(1, &["m1", "m2"], false, false));
    put(&mut snapshot, policy(2, &["m1"], false, true));
    snapshot.settle_all(Interpreters::BUILT_IN);
    check(&snapshot, &done, "");
}

#[test]
fn what_leaves_is_done_when_it_is_gone() {
    let mut snapshot = settled(policy(1, &["m1"], false, false));
    let before = all_delivered(&snapshot);
    put(&mut snapshot, policy(2, &["m2"], false, false));
    check(&snapshot, &before, "the controllers have not acted on it yet");
    snapshot.settle_all(Interpreters::BUILT_IN);
    // The new copy is applied first (M1).
    check(&snapshot, &before, "m2: not yet applied");
    let mut both = before.clone();
    both.extend(rendered(&snapshot, &[]).into_iter().map(delivered));
    check(&snapshot, &both, "m1: not yet removed");
    check(&snapshot, &both[1..], "");
    let going = Work { metadata: deleted(&before[0]), ..before[0].clone() };
    check(&snapshot, &[going, both[1].clone()], "m1: not yet removed");
    snapshot.remove_template(&key());
    check(&snapshot, &both, "m1: not yet removed; m2: not yet removed");
    check(&snapshot, &[], "");
}

fn deleted(work: &Work) -> api::ObjectMeta {
    let time = "2024-01-01T00:00:00Z".parse().expect("a time");
    api::ObjectMeta { deletion_timestamp: Some(time), ..work.metadata.clone() }
}

#[test]
fn what_is_suspended_is_not_waited_for() {
    let snapshot = settled(policy(1, &["m1"], true, false));
    let mut held = rendered(&snapshot, &[]);
    check(&snapshot, &held, "m1: not yet suspended");
    held[0].status.conditions =
        vec![conditions::condition(DISPATCHING, ConditionStatus::False, "SuspendDispatching", "")];
    check(&snapshot, &held, "");
    let found = progress(&snapshot, &[key()].into(), Interpreters::BUILT_IN, |_| held.clone());
    assert_eq!(found[0].suspended, ["m1"]);
    // Until the brake is off in the Work, nothing is dispatched.
    let resumed = settled(policy(1, &["m1"], false, false));
    check(&resumed, &held, "m1: not yet applied");
}

#[test]
fn what_fits_nowhere_is_told() {
    let mut snapshot = settled(policy(1, &["m1"], false, false));
    let binding = key().binding();
    let found = Arc::make_mut(&mut snapshot.bindings).get_mut(&binding).expect("a binding");
    let message = "no cluster fits.";
    Arc::make_mut(found).status.conditions =
        vec![conditions::condition(SCHEDULED, ConditionStatus::False, "NoClusterFit", message)];
    check(&snapshot, &all_delivered(&snapshot), "no cluster fits");
}
