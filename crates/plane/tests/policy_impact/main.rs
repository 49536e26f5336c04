//! The admission warnings that the author of a policy change gets, and the writes that a budget refuses.

use std::sync::Arc;

use apiserver::admission::{Admission, Attributes, Operation};
use apiserver::authn::Identity;
use controllers::cache::{Cache, binding_key};
use decide::snapshot::Interpreters;
use decide::{Gates, TemplateKey};
use plane::policy_impact::{Budget, PolicyImpact};
use serde_json::{Value, json};

mod acts;
mod sequences;

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": { "name": name },
        "status": { "apiEnablements": [{ "groupVersion": "apps/v1", "resources": [{ "name": "deployments", "kind": "Deployment" }] }] },
    })
}

fn template(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "creationTimestamp": "2024-01-01T00:00:00Z" },
        "spec": { "replicas": 1, "template": { "spec": {} } },
    })
}

fn policy(cluster: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {
            "name": "p", "namespace": "default", "uid": "p", "generation": 1, "annotations": annotations,
            "labels": { "propagationpolicy.karmada.io/permanent-id": "id" },
        },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default" }],
            "placement": { "clusterAffinity": { "clusterNames": [cluster] } },
        },
    })
}

/// A view in which the policy has sent two templates to m1, and has come to rest.
fn at_rest(policy: &Value) -> Cache {
    let cache = Cache::new(Gates::default());
    for object in [cluster("m1"), cluster("m2"), template("a"), template("b"), policy.clone()] {
        cache.put(object);
    }
    let mut snapshot = cache.snapshot().clone();
    snapshot.settle_all(Interpreters::BUILT_IN);
    for template in snapshot.templates.iter() {
        cache.put(template.object());
    }
    for binding in snapshot.bindings.values() {
        cache.put_binding(binding_key(&binding.metadata), (**binding).clone());
    }
    let key = TemplateKey {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
    };
    assert!(cache.binding(&key.binding()).is_some(), "it has been propagated");
    cache
}

fn rules(policy_impact: PolicyImpact) -> Admission {
    let moment = "2024-01-02T00:00:00Z".parse().expect("a moment");
    plane::admission::rules(Gates::default(), Arc::new(|| 7), Arc::new(move || moment), policy_impact)
}

/// What is answered to a change from one state of the policy to another.
fn change(policy_impact: &PolicyImpact, old: &Value, new: &Value) -> Result<Vec<String>, String> {
    let attributes = Attributes {
        operation: Operation::Update,
        group: "policy.karmada.io",
        version: "v1alpha1",
        resource: "propagationpolicies",
        kind: "PropagationPolicy",
        subresource: "",
        old: Some(old),
        dry_run: false,
        identity: &Identity::internal("admin"),
    };
    rules(policy_impact.clone())(&attributes, &mut new.clone()).map_err(|error| error.message)
}

/// The digest that a refusal asks for.
fn digest(refusal: &str) -> &str {
    refusal.rsplit_once("longshore.io/approved-plan=").expect("it names the plan").1
}

const MOVES: &str = "Plan: 2 templates, 2 moved, 2 to create, 2 to delete. See `longshore plan`.";

#[test]
fn a_change_is_told_once_everything_is_known() {
    let (before, after) = (policy("m1", json!({})), policy("m2", json!({})));
    let policy_impact = PolicyImpact::default();
    let cache = at_rest(&before);
    policy_impact.see(cache.clone());
    assert_eq!(change(&policy_impact, &before, &after), Ok(vec![]), "the view is not complete yet");
    cache.note_synced();
    assert_eq!(change(&policy_impact, &before, &after), Ok(vec![MOVES.to_owned()]));
    assert_eq!(change(&policy_impact, &before, &before), Ok(vec![]), "nothing changes");
}

#[test]
fn a_change_beyond_its_budget_needs_the_plan_that_was_seen() {
    let limit = json!({ "longshore.io/max-moved": "1" });
    let before = policy("m1", limit.clone());
    let cache = at_rest(&before);
    cache.note_synced();
    let policy_impact = PolicyImpact::default();
    policy_impact.see(cache);
    let refusal = change(&policy_impact, &before, &policy("m2", limit)).expect_err("it moves too much");
    assert!(refusal.contains("it would move 2 templates, and longshore.io/max-moved allows 1"), "{refusal}");
    assert!(refusal.contains("2 to delete"), "{refusal}");
    let seen = digest(&refusal);
    let wrong = policy("m2", json!({ "longshore.io/approved-plan": "0123456789abcdef" }));
    assert!(change(&policy_impact, &before, &wrong).is_err(), "another plan was seen");
    let approved = policy("m2", json!({ "longshore.io/approved-plan": seen }));
    assert_eq!(change(&policy_impact, &before, &approved), Ok(vec![MOVES.to_owned()]));
}

#[test]
fn a_budget_of_the_control_plane_counts_where_the_policy_has_none() {
    let before = policy("m1", json!({}));
    let cache = at_rest(&before);
    cache.note_synced();
    let policy_impact = PolicyImpact::new(Budget { moved: None, deleted: Some(1) });
    policy_impact.see(cache);
    let refusal = change(&policy_impact, &before, &policy("m2", json!({}))).expect_err("it deletes too much");
    assert!(refusal.contains("it would delete 2 objects"), "{refusal}");
    let generous = json!({ "longshore.io/max-deleted": "2" });
    let (before, after) = (policy("m1", generous.clone()), policy("m2", generous));
    assert!(change(&policy_impact, &before, &after).is_ok(), "the policy allows it");
}

#[test]
fn a_budget_counts_from_the_first_moment() {
    let limit = json!({ "longshore.io/max-deleted": "1" });
    let (before, after) = (policy("m1", limit.clone()), policy("m2", limit));
    let policy_impact = PolicyImpact::default();
    policy_impact.see(at_rest(&before));
    let refusal = change(&policy_impact, &before, &after).expect_err("nobody knows what it does");
    assert!(refusal.contains("try again in a moment"), "{refusal}");
}

#[test]
fn a_budget_is_a_number() {
    let policy_impact = PolicyImpact::default();
    let before = policy("m1", json!({}));
    let check = |text: &str, expected: Result<Vec<String>, String>| {
        let limit = json!({ "longshore.io/max-moved": text });
        assert_eq!(change(&policy_impact, &before, &policy("m1", limit)), expected, "{text}");
    };
    check("10", Ok(vec![]));
    check(
        "ten",
        Err("propagationpolicies.policy.karmada.io \"p\" is forbidden: longshore.io/max-moved is \"ten\"; \
             it has to be a number, such as 10"
            .to_owned()),
    );
    let old = policy("m1", json!({ "longshore.io/max-moved": "ten" }));
    assert_eq!(
        change(&policy_impact, &old, &old),
        Ok(vec![]),
        "what is there does not keep anybody from work"
    );
}
