//! The objects written to the control plane: ConfigMaps by group, a policy for each group, and requests for them, which
//! are retried until the API server accepts them.

use std::time::{Duration, Instant};

use checks::client::ApiClient;
use http::Method;
use serde_json::{Value, json};

/// How long anything may take.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(180);
/// The retry interval.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Where ConfigMaps are.
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Where policies are.
pub const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";

/// A ConfigMap of a group that a policy selects.
pub fn config_map(name: &str, group: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "group": group } },
        "data": { "key": "0" },
    })
}

/// A policy for a group.
pub fn policy(group: &str, clusters: &[&str], more: Value) -> Value {
    let mut policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": group, "namespace": "default" },
        "spec": {
            "resourceSelectors": [
                { "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": { "matchLabels": { "group": group } } },
            ],
            "placement": { "clusterAffinity": { "clusterNames": clusters } },
        },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        policy["spec"][key] = value.clone();
    }
    policy
}

/// Writes until it is taken. An answer that was lost does not count: the next one says that it is there.
pub async fn write(api_client: &ApiClient, method: Method, path: &str, body: &Value) {
    let begun = Instant::now();
    while !try_write(api_client, &method, path, body).await {
        assert!(begun.elapsed() < STEP_TIMEOUT, "{path} could not be written: {body}");
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn try_write(api_client: &ApiClient, method: &Method, path: &str, body: &Value) -> bool {
    let Ok(mut connection) = api_client.connect().await else { return false };
    let answer = connection.json(method.clone(), path, body.to_string()).await;
    answer.is_ok_and(|(status, _)| status.is_success() || status.as_u16() == 409)
}

/// What is there, if it can be asked.
pub async fn try_get(api_client: &ApiClient, path: &str) -> Option<Value> {
    let mut connection = api_client.connect().await.ok()?;
    let (status, answer) = connection.json(Method::GET, path, "").await.ok()?;
    status.is_success().then_some(answer)
}
