//! What whoever changes a policy is told, and what a budget refuses.

use std::sync::Arc;

use apiserver::admission::{Admission, Attributes, Operation};
use apiserver::auth::Identity;
use controllers::view::{View, binding_key};
use decide::world::Answers;
use decide::{Gates, TemplateKey};
use plane::outlook::{Budget, Outlook};
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
fn at_rest(policy: &Value) -> View {
    let view = View::new(Gates::default());
    for object in [cluster("m1"), cluster("m2"), template("a"), template("b"), policy.clone()] {
        view.put(object);
    }
    let mut world = view.world().clone();
    world.settle_all(Answers::BRAIN);
    for template in world.templates.iter() {
        view.put(template.object());
    }
    for binding in world.bindings.values() {
        view.put_binding(binding_key(&binding.metadata), (**binding).clone());
    }
    let key = TemplateKey {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
    };
    assert!(view.binding(&key.binding()).is_some(), "it has been propagated");
    view
}

fn rules(outlook: Outlook) -> Admission {
    let moment = "2024-01-02T00:00:00Z".parse().expect("a moment");
    plane::admission::rules(Gates::default(), Arc::new(|| 7), Arc::new(move || moment), outlook)
}

/// What is answered to a change from one state of the policy to another.
fn change(outlook: &Outlook, old: &Value, new: &Value) -> Result<Vec<String>, String> {
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
    rules(outlook.clone())(&attributes, &mut new.clone()).map_err(|error| error.message)
}

/// The digest that a refusal asks for.
fn digest(refusal: &str) -> &str {
    refusal.rsplit_once("longshore.io/approved-plan=").expect("it names the plan").1
}

const MOVES: &str = "Plan: 2 templates, 2 moved, 2 to create, 2 to delete. See `longshore plan`.";

#[test]
fn a_change_is_told_once_everything_is_known() {
    let (before, after) = (policy("m1", json!({})), policy("m2", json!({})));
    let outlook = Outlook::default();
    let view = at_rest(&before);
    outlook.see(view.clone());
    assert_eq!(change(&outlook, &before, &after), Ok(vec![]), "the view is not complete yet");
    view.note_complete();
    assert_eq!(change(&outlook, &before, &after), Ok(vec![MOVES.to_owned()]));
    assert_eq!(change(&outlook, &before, &before), Ok(vec![]), "nothing changes");
}

#[test]
fn a_change_beyond_its_budget_needs_the_plan_that_was_seen() {
    let limit = json!({ "longshore.io/max-moved": "1" });
    let before = policy("m1", limit.clone());
    let view = at_rest(&before);
    view.note_complete();
    let outlook = Outlook::default();
    outlook.see(view);
    let refusal = change(&outlook, &before, &policy("m2", limit)).expect_err("it moves too much");
    assert!(refusal.contains("it would move 2 templates, and longshore.io/max-moved allows 1"), "{refusal}");
    assert!(refusal.contains("2 to delete"), "{refusal}");
    let seen = digest(&refusal);
    let wrong = policy("m2", json!({ "longshore.io/approved-plan": "0123456789abcdef" }));
    assert!(change(&outlook, &before, &wrong).is_err(), "another plan was seen");
    let approved = policy("m2", json!({ "longshore.io/approved-plan": seen }));
    assert_eq!(change(&outlook, &before, &approved), Ok(vec![MOVES.to_owned()]));
}

#[test]
fn a_budget_of_the_control_plane_counts_where_the_policy_has_none() {
    let before = policy("m1", json!({}));
    let view = at_rest(&before);
    view.note_complete();
    let outlook = Outlook::new(Budget { moved: None, deleted: Some(1) });
    outlook.see(view);
    let refusal = change(&outlook, &before, &policy("m2", json!({}))).expect_err("it deletes too much");
    assert!(refusal.contains("it would delete 2 objects"), "{refusal}");
    let generous = json!({ "longshore.io/max-deleted": "2" });
    let (before, after) = (policy("m1", generous.clone()), policy("m2", generous));
    assert!(change(&outlook, &before, &after).is_ok(), "the policy allows it");
}

#[test]
fn a_budget_counts_from_the_first_moment() {
    let limit = json!({ "longshore.io/max-deleted": "1" });
    let (before, after) = (policy("m1", limit.clone()), policy("m2", limit));
    let outlook = Outlook::default();
    outlook.see(at_rest(&before));
    let refusal = change(&outlook, &before, &after).expect_err("nobody knows what it does");
    assert!(refusal.contains("try again in a moment"), "{refusal}");
}

#[test]
fn a_budget_is_a_number() {
    let outlook = Outlook::default();
    let before = policy("m1", json!({}));
    let check = |text: &str, expected: Result<Vec<String>, String>| {
        let limit = json!({ "longshore.io/max-moved": text });
        assert_eq!(change(&outlook, &before, &policy("m1", limit)), expected, "{text}");
    };
    check("10", Ok(vec![]));
    check(
        "ten",
        Err("propagationpolicies.policy.karmada.io \"p\" is forbidden: longshore.io/max-moved is \"ten\"; \
             it has to be a number, such as 10"
            .to_owned()),
    );
    let old = policy("m1", json!({ "longshore.io/max-moved": "ten" }));
    assert_eq!(change(&outlook, &old, &old), Ok(vec![]), "what is there does not keep anybody from work");
}
