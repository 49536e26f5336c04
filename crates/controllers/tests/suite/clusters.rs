//! Clusters are added and deleted while they are in use.

use http::StatusCode;
use serde_json::{Value, json};

use crate::stack::{BINDING, NGINX, Stack, at, cluster_path, condition, impatient, namespace, work_path};

#[tokio::test(start_paused = true)]
async fn a_cluster_that_leaves_takes_its_works_and_its_objects_along() {
    let mut stack = Stack::with_nginx(&["member1", "member2"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.until_work("member2", "Applied", "True").await;
    stack.control.rest.delete(&at(&cluster_path("member1")), None).await.unwrap();
    stack.control.until_gone(&cluster_path("member1")).await;
    assert_eq!(stack.control.get(&work_path("member1")).await, None);
    assert_eq!(stack.control.get("/api/v1/namespaces/karmada-es-member1").await, None);
    assert_eq!(stack.member("member1").get(NGINX).await, None);
    let moved = |binding: &Value| {
        let clusters = &binding["spec"]["clusters"];
        *clusters == json!([{ "name": "member2", "replicas": 2 }])
            && condition(binding, "FullyApplied") == "True"
    };
    stack.control.until("moved", BINDING, moved).await;
    assert!(stack.member("member2").get(NGINX).await.is_some());
    // No component counts or probes it any more.
    stack.until("forgotten", async |stack| stack.ctx.cache.cluster("member1").is_none()).await;
    let metrics = controllers::scrape::render(&stack.ctx);
    assert!(!metrics.contains("cluster_ready_state{member_cluster=\"member1\"}"), "{metrics}");
    stack.stop().await;
}

/// Kubernetes takes its time to empty a namespace.
#[tokio::test(start_paused = true)]
async fn what_a_leaving_cluster_has_does_not_wait_for_the_end_of_its_namespace() {
    let mut stack = Stack::with_nginx(&["member1", "member2"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.create(namespace("team", json!({}))).await;
    stack.until_in("/api/v1/namespaces/team", &["member1", "member2"]).await;
    let emptying = "DELETE /api/v1/namespaces/karmada-es-member1";
    stack.control.gate.refuse(emptying, StatusCode::INTERNAL_SERVER_ERROR);
    stack.control.rest.delete(&at(&cluster_path("member1")), None).await.unwrap();
    stack.until_in(NGINX, &["member2"]).await;
    stack.until_in("/api/v1/namespaces/team", &["member2"]).await;
    assert!(stack.control.get(&cluster_path("member1")).await.is_some(), "its namespace is still there");
    stack.control.gate.open();
    stack.control.until_gone(&cluster_path("member1")).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_cluster_can_leave_and_keeps_what_it_has() {
    let mut stack = Stack::nginx_with(impatient(), &["member1", "member2"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.member("member1").gate.shut();
    let dead = |cluster: &Value| condition(cluster, "Ready") == "False";
    stack.control.until("not ready", &cluster_path("member1"), dead).await;
    stack.control.rest.delete(&at(&cluster_path("member1")), None).await.unwrap();
    stack.control.until_gone(&cluster_path("member1")).await;
    assert!(stack.member("member1").get(NGINX).await.is_some());
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_joins_later_is_served() {
    let mut stack = Stack::with_nginx(&["member1"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.join("member2").await;
    stack.edit_policy(json!({ "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } })).await;
    stack.member("member2").until("served", NGINX, Value::is_object).await;
    stack.member("member1").until_gone(NGINX).await;
    let cluster = stack.control.get(&cluster_path("member2")).await.unwrap();
    assert!(cluster["status"]["kubernetesVersion"].is_string() && condition(&cluster, "Ready") == "True");
    assert_eq!(stack.told("member2", "CreateExecutionSpaceSucceed").await.len(), 1);
    stack.stop().await;
}
