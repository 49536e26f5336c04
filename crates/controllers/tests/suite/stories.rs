//! One end-to-end test per proposal: the rules are proven in `decide`, here only that they are written.

use controllers::gates;
use controllers::members::Settings;
use serde_json::{Value, json};

use crate::stack::{CONFIG, Stack, at, config_map, namespace, policy};

async fn claimed_by(stack: &Stack, path: &str) -> String {
    let annotations = stack.get(path).await["metadata"]["annotations"].clone();
    let name = |key: &str| annotations[key].as_str().map(str::to_owned);
    name("propagationpolicy.karmada.io/name")
        .or_else(|| name("clusterpropagationpolicy.karmada.io/name"))
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn lazy_a_policy_after_the_template_waits_for_its_user() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(config_map("default", "conf")).await;
    stack.settle().await;
    let lazy = json!({ "activationPreference": "Lazy" });
    stack.create(policy("pp", ("ConfigMap", "conf"), &["member1"], lazy)).await;
    stack.until("claimed", async |stack| claimed_by(stack, CONFIG).await == "pp").await;
    stack.restart().await;
    stack.settle().await;
    assert!(stack.binding("conf-configmap").await.is_null(), "neither the policy nor a restart is a trigger");
    stack.merge(CONFIG, json!({ "data": { "key": "two" } })).await;
    stack.until_in(CONFIG, &["member1"]).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn static_an_edit_of_a_policy_waits_for_the_templates_user() {
    let feature_gates = gates::parse("StaticPolicy=true").unwrap();
    let mut stack = Stack::with(&["member1", "member2"], Settings::default(), feature_gates).await;
    let path = stack.create(policy("pp", ("ConfigMap", "conf"), &["member1"], json!({}))).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &["member1"]).await;
    let moved = json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } } });
    stack.merge(&path, moved).await;
    stack.restart().await;
    stack.settle().await;
    assert_eq!(stack.members_with(CONFIG).await, ["member1"]);
    stack.merge(CONFIG, json!({ "data": { "key": "two" } })).await;
    stack.until_in(CONFIG, &["member2"]).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn preemption_a_higher_priority_takes_and_says_so() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(policy("low", ("ConfigMap", "conf"), &["member1"], json!({ "priority": 1 }))).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &["member1"]).await;
    let always = json!({ "priority": 2, "preemption": "Always" });
    stack.create(policy("high", ("ConfigMap", "conf"), &["member2"], always)).await;
    stack.until_in(CONFIG, &["member2"]).await;
    assert_eq!(claimed_by(&stack, CONFIG).await, "high");
    stack.settle().await;
    let told = stack.told("conf", "PreemptPolicySucceed").await;
    let message = "Propagation policy(default/high) preempted propagation policy(default/low) successfully";
    assert_eq!(told, [(message.to_owned(), 1)]);
    let metrics = controllers::scrape::render(&stack.ctx);
    assert!(metrics.contains("policy_preemption_total{result=\"success\"} 1\n"), "{metrics}");
    let counts = async |name: &str| {
        let path = format!("/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/{name}");
        stack.get(&path).await["status"]["templates"].clone()
    };
    let (low, high) = (counts("low").await, counts("high").await);
    assert_eq!((&low["claimed"], &low["preemptedBy"]), (&json!(0), &json!(1)), "{low}");
    assert_eq!(
        (&high["claimed"], &high["upToDate"], &high["preemptedFrom"]),
        (&json!(1), &json!(1), &json!(1))
    );
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn batch_a_pattern_of_namespaces_matches_the_old_and_the_new() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    for name in ["team-a", "other"] {
        stack.create(namespace(name, json!({}))).await;
        stack.create(config_map(name, "conf")).await;
    }
    stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
            "metadata": { "name": "teams" },
            "spec": {
                "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "team-*" }],
                "placement": { "clusterAffinity": { "clusterNames": ["member1"] } },
            },
        }))
        .await;
    let path = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps/conf");
    stack.until("team-a", async |stack| claimed_by(stack, &path("team-a")).await == "teams").await;
    stack.create(namespace("team-b", json!({}))).await;
    stack.create(config_map("team-b", "conf")).await;
    stack.until("team-b", async |stack| claimed_by(stack, &path("team-b")).await == "teams").await;
    stack.settle().await;
    assert_eq!(claimed_by(&stack, &path("other")).await, "");
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn u7_a_rollout_policy_holds_and_releases() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(policy("pp", ("ConfigMap", "conf"), &["member1", "member2"], json!({}))).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &["member1", "member2"]).await;
    let rollout = stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "RolloutPolicy",
            "metadata": { "namespace": "default", "name": "slow" },
            "spec": {
                "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "name": "conf" }],
                "suspension": { "dispatchingOnClusters": { "clusterNames": ["member2"] } },
            },
        }))
        .await;
    stack
        .until("held", async |stack| {
            let spec = stack.binding("conf-configmap").await["spec"].clone();
            spec["suspension"]["dispatchingOnClusters"]["clusterNames"] == json!(["member2"])
        })
        .await;
    stack.settle().await;
    stack.merge(CONFIG, json!({ "data": { "key": "two" } })).await;
    stack.settle().await;
    let data = async |stack: &Stack| {
        let mut found = Vec::new();
        for name in ["member1", "member2"] {
            let object: Value = stack.ctx.members.get(name).unwrap().fetch(&at(CONFIG)).await.unwrap();
            found.push(object["data"]["key"].as_str().unwrap_or_default().to_owned());
        }
        found
    };
    assert_eq!(data(&stack).await, ["two", "one"]);
    stack.delete(&rollout).await;
    stack.until("released", async |stack| data(stack).await == ["two", "two"]).await;
    stack.stop().await;
}
