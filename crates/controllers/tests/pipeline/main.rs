//! From `kubectl apply` to every member and back: the whole pipeline in one process, on real API servers.

mod clusters;
mod delivery;
mod drift;
mod harness;
mod namespaces;
mod outage;
mod suspension;

use harness::{BINDING, NGINX, Stack, has_condition};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_reaches_its_members_and_leaves_them() {
    let mut stack = Stack::with_nginx(&["member1", "member2"], json!({})).await;
    for member in stack.members.values() {
        member.until("in the member", NGINX, Value::is_object).await;
    }
    let applied = |binding: &Value| has_condition(binding, "FullyApplied", "True");
    stack.control.until("fully applied", BINDING, applied).await;
    stack.edit_policy(json!({ "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } })).await;
    stack.member("member1").until_gone(NGINX).await;
    assert!(stack.member("member2").get(NGINX).await.is_some());
    stack.control.rest.delete(NGINX, None).await.unwrap();
    stack.member("member2").until_gone(NGINX).await;
    stack.stop().await;
}
