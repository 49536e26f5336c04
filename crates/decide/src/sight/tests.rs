//! Two tenants: a tenant's answer is the same as with the whole snapshot, and contains nothing of the other tenant.

use serde_json::{Value, json};

use super::*;
use crate::plan::plan;
use crate::snapshot::{Change, Interpreters};
use crate::why::{steps, why};

/// A part of every name of the other tenant.
const OTHERS: &str = "stranger";

fn put(object: Value) -> Change {
    Change::Put(Arc::new(object))
}

fn policy(namespace: &str, name: &str, selects: Value, clusters: &[&str]) -> Value {
    let kind = if namespace.is_empty() { "ClusterPropagationPolicy" } else { "PropagationPolicy" };
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind,
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "generation": 1 },
        "spec": { "resourceSelectors": [selects], "placement": { "clusterAffinity": { "clusterNames": clusters } } },
    })
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "resourceVersion": "1" },
        "spec": { "replicas": 1 },
    })
}

fn selects(namespace: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": namespace })
}

fn key(namespace: &str, name: &str) -> TemplateKey {
    let text = |text: &str| text.to_owned();
    TemplateKey {
        api_version: text("apps/v1"),
        kind: text("Deployment"),
        namespace: text(namespace),
        name: text(name),
    }
}

fn whole() -> Snapshot {
    let enabled = json!([{ "groupVersion": "apps/v1", "resources": [{ "name": "deployments", "kind": "Deployment" }] }]);
    let cluster = |name: &str| {
        put(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": { "name": name },
            "status": { "apiEnablements": enabled },
        }))
    };
    let mut snapshot = Snapshot::default();
    let objects = [
        cluster("m1"),
        cluster("m2"),
        put(policy("", "shared", selects("a*"), &["m1"])),
        put(policy("", &format!("{OTHERS}-cluster"), selects("b"), &["m2"])),
        put(policy("b", &format!("{OTHERS}-own"), selects("b"), &["m2"])),
        put(policy(
            "a",
            "own",
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }),
            &["m1"],
        )),
        put(deployment("a", "web")),
        put(deployment("a", "plain")),
        put(deployment("b", &format!("{OTHERS}-web"))),
    ];
    for object in objects {
        snapshot.apply(&object).expect("readable");
    }
    snapshot.settle_all(Interpreters::BUILT_IN);
    snapshot
}

/// Asks with the sight of a tenant of namespace `a`.
fn as_tenant<Answer>(ask: impl FnOnce(&Sight<'_>) -> Answer) -> Answer {
    let template = |key: &TemplateKey| key.namespace == "a";
    let policy = |key: &PolicyKey| key.namespace == "a";
    let namespace = |namespace: &str| namespace == "a";
    ask(&Sight { template: &template, policy: &policy, namespace: &namespace })
}

#[test]
fn what_a_tenant_sees_is_decided_as_in_the_whole_world() {
    let whole = whole();
    let seen = as_tenant(|sight| sight.snapshot(&whole));
    assert_eq!((whole.templates.len(), seen.templates.len()), (3, 2));
    for name in ["web", "plain"] {
        let key = key("a", name);
        let of_whole = why(&whole, &key, Interpreters::BUILT_IN).expect("it is there");
        let of_seen = why(&seen, &key, Interpreters::BUILT_IN).expect("it is there");
        let [of_whole, of_seen] = [of_whole, of_seen].map(|why| as_tenant(|sight| sight.why(why)));
        assert_eq!(of_whole, of_seen, "{name}");
        assert!(
            json!(of_seen).to_string().contains("shared"),
            "a policy of the cluster that matches is named"
        );
    }
}

#[test]
fn nothing_of_the_other_tenant_is_seen() {
    let whole = whole();
    assert!(format!("{whole:?}").contains(OTHERS), "there is something to hide");
    let seen = as_tenant(|sight| sight.snapshot(&whole));
    assert!(!format!("{seen:?}").contains(OTHERS), "{seen:?}");
    for name in ["web", "plain"] {
        let steps = steps(&seen, &key("a", name), "m2", Interpreters::BUILT_IN);
        assert!(!json!(steps).to_string().contains(OTHERS), "{steps:?}");
    }
    // A policy of the cluster that moves both: one template is shown, the other counted.
    let moved = put(policy("", "shared", selects("a*,b*"), &["m2"]));
    let released = Change::Delete {
        api_version: "policy.karmada.io/v1alpha1".to_owned(),
        kind: "PropagationPolicy".to_owned(),
        namespace: "b".to_owned(),
        name: format!("{OTHERS}-own"),
    };
    let whole_plan = plan(&whole, &[moved, released], Interpreters::BUILT_IN).expect("readable");
    assert!(json!(whole_plan).to_string().contains(OTHERS));
    let all = whole_plan.templates.len();
    let (plan, hidden) = as_tenant(|sight| sight.plan(whole_plan));
    assert!(hidden > 0 && plan.templates.len() + hidden == all);
    assert_eq!((plan.totals.templates, plan.totals.moved), (1, 1));
    assert!(!json!(plan).to_string().contains(OTHERS), "{plan}");
}
