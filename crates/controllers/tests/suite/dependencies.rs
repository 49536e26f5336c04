//! PropagateDeps: dependencies follow their template, stay as lazy as it is, and are removed again.

use serde_json::{Value, json};

use crate::stack::{CONFIG, Stack, config_map, deployment, policy};

const OTHER: &str = "/api/v1/namespaces/default/configmaps/other";

fn finalizers(binding: &Value) -> usize {
    binding["metadata"]["finalizers"].as_array().map_or(0, Vec::len)
}

#[tokio::test(start_paused = true)]
async fn dependencies_follow_and_detach() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(config_map("default", "conf")).await;
    stack.create(policy("pp", ("Deployment", "web"), &["member1"], json!({ "propagateDeps": true }))).await;
    let web = stack.create(deployment("web", "conf")).await;
    stack.until_in(CONFIG, &["member1"]).await;
    let list = stack.binding("web-deployment").await;
    let list = list["metadata"]["annotations"]["resourcebinding.karmada.io/dependencies"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(list).unwrap(),
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "conf" }])
    );
    // A dependency that appears later, and one that is needed no more.
    let volumes = json!([{ "name": "config", "configMap": { "name": "other" } }]);
    stack.merge(&web, json!({ "spec": { "template": { "spec": { "volumes": volumes } } } })).await;
    stack.until_in(CONFIG, &[]).await;
    stack.create(config_map("default", "other")).await;
    stack.until_in(OTHER, &["member1"]).await;
    // A change of the dependency goes out as it is.
    stack.merge(OTHER, json!({ "data": { "key": "two" } })).await;
    stack.restart().await;
    stack.settle().await;
    let revision = stack.control.revision().await;
    stack.restart().await;
    stack.settle().await;
    assert_eq!(stack.control.revision().await, revision, "a restart writes nothing");
    // The binding goes, and leaves nothing behind.
    stack.delete(&web).await;
    stack.until_in(OTHER, &[]).await;
    stack.until("the binding is gone", async |stack| stack.binding("web-deployment").await.is_null()).await;
    let attached = stack.binding("other-configmap").await;
    assert!(attached["spec"]["requiredBy"].is_null() && finalizers(&attached) == 1, "{attached:#}");
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn u6_a_dependency_is_held_where_everybody_who_needs_it_is_held() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(config_map("default", "conf")).await;
    let more = json!({ "propagateDeps": true, "suspension": { "dispatching": true } });
    let path = stack.create(policy("pp", ("Deployment", "web"), &["member1"], more)).await;
    stack.create(deployment("web", "conf")).await;
    stack
        .until("the dependency is held", async |stack| {
            let held = stack.binding("conf-configmap").await;
            held["spec"]["suspension"]["dispatchingOnClusters"]["clusterNames"] == json!(["member1"])
        })
        .await;
    stack.settle().await;
    assert!(stack.members_with(CONFIG).await.is_empty());
    stack.merge(&path, json!({ "spec": { "suspension": null } })).await;
    stack.until_in(CONFIG, &["member1"]).await;
    stack.stop().await;
}
