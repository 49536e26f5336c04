//! Pods and the nodes they run on.

use http::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, DEPLOYMENTS, PODS, condition, deployment, names, node};

fn pod(name: &str, cpu: &str) -> Value {
    let requests = json!({ "cpu": cpu });
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "nginx", "resources": { "requests": requests } }] },
    })
}

fn sized(name: &str, cpu: &str, replicas: u32) -> Value {
    let mut object = deployment(name, "nginx", replicas);
    object["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": cpu } });
    object
}

#[tokio::test(start_paused = true)]
async fn a_bare_pod_gets_a_node_and_runs() {
    let cluster = Cluster::start().await;
    cluster.create(PODS, pod("a", "1")).await;
    cluster.settle().await;
    let pods = cluster.pods().await;
    assert_eq!(pods[0]["spec"]["nodeName"], "n1");
    assert_eq!(pods[0]["status"]["phase"], "Running");
    assert_eq!(pods[0]["status"]["qosClass"], "Burstable");
    assert!(pods[0]["status"]["podIP"].as_str().unwrap().starts_with("10.244."));
    cluster.delete(&format!("{PODS}/a")).await;
    cluster.settle().await;
    assert!(cluster.pods().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_replaced() {
    let cluster = Cluster::start().await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx", 2)).await;
    cluster.settle().await;
    let before = cluster.pods().await;
    cluster.delete(&format!("{PODS}/{}", names(&before)[0])).await;
    cluster.settle().await;
    let after = cluster.pods().await;
    assert_eq!(after.len(), 2);
    assert!(names(&after).contains(&names(&before)[1]));
    assert!(!names(&after).contains(&names(&before)[0]));
}

#[tokio::test(start_paused = true)]
async fn pods_that_fit_nowhere_wait_until_there_is_room() {
    let cluster = Cluster::with_nodes(vec![node("n1", "2", 110), node("n2", "2", 110)]).await;
    cluster.create(DEPLOYMENTS, sized("big", "1500m", 3)).await;
    cluster.settle().await;
    let pods = cluster.pods().await;
    let waiting: Vec<&Value> = pods.iter().filter(|pod| pod["status"]["phase"] == "Pending").collect();
    let [pending] = waiting.as_slice() else { panic!("{pods:?}") };
    assert_eq!(condition(pending, "PodScheduled")["reason"], "Unschedulable");
    assert_eq!(condition(pending, "PodScheduled")["message"], "0/2 nodes are available: 2 Insufficient cpu.");
    let big = cluster.get(&format!("{DEPLOYMENTS}/big")).await;
    assert_eq!(big["status"]["readyReplicas"], 2);
    assert_eq!(cluster.writes(async {}).await, 0);

    let amounts = json!({ "cpu": "4", "memory": "8Gi", "pods": "10" });
    let third = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n3" },
        "status": { "capacity": amounts, "allocatable": amounts },
    });
    cluster.create("/api/v1/nodes", third).await;
    cluster.settle().await;
    let big = cluster.get(&format!("{DEPLOYMENTS}/big")).await;
    assert_eq!(big["status"]["readyReplicas"], 3);
    assert!(cluster.pods().await.iter().any(|pod| pod["spec"]["nodeName"] == "n3"));
}

#[tokio::test(start_paused = true)]
async fn room_that_becomes_free_is_used() {
    let cluster = Cluster::with_nodes(vec![node("n1", "1", 2)]).await;
    cluster.create(DEPLOYMENTS, sized("first", "1", 1)).await;
    cluster.settle().await;
    cluster.create(DEPLOYMENTS, sized("second", "1", 1)).await;
    cluster.settle().await;
    let second = format!("{DEPLOYMENTS}/second");
    assert_eq!(cluster.get(&second).await["status"]["readyReplicas"], Value::Null);
    cluster.delete(&format!("{DEPLOYMENTS}/first")).await;
    cluster.settle().await;
    assert_eq!(cluster.get(&second).await["status"]["readyReplicas"], 1);
}

#[tokio::test(start_paused = true)]
async fn closed_and_lost_nodes_are_left() {
    let cluster = Cluster::start().await;
    cluster.patch("/api/v1/nodes/n1", json!({ "spec": { "unschedulable": true } })).await;
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx", 4)).await;
    cluster.settle().await;
    let on = |pods: &[Value], node: &str| pods.iter().filter(|pod| pod["spec"]["nodeName"] == node).count();
    assert_eq!(on(&cluster.pods().await, "n2"), 4);
    cluster.patch("/api/v1/nodes/n1", json!({ "spec": { "unschedulable": null } })).await;
    cluster.delete("/api/v1/nodes/n2").await;
    cluster.settle().await;
    let pods = cluster.pods().await;
    assert_eq!((pods.len(), on(&pods, "n1")), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn nodes_are_ready_and_report_their_capacity() {
    let cluster = Cluster::start().await;
    let node = cluster.get("/api/v1/nodes/n1").await;
    assert_eq!(condition(&node, "Ready")["status"], "True");
    assert_eq!(node["status"]["allocatable"]["pods"], "110");
    assert_eq!(node["metadata"]["labels"]["topology.kubernetes.io/zone"], "n1");
    cluster
        .create("/api/v1/nodes", json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "own" } }))
        .await;
    cluster.settle().await;
    let own = cluster.get("/api/v1/nodes/own").await;
    assert_eq!(own["status"]["allocatable"]["cpu"], "8");
    assert_eq!(condition(&own, "Ready")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_pods_along() {
    let cluster = Cluster::start().await;
    cluster.create("/api/v1/namespaces", json!({ "metadata": { "name": "shop" } })).await;
    cluster.create("/apis/apps/v1/namespaces/shop/deployments", deployment("nginx", "nginx", 3)).await;
    cluster.settle().await;
    cluster.delete("/api/v1/namespaces/shop").await;
    cluster.settle().await;
    let (code, _) = cluster.ask(Method::GET, "/api/v1/namespaces/shop", "", Value::Null).await;
    assert_eq!(code, 404);
    assert!(cluster.list("/api/v1/pods").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_finalizer_waits_for_it() {
    let cluster = Cluster::start().await;
    let mut object = pod("a", "1");
    object["metadata"]["finalizers"] = json!(["example.io/hold"]);
    cluster.create(PODS, object).await;
    cluster.settle().await;
    cluster.delete(&format!("{PODS}/a")).await;
    cluster.settle().await;
    assert_eq!(cluster.pods().await.len(), 1);
    cluster.patch(&format!("{PODS}/a"), json!({ "metadata": { "finalizers": null } })).await;
    cluster.settle().await;
    assert!(cluster.pods().await.is_empty());
}
