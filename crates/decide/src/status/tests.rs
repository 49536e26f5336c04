//! Aggregation from Works to bindings.

use serde_json::json;

use super::*;

fn work(cluster: &str, status: Value) -> Work {
    serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"name": "nginx", "namespace": format!("karmada-es-{cluster}")}, "status": status,
    }))
    .expect("a work")
}

fn applied(cluster: &str, ready: i64) -> Work {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nginx", "namespace": "default", "generation": 1},
        "spec": {"replicas": 1}, "status": {"replicas": 1, "updatedReplicas": 1, "availableReplicas": ready, "observedGeneration": 1},
    });
    let mut work = work(
        cluster,
        json!({"conditions": [{"type": "Applied", "status": "True", "reason": "", "message": ""}]}),
    );
    work.status.manifest_statuses = vec![manifest_status(&object)];
    work
}

fn refused(cluster: &str) -> Work {
    work(
        cluster,
        json!({"conditions": [{"type": "Applied", "status": "False", "reason": "AppliedFailed", "message": "no room"}]}),
    )
}

fn binding(clusters: &[&str]) -> Binding {
    let clusters: Vec<Value> = clusters.iter().map(|name| json!({"name": name, "replicas": 1})).collect();
    serde_json::from_value(json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": {"name": "b", "namespace": "default"},
        "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"}, "clusters": clusters},
    }))
    .expect("a binding")
}

#[test]
fn each_work_tells_its_part_sorted_by_cluster() {
    let told = status(
        &binding(&["m1", "m2", "m3"]),
        &[refused("m3"), applied("m2", 0), applied("m1", 1), work("m4", json!({}))],
    );
    let seen: Vec<_> = told
        .items
        .iter()
        .map(|item| (item.cluster_name.as_str(), item.applied, item.health, item.applied_message.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("m1", true, Some(Health::Healthy), ""),
            ("m2", true, Some(Health::Unhealthy), ""),
            ("m3", false, Some(Health::Unknown), "no room"),
            ("m4", false, Some(Health::Unknown), ""),
        ]
    );
    assert_eq!(told.items[0].status.as_ref().expect("a status").read()["availableReplicas"], 1);
}

#[test]
fn more_is_to_come_until_each_cluster_has_it_healthy_or_refuses_it() {
    let check = |works: &[Work], expected: bool| {
        let binding = binding(&["m1", "m2"]);
        assert_eq!(status(&binding, works).is_unfinished(&binding), expected, "{works:?}");
    };
    check(&[], true);
    check(&[applied("m1", 1)], true);
    check(&[applied("m1", 1), work("m2", json!({}))], true);
    check(&[applied("m1", 1), applied("m2", 0)], true);
    check(&[applied("m1", 1), applied("m2", 1)], false);
    check(&[applied("m1", 1), refused("m2")], false);
    // The copy in m3 is being left, and goes soon.
    check(&[applied("m1", 1), applied("m2", 1), applied("m3", 0)], true);
    let mut binding = binding(&["m1", "m2"]);
    let is_silent = |binding: &Binding, works: &[Work]| status(binding, works).is_silent(binding);
    assert!(is_silent(&binding, &[]) && is_silent(&binding, &[work("m1", json!({})), work("m2", json!({}))]));
    assert!(!is_silent(&binding, &[refused("m1")]));
    assert!(!is_silent(&binding, &[work("m1", json!({})), applied("m2", 0)]));
    // It moved: what it says of the clusters before is not true any more, and not to be left standing.
    binding.status.aggregated_status = status(&binding, &[applied("m1", 1)]).items;
    assert!(!is_silent(&binding, &[work("m2", json!({}))]));
}

#[test]
fn fully_applied_means_exactly_the_clusters_of_the_binding() {
    let check = |clusters: &[&str], works: &[Work], expected: bool| {
        assert_eq!(status(&binding(clusters), works).fully_applied, expected);
    };
    check(&["m1", "m2"], &[applied("m1", 1), applied("m2", 0)], true);
    check(&["m1", "m2"], &[applied("m1", 1)], false);
    check(&["m1"], &[applied("m1", 1), applied("m2", 1)], false);
    check(&["m1"], &[refused("m1")], false);
    check(&[], &[], false);
    let mut leaving = applied("m1", 1);
    leaving.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse().expect("a time"));
    check(&["m1"], &[leaving], false);
}

#[test]
fn c6_the_same_status_twice_is_no_write() {
    let now = |text: &str| text.parse::<Timestamp>().expect(text);
    let mut binding = binding(&["m1"]);
    status(&binding, &[applied("m1", 1)]).write(&mut binding, now("2026-01-01T00:00:00Z"));
    assert_eq!(binding.status.conditions[0].reason, "FullyAppliedSuccess");
    let before = binding.clone();
    status(&binding, &[applied("m1", 1)]).write(&mut binding, now("2026-01-02T00:00:00Z"));
    assert_eq!(binding, before);
}

#[test]
fn u2_the_condition_tells_whether_a_work_is_dispatched() {
    let mut work = applied("m1", 1);
    let active = dispatching(&work);
    assert_eq!((active.status, active.reason.as_str()), (ConditionStatus::True, "Dispatching"));
    work.spec.suspend_dispatching = Some(true);
    let held = dispatching(&work);
    assert_eq!(
        (held.status, held.reason.as_str(), held.message.as_str()),
        (ConditionStatus::False, "SuspendDispatching", "Work dispatching is in a suspended state.")
    );
}

#[test]
fn a_manifest_is_named_by_group_and_version() {
    let identifier = manifest_status(
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}),
    )
    .identifier;
    assert_eq!((identifier.group.as_str(), identifier.version.as_str()), ("", "v1"));
    let identifier = manifest_status(&json!({"apiVersion": "apps/v1", "kind": "Deployment"})).identifier;
    assert_eq!((identifier.group.as_str(), identifier.version.as_str()), ("apps", "v1"));
}
