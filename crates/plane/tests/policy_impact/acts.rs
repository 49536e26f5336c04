//! A budget bounds effects, whatever caused them, and an approval is for one plan of one write (M4).

use apiserver::admission::{Attributes, Operation};
use apiserver::authn::Identity;
use controllers::cache::Cache;
use plane::policy_impact::{Budget, PolicyImpact};
use serde_json::{Value, json};

use super::{at_rest, cluster, digest, policy, rules};

const APPROVED: &str = "longshore.io/approved-plan";

/// The policy impact on a snapshot in which a policy with these annotations has sent two templates to m1.
fn policy_impact(budget: Budget, annotations: Value) -> (PolicyImpact, Cache) {
    let cache = at_rest(&policy("m1", annotations));
    cache.note_synced();
    let policy_impact = PolicyImpact::new(budget);
    policy_impact.see(cache.clone());
    (policy_impact, cache)
}

fn deleted(max: usize) -> Budget {
    Budget { moved: None, deleted: Some(max) }
}

/// What is answered to a write, and what is stored.
pub(super) fn write(
    policy_impact: &PolicyImpact,
    operation: Operation,
    old: Option<&Value>,
    object: &Value,
) -> Result<(Vec<String>, Value), String> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let resource = format!("{}s", text("kind").to_lowercase());
    let attributes = Attributes {
        operation,
        group,
        version,
        resource: &resource,
        kind: text("kind"),
        subresource: "",
        old,
        dry_run: false,
        identity: &Identity::internal("admin"),
    };
    let mut object = object.clone();
    let warnings = rules(policy_impact.clone())(&attributes, &mut object).map_err(|error| error.message)?;
    Ok((warnings, object))
}

fn delete(policy_impact: &PolicyImpact, object: &Value) -> Result<Vec<String>, String> {
    write(policy_impact, Operation::Delete, Some(object), object).map(|(warnings, _)| warnings)
}

pub(super) fn update(
    policy_impact: &PolicyImpact,
    old: &Value,
    new: &Value,
) -> Result<(Vec<String>, Value), String> {
    write(policy_impact, Operation::Update, Some(old), new)
}

pub(super) fn annotated(object: &Value, key: &str, value: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["annotations"][key] = value.into();
    object
}

#[test]
fn an_approval_is_used_up_by_the_write_it_came_with() {
    let limit = json!({ "longshore.io/max-moved": "1" });
    let (policy_impact, _) = policy_impact(Budget::default(), limit.clone());
    let (before, after) = (policy("m1", limit.clone()), policy("m2", limit));
    let refusal = update(&policy_impact, &before, &after).expect_err("it moves too much");
    let approved = annotated(&after, APPROVED, digest(&refusal));
    let (_, stored) = update(&policy_impact, &before, &approved).expect("it is approved");
    assert_eq!(stored["metadata"]["annotations"].get(APPROVED), None);
    // Later the policy says m1 again, and the same file is applied once more.
    let mut later = before;
    later["metadata"]["generation"] = 3.into();
    let refusal = update(&policy_impact, &later, &approved).expect_err("it was used up");
    assert!(refusal.contains("it would move 2 templates"), "{refusal}");
}

#[test]
fn an_approval_that_approves_nothing_is_not_stored() {
    let (policy_impact, _) = policy_impact(deleted(1), json!({}));
    let before = policy("m1", json!({}));
    let (warnings, stored) =
        update(&policy_impact, &before, &annotated(&before, APPROVED, "12ab")).expect("it does nothing");
    assert_eq!(stored["metadata"].get("annotations"), None);
    assert!(warnings.iter().any(|warning| warning.contains("it approves nothing")), "{warnings:?}");
}

#[test]
fn a_cluster_with_workloads_is_deleted_only_within_the_budget() {
    let (policy_impact, _) = policy_impact(deleted(1), json!({}));
    let refusal = delete(&policy_impact, &cluster("m1")).expect_err("two objects go");
    assert!(
        refusal.contains("it would delete 2 objects, and longshore.io/max-deleted allows 1"),
        "{refusal}"
    );
    assert!(refusal.contains("first annotate the Cluster with "), "{refusal}");
    assert_eq!(delete(&policy_impact, &cluster("m2")), Ok(vec![]), "nothing is there");
    // The approval comes first, by itself, and is kept for the deletion.
    let approved = annotated(&cluster("m1"), APPROVED, digest(&refusal));
    let (_, stored) = update(&policy_impact, &cluster("m1"), &approved).expect("it changes nothing");
    assert_eq!(stored["metadata"]["annotations"][APPROVED], digest(&refusal));
    let told = delete(&policy_impact, &stored).expect("it is approved");
    assert!(told[0].starts_with("Plan: 2 templates"), "{told:?}");
    let generous = annotated(&cluster("m1"), "longshore.io/max-deleted", "2");
    assert!(delete(&policy_impact, &generous).is_ok(), "the Cluster says so itself");
}

#[test]
fn a_taint_that_evicts_nothing_and_a_label_are_let_through() {
    let (policy_impact, _) = policy_impact(Budget { moved: None, deleted: Some(1) }, json!({}));
    let mut tainted = cluster("m1");
    tainted["spec"] = json!({ "taints": [{ "key": "broken", "effect": "NoSchedule" }] });
    assert_eq!(update(&policy_impact, &cluster("m1"), &tainted).map(|(warnings, _)| warnings), Ok(vec![]));
    let mut labelled = cluster("m1");
    labelled["metadata"]["labels"] = json!({ "zone": "a" });
    assert!(update(&policy_impact, &cluster("m1"), &labelled).is_ok());
}

