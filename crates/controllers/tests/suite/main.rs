//! End-to-end tests, from `kubectl apply` to every member and back, on real API servers in memory: the rules are proven
//! in `decide`, here that they are carried out whatever happens in between.

mod adopted;
mod clusters;
mod delivery;
mod dependencies;
mod drift;
mod events_and_metrics;
mod failover;
mod installed;
mod kinds;
mod leader_election;
mod namespaces;
mod outage;
mod panics;
mod quiet;
mod races;
mod remote;
mod restarts;
mod skipped;
mod snapshot;
mod stack;
mod stories;
mod suspension;
mod watched;

use serde_json::{Value, json};
use stack::{BINDING, NGINX, Stack, at, condition};

#[tokio::test(start_paused = true)]
async fn a_deployment_reaches_its_members_and_leaves_them() {
    let mut stack = Stack::with_nginx(&["member1", "member2"], json!({})).await;
    for member in stack.members.values() {
        member.until("in the member", NGINX, Value::is_object).await;
    }
    let applied = |binding: &Value| condition(binding, "FullyApplied") == "True";
    stack.control.until("fully applied", BINDING, applied).await;
    stack.edit_policy(json!({ "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } })).await;
    stack.member("member1").until_gone(NGINX).await;
    assert!(stack.member("member2").get(NGINX).await.is_some());
    stack.control.rest.delete(&at(NGINX), None).await.unwrap();
    stack.member("member2").until_gone(NGINX).await;
    stack.stop().await;
}
