//! Members on the network: their client follows from their Cluster and its Secret, and from every change of those.
//! Sockets ignore tokio's paused clock, so these tests wait in real time.

mod far;

use std::sync::atomic::Ordering;
use std::time::Duration;

use controllers::gates::FeatureGates;
use controllers::members::Settings;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::stack::{NGINX, Place, Stack, at, cluster_path, condition, impatient, namespace, nginx, policy};
use far::{Far, proxy};

const SECRET: &str = "/api/v1/namespaces/karmada-cluster/secrets/far";

fn data(far: &Far, token: &str) -> Value {
    let bytes = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
    json!({ "token": bytes(token), "caBundle": bytes(&far.authority) })
}

/// A control plane that knows a member by its Cluster alone.
async fn with_far(more: Value) -> (Stack, Place, Far) {
    let settings = Settings { status_interval: Duration::from_millis(50), ..impatient() };
    let stack = Stack::with(&[], settings, FeatureGates::default()).await;
    let place = stack.place().await;
    let far = Far::serve(&place.server, "one").await;
    stack.create(namespace("karmada-cluster", json!({}))).await;
    stack
        .create(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "namespace": "karmada-cluster", "name": "far" }, "data": data(&far, "one"),
        }))
        .await;
    let mut spec = json!({
        "syncMode": "Push", "apiEndpoint": far.endpoint,
        "secretRef": { "namespace": "karmada-cluster", "name": "far" },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    stack
        .create(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": "far" }, "spec": spec,
        }))
        .await;
    stack.create(policy("pp", ("Deployment", "nginx"), &["far"], json!({}))).await;
    stack.create(nginx()).await;
    (stack, place, far)
}

async fn until_ready(stack: &Stack, status: &str, reason: &str) {
    let is = |cluster: &Value| {
        condition(cluster, "Ready") == status && cluster["status"]["conditions"].to_string().contains(reason)
    };
    stack.control.until(reason, &cluster_path("far"), is).await;
}

#[tokio::test]
async fn a_member_on_the_network_is_served_and_watched() {
    let (mut stack, place, _far) = with_far(json!({})).await;
    let first = place.until("delivered", NGINX, Value::is_object).await;
    stack.until_work("far", "Applied", "True").await;
    place.rest.delete(&at(NGINX), None).await.unwrap();
    let reborn = |object: &Value| object.is_object() && object["metadata"]["uid"] != first["metadata"]["uid"];
    place.until("repaired", NGINX, reborn).await;
    stack.stop().await;
}

#[tokio::test]
async fn a_new_token_is_used_and_a_lost_one_is_reported() {
    let (mut stack, place, far) = with_far(json!({})).await;
    place.until("delivered", NGINX, Value::is_object).await;
    far.believe("two");
    until_ready(&stack, "False", "ClusterNotReady").await;
    stack.merge(SECRET, json!({ "data": data(&far, "two") })).await;
    until_ready(&stack, "True", "ClusterReady").await;
    stack.merge(NGINX, json!({ "spec": { "replicas": 5 } })).await;
    place.until("current", NGINX, |object| object["spec"]["replicas"] == 5).await;
    // Watches go the new way, too.
    place.rest.delete(&at(NGINX), None).await.unwrap();
    place.until("repaired", NGINX, Value::is_object).await;
    stack.delete(SECRET).await;
    until_ready(&stack, "False", "the secret karmada-cluster/far of cluster far is not found").await;
    stack.stop().await;
}

#[tokio::test]
async fn a_member_that_moves_is_followed() {
    let (mut stack, place, _far) = with_far(json!({})).await;
    place.until("delivered", NGINX, Value::is_object).await;
    let elsewhere = stack.place().await;
    let far = Far::serve(&elsewhere.server, "three").await;
    stack.merge(SECRET, json!({ "data": data(&far, "three") })).await;
    stack.merge(&cluster_path("far"), json!({ "spec": { "apiEndpoint": far.endpoint } })).await;
    elsewhere.until("delivered there", NGINX, Value::is_object).await;
    stack.stop().await;
}

#[tokio::test]
async fn a_certificate_is_verified_unless_configured_otherwise_and_a_proxy_is_used() {
    let (mut stack, place, far) = with_far(json!({})).await;
    place.until("delivered", NGINX, Value::is_object).await;
    let stranger = Far::serve(&place.server, "one").await;
    stack.merge(SECRET, json!({ "data": data(&stranger, "one") })).await;
    until_ready(&stack, "False", "ClusterNotReachable").await;
    let (address, used) = proxy().await;
    let spec = json!({ "insecureSkipTLSVerification": true, "proxyURL": address });
    stack.merge(&cluster_path("far"), json!({ "spec": spec })).await;
    until_ready(&stack, "True", "ClusterReady").await;
    assert!(used.load(Ordering::Relaxed) > 0, "{} goes through {address}", far.endpoint);
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_without_a_client_says_so() {
    let mut stack = Stack::new(&[]).await;
    for (name, spec) in [
        ("nowhere", json!({ "syncMode": "Push" })),
        ("nobody", json!({ "syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1" })),
    ] {
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name }, "spec": spec,
        });
        let path = stack.create(cluster).await;
        let told =
            |cluster: &Value| cluster["status"]["conditions"].to_string().contains("StatusCollectionFailed");
        stack.control.until("told", &path, told).await;
    }
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_agent_of_a_pull_member_is_observed() {
    let mut stack = Stack::new(&["member1"]).await;
    let path = stack
        .create(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": "pulls" }, "spec": { "syncMode": "Pull" },
        }))
        .await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(condition(&stack.get(&path).await, "Ready"), "", "it may still come");
    let never = |cluster: &Value| cluster["status"]["conditions"].to_string().contains("NeverUpdated");
    stack.control.until("never heard of", &path, never).await;
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "ClusterReady", "message": "", "lastTransitionTime": "2027-01-01T00:00:00Z" }]);
    stack.merge(&format!("{path}/status"), json!({ "status": { "conditions": ready } })).await;
    stack.create(namespace("karmada-cluster", json!({}))).await;
    let lease = stack
        .create(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "namespace": "karmada-cluster", "name": "pulls" }, "spec": {},
        }))
        .await;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        let now = (stack.clock)().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
        stack.merge(&lease, json!({ "spec": { "renewTime": now } })).await;
        assert_eq!(condition(&stack.get(&path).await, "Ready"), "True");
    }
    let silent =
        |cluster: &Value| cluster["status"]["conditions"].to_string().contains("ClusterStatusUnknown");
    let cluster = stack.control.until("silent", &path, silent).await;
    assert_eq!(condition(&cluster, "Ready"), "Unknown");
    stack.control.until("tainted", &path, |one| one["spec"].to_string().contains("unreachable")).await;
    stack.stop().await;
}
