//! Each warning where it belongs, and none where there is nothing to warn about.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::plan::plan;
use crate::snapshot::Change;

fn template(name: &str) -> Change {
    Change::Put(Arc::new(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"replicas": 1, "template": {"spec": {}}},
    })))
}

fn policy(name: &str, selected: &[&str], priority: i32, clusters: &[&str]) -> Change {
    let select = |name: &&str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let selectors: Vec<Value> = selected.iter().map(select).collect();
    Change::Put(Arc::new(json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default", "uid": name, "generation": 1},
        "spec": {
            "resourceSelectors": selectors, "priority": priority, "preemption": if priority > 5 { "Always" } else { "Never" },
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
        },
    })))
}

fn cluster(name: &str) -> Change {
    Change::Put(Arc::new(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "status": {"apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]},
    })))
}

/// What is said about the last of these changes, after all others have come to rest.
fn check(changes: &[Change], expected: Expect) {
    let (last, before) = changes.split_last().expect("a change");
    let mut snapshot = Snapshot::default();
    for change in [cluster("m1"), cluster("m2")].iter().chain(before) {
        snapshot.apply(change).expect("readable");
        snapshot.settle_all(Interpreters::BUILT_IN);
    }
    let plan = plan(&snapshot, std::slice::from_ref(last), Interpreters::BUILT_IN).expect("a plan");
    snapshot.apply(last).expect("readable");
    let Change::Put(object) = last else { panic!("it is about a policy that is there") };
    let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
    let key = PolicyKey { namespace: "default".to_owned(), name };
    expected.assert_eq(&warnings(&snapshot, &key, &plan, Interpreters::BUILT_IN).join("\n"));
}

#[test]
fn what_it_claims_is_counted() {
    check(
        &[template("a"), template("b"), policy("p", &["a", "b"], 0, &["m1"])],
        expect!["Plan: 2 templates, 2 claimed, 2 to create. See `longshore plan`."],
    );
}

#[test]
fn a_policy_that_changes_nothing_is_not_commented_upon() {
    let same = policy("p", &["a"], 0, &["m1"]);
    check(&[template("a"), same.clone(), same], expect![""]);
}

#[test]
fn selectors_that_mean_nothing_are_named() {
    check(
        &[template("a"), policy("p", &["a", "c"], 0, &["m1"])],
        expect![[r#"
            Plan: 1 template, 1 claimed, 1 to create. See `longshore plan`.
            spec.resourceSelectors[1] selects no Deployment that exists now."#]],
    );
}

#[test]
fn others_that_have_what_it_selects_are_named() {
    check(
        &[template("a"), policy("first", &["a"], 0, &["m1"]), policy("second", &["a"], 0, &["m2"])],
        expect!["Templates that it selects belong to other policies: PropagationPolicy default/first (1)."],
    );
}

fn cluster_policy(name: &str, clusters: &[&str]) -> Change {
    let Change::Put(object) = policy(name, &["a"], 0, clusters) else { panic!("a policy is put") };
    let mut object = Value::clone(&object);
    object["kind"] = json!("ClusterPropagationPolicy");
    object["metadata"] = json!({"name": name, "uid": name, "generation": 1});
    Change::Put(Arc::new(object))
}

#[test]
fn a_policy_that_comes_after_its_template_is_told_how_to_take_it() {
    check(
        &[cluster_policy("base", &["m1"]), template("a"), policy("own", &["a"], 0, &["m2"])],
        expect![[r#"
            Templates that it selects belong to other policies: ClusterPropagationPolicy base (1).
            Deployment default/a stays with ClusterPropagationPolicy base, which claimed it before this policy existed. To take it over: set spec.preemption: Always in this policy."#]],
    );
    check(
        &[policy("first", &["a"], 2, &["m1"]), template("a"), policy("better", &["a"], 5, &["m2"])],
        expect![[r#"
            Templates that it selects belong to other policies: PropagationPolicy default/first (1).
            Deployment default/a stays with PropagationPolicy default/first, which claims it already. To take it over: set spec.preemption: Always in this policy."#]],
    );
}

#[test]
fn what_it_takes_from_others_is_said() {
    check(
        &[template("a"), policy("first", &["a"], 0, &["m1"]), policy("second", &["a"], 9, &["m2"])],
        expect![[r#"
            Plan: 1 template, 1 preempted, 1 moved, 1 to create, 1 to delete. See `longshore plan`.
            Other policies select templates that belong to it: PropagationPolicy default/first (1)."#]],
    );
}

#[test]
fn clusters_that_do_not_exist_are_named_and_what_runs_nowhere_is_said_loudly() {
    check(
        &[template("a"), policy("p", &["a"], 0, &["m1"]), policy("p", &["a"], 0, &["m3", "m4"])],
        expect![[r#"
            Plan: 1 template, 1 to delete, 1 to run NOWHERE. See `longshore plan`.
            1 template WOULD RUN NOWHERE: Deployment default/a.
            spec.placement.clusterAffinity.clusterNames names clusters that do not exist: m3, m4. Clusters: m1, m2."#]],
    );
}

#[test]
fn a_new_policy_that_selects_no_cluster_leaves_its_templates_nowhere() {
    check(
        &[template("a"), template("b"), policy("p", &["a", "b"], 0, &["m3"])],
        expect![[r#"
            Plan: 2 templates, 2 claimed, 2 to run NOWHERE. See `longshore plan`.
            2 templates WOULD RUN NOWHERE: Deployment default/a, Deployment default/b.
            spec.placement.clusterAffinity.clusterNames names a cluster that does not exist: m3. Clusters: m1, m2."#]],
    );
}

#[test]
fn a_name_that_does_not_exist_beside_one_that_does_leaves_nothing_nowhere() {
    check(
        &[template("a"), policy("p", &["a"], 0, &["m1", "m3"])],
        expect![[r#"
            Plan: 1 template, 1 claimed, 1 to create. See `longshore plan`.
            spec.placement.clusterAffinity.clusterNames names a cluster that does not exist: m3. Clusters: m1, m2."#]],
    );
}

#[test]
fn selectors_that_mean_nothing_are_named_a_few_times_and_counted() {
    let names: Vec<String> = (0..8).map(|number| format!("none-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    check(
        &[policy("p", &names, 0, &["m1"])],
        expect![[r#"
            spec.resourceSelectors[0] selects no Deployment that exists now.
            spec.resourceSelectors[1] selects no Deployment that exists now.
            spec.resourceSelectors[2] selects no Deployment that exists now.
            5 more of spec.resourceSelectors select nothing that exists now."#]],
    );
}

#[test]
fn what_is_said_is_short() {
    let sentences = |count: usize| (0..count).map(|number| format!("sentence {}", number / 2)).collect();
    assert_eq!(capped(sentences(20)).len(), 10, "each once");
    let many = capped(sentences(8_000));
    assert_eq!((many.len(), many[9].as_str(), many[10].as_str()), (11, "sentence 9", "… and 3990 more."));
}
