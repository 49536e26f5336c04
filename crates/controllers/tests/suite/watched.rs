//! Rebalancers, policy status and events.

use serde_json::json;

use crate::stack::{CONFIG, POLICY, Stack, config_map, deployment, policy};

#[tokio::test(start_paused = true)]
async fn a_rebalancer_asks_once_and_goes() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(policy("pp", ("ConfigMap", "conf"), &["member1"], json!({}))).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &["member1"]).await;
    stack.settle().await;
    let workload =
        |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": name });
    let path = stack
        .create(json!({
            "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": { "name": "again" },
            "spec": { "workloads": [workload("conf"), workload("absent")], "ttlSecondsAfterFinished": 1 },
        }))
        .await;
    let mut results = json!(null);
    stack
        .until("it finished", async |stack| {
            let status = stack.get(&path).await["status"].clone();
            results = status["observedWorkloads"].clone();
            status["finishTime"].is_string()
        })
        .await;
    assert_eq!(results[0]["reason"], "ReferencedBindingNotFound");
    assert_eq!(
        (&results[1]["workload"]["name"], &results[1]["result"]),
        (&json!("conf"), &json!("Successful"))
    );
    let binding = stack.binding("conf-configmap").await;
    assert!(binding["spec"]["rescheduleTriggeredAt"].is_string());
    stack.until("it is gone", async |stack| stack.get(&path).await.is_null()).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_policys_status_counts_and_says_nothing_twice() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    let all = json!({
        "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": { "matchLabels": { "on": "yes" } } }],
    });
    stack.create(policy("pp", ("ConfigMap", ""), &["member1"], all)).await;
    for number in 0..5 {
        let mut object = config_map("default", &format!("conf{number}"));
        object["metadata"]["labels"] = json!({ "on": "yes" });
        stack.create(object).await;
    }
    let counts = |claimed: i32, suspended: i32| {
        json!({
            "claimed": claimed, "upToDate": claimed, "pendingActivation": 0, "suspended": suspended,
            "preemptedFrom": 0, "preemptedBy": 0,
        })
    };
    let status = async |stack: &Stack| stack.get(POLICY).await["status"]["templates"].clone();
    stack.until("five", async |stack| status(stack).await == counts(5, 0)).await;
    stack.delete("/api/v1/namespaces/default/configmaps/conf0").await;
    stack.merge(POLICY, json!({ "spec": { "suspension": { "dispatching": true } } })).await;
    stack.until("four, all held", async |stack| status(stack).await == counts(4, 4)).await;
    stack.settle().await;
    let revision = stack.control.revision().await;
    stack.restart().await;
    stack.settle().await;
    assert_eq!(stack.control.revision().await, revision, "a restart writes nothing");
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_event_is_written_once() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(policy("pp", ("Deployment", "web"), &["member1"], json!({}))).await;
    let web = stack.create(deployment("web", "conf")).await;
    stack.settle().await;
    let applied = "Apply policy(default/pp) succeed";
    let scheduled = "Binding has been scheduled successfully. Result: {member1:2}";
    let synced = "Sync work of ResourceBinding(default/web-deployment) successful.";
    assert_eq!(stack.told("web", "ApplyPolicySucceed").await, [(applied.to_owned(), 1)]);
    assert_eq!(stack.told("web", "GetReplicasSucceed").await.len(), 1);
    for object in ["web", "web-deployment"] {
        assert_eq!(stack.told(object, "ScheduleBindingSucceed").await, [(scheduled.to_owned(), 1)]);
        assert_eq!(stack.told(object, "SyncWorkSucceed").await, [(synced.to_owned(), 1)]);
    }
    stack.restart().await;
    stack.settle().await;
    assert_eq!(
        stack.told("web", "ApplyPolicySucceed").await,
        [(applied.to_owned(), 1)],
        "a restart is no news"
    );
    stack.merge(&web, json!({ "metadata": { "labels": { "new": "yes" } } })).await;
    stack.settle().await;
    assert_eq!(stack.told("web", "ApplyPolicySucceed").await, [(applied.to_owned(), 2)]);
    let metrics = controllers::scrape::render(&stack.ctx);
    for line in
        ["workqueue_depth{name=\"detector\"} 0\n", "cluster_ready_state{member_cluster=\"member1\"} 1\n"]
    {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_another_kind_took_over_is_left_alone() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(policy("pp", ("ConfigMap", "conf"), &["member1"], json!({}))).await;
    let mut object = config_map("default", "conf");
    object["metadata"]["labels"] = json!({ "resourcetemplate.karmada.io/claimed-by": "MultiClusterService" });
    stack.create(object).await;
    stack.settle().await;
    assert!(stack.binding("conf-configmap").await.is_null());
    stack
        .merge(
            CONFIG,
            json!({ "metadata": { "labels": { "resourcetemplate.karmada.io/claimed-by": null } } }),
        )
        .await;
    stack.until_in(CONFIG, &["member1"]).await;
    stack.stop().await;
}