#[test]
fn a_namespace_and_a_definition_take_only_so_much_along() {
    let (policy_impact, cache) = policy_impact(deleted(1), json!({}));
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
    let refusal = delete(&policy_impact, &namespace).expect_err("everything in it goes");
    assert!(refusal.contains("it would delete 2 objects"), "{refusal}");
    let works = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "karmada-es-m1" } });
    assert!(delete(&policy_impact, &works).is_err(), "it holds what m1 has");
    let definition = |name: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": name },
            "spec": { "group": "apps", "names": { "kind": "Deployment" } },
        })
    };
    cache.put(definition("deployments.apps"));
    assert!(
        delete(&policy_impact, &definition("deployments.apps")).is_err(),
        "every object of the kind goes"
    );
    assert!(
        delete(&policy_impact, &definition("clusters.cluster.karmada.io")).is_err(),
        "every Cluster goes"
    );
    assert!(delete(&policy_impact, &definition("works.work.karmada.io")).is_err(), "every Work goes");
}

#[test]
fn a_binding_is_deleted_by_hand_only_within_the_budget() {
    let limit = json!({ "longshore.io/max-deleted": "0" });
    let (policy_impact, cache) = policy_impact(Budget::default(), limit);
    let binding =
        cache.snapshot().bindings.values().next().map(|binding| json!(**binding)).expect("a binding");
    let refusal = delete(&policy_impact, &binding).expect_err("its copies go");
    let expected =
        "it would delete 1 objects of PropagationPolicy default/p, and its longshore.io/max-deleted allows 0";
    assert!(refusal.contains(expected), "{refusal}");
}

#[test]
fn what_templates_are_asked_for_together_is_bounded_together() {
    let limit = json!({ "longshore.io/max-moved": "1" });
    let mut lazy = policy("m1", limit.clone());
    lazy["spec"]["activationPreference"] = "Lazy".into();
    let cache = at_rest(&lazy);
    cache.note_synced();
    let mut edited = policy("m2", limit);
    edited["spec"]["activationPreference"] = "Lazy".into();
    edited["metadata"]["generation"] = 2.into();
    cache.put(edited);
    let policy_impact = PolicyImpact::default();
    policy_impact.see(cache.clone());
    let ask = |name: &str, value: &str| {
        let before =
            cache.snapshot().templates.iter().find(|one| one.key.name == name).expect("it is there").object();
        update(&policy_impact, &before, &annotated(&before, "longshore.io/reconcile", value))
            .map(|(warnings, _)| warnings)
    };
    assert!(ask("a", "1").expect("one may move")[0].contains("1 moved"));
    let refusal = ask("b", "1").expect_err("the same act moves a second one");
    assert!(refusal.contains("it would move 2 templates of PropagationPolicy default/p"), "{refusal}");
    assert!(ask("b", "2").is_ok(), "it is another act");
}

#[test]
fn m2_an_edit_that_leaves_templates_nowhere_needs_an_approval() {
    let (policy_impact, _) = policy_impact(Budget::default(), json!({}));
    let (before, after) = (policy("m1", json!({})), policy("mistyped", json!({})));
    let refusal = update(&policy_impact, &before, &after).expect_err("both lose their last copy");
    assert!(
        refusal.contains("it would delete the last copy of 2 templates, which then run NOWHERE"),
        "{refusal}"
    );
    let approved = annotated(&after, APPROVED, digest(&refusal));
    update(&policy_impact, &before, &approved).expect("it is approved");
}

#[test]
fn clusters_that_do_not_exist_are_refused_where_somebody_says_so() {
    let check = |refusing: bool, annotations: Value, expected: bool| {
        let (policy_impact, _) = policy_impact(Budget::default(), json!({}));
        let policy_impact = policy_impact.refusing_unknown_clusters(refusing);
        let mut edited = policy("m1", annotations);
        edited["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(["m1", "mistyped"]);
        let answer = update(&policy_impact, &policy("m1", json!({})), &edited);
        assert_eq!(answer.is_err(), expected, "{answer:?}");
        answer.err().unwrap_or_default()
    };
    check(false, json!({}), false);
    let refusal = check(true, json!({}), true);
    assert!(refusal.contains("names clusters that do not exist: mistyped. "), "{refusal}");
    check(true, json!({ "longshore.io/unknown-clusters": "warn" }), false);
    check(false, json!({ "longshore.io/unknown-clusters": "refuse" }), true);
}

#[test]
fn what_a_policy_allows_holds_for_whatever_takes_its_templates() {
    let (policy_impact, _) = policy_impact(Budget::default(), json!({ "longshore.io/max-moved": "1" }));
    let mut taker = policy("m2", json!({}));
    taker["metadata"]["name"] = "taker".into();
    taker["metadata"]["uid"] = "taker".into();
    taker["metadata"]["labels"] = json!({ "propagationpolicy.karmada.io/permanent-id": "taker" });
    taker["spec"]["priority"] = 1.into();
    taker["spec"]["preemption"] = "Always".into();
    let refusal = write(&policy_impact, Operation::Create, None, &taker).expect_err("it takes both");
    assert!(
        refusal.contains("of PropagationPolicy default/p, and its longshore.io/max-moved allows 1"),
        "{refusal}"
    );
}
