//! Failover: a taint evicts, an eviction task ends, nothing suspended moves, and a taint policy taints.

use serde_json::json;

use crate::stack::{CONFIG, Stack, config_map, policy};

const MEMBER1: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/member1";

fn tainted() -> serde_json::Value {
    json!({ "spec": { "taints": [{ "key": "gone", "effect": "NoExecute" }] } })
}

#[tokio::test(start_paused = true)]
async fn a_taint_evicts_and_the_old_copy_goes_when_the_new_one_is_healthy() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(policy("pp", ("ConfigMap", "conf"), &["member1", "member2"], json!({}))).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &["member1", "member2"]).await;
    stack.merge(MEMBER1, tainted()).await;
    stack.until_in(CONFIG, &["member2"]).await;
    stack
        .until("the task ended", async |stack| {
            let spec = &stack.binding("conf-configmap").await["spec"];
            spec["gracefulEvictionTasks"].is_null() && spec["clusters"] == json!([{ "name": "member2" }])
        })
        .await;
    stack.settle().await;
    let told = stack.told("conf-configmap", "EvictWorkloadFromClusterSucceed").await;
    assert_eq!(
        told.iter().map(|(message, _)| message.as_str()).collect::<Vec<_>>(),
        ["Evict from cluster member1 succeed."]
    );
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn u5_nothing_suspended_is_evicted_until_it_resumes() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    let path = stack.create(policy("pp", ("ConfigMap", "conf"), &["member1", "member2"], json!({}))).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &["member1", "member2"]).await;
    stack.merge(&path, json!({ "spec": { "suspension": { "dispatching": true } } })).await;
    stack.settle().await;
    stack.merge(MEMBER1, tainted()).await;
    stack.settle().await;
    let clusters = stack.binding("conf-configmap").await["spec"]["clusters"].clone();
    assert_eq!(clusters, json!([{ "name": "member1" }, { "name": "member2" }]));
    stack.merge(&path, json!({ "spec": { "suspension": null } })).await;
    stack.until_in(CONFIG, &["member2"]).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_taint_policy_taints_by_condition() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    let ready = json!([{ "conditionType": "Ready", "operator": "In", "statusValues": ["True"] }]);
    stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": { "name": "always" },
            "spec": {
                "targetClusters": { "clusterNames": ["member1"] },
                "addOnConditions": ready,
                "taints": [{ "key": "test", "effect": "NoExecute" }],
            },
        }))
        .await;
    stack
        .until("member1 is tainted", async |stack| {
            let taints = stack.get(MEMBER1).await["spec"]["taints"].clone();
            let mut taints = taints.as_array().into_iter().flatten();
            taints.any(|taint| taint["key"] == "test" && taint["timeAdded"].is_string())
        })
        .await;
    // The cluster controller records events about its own taints under the same reason.
    let wanted = "Update Cluster(member1) with taints({Key:test,Effect:NoExecute}) succeed";
    stack
        .until("the taint is told", async |stack| {
            let told = stack.told("member1", "TaintClusterSucceed").await;
            told.iter().any(|(message, _)| message == wanted)
        })
        .await;
    stack.stop().await;
}
