//! Objects that were there before, objects that stay, and controllers that start again.

use controllers::rest::Collection;
use serde_json::{Value, json};

use crate::harness::{NGINX, Stack, deployment, eventually, quick, work_path};

async fn with_foreign_nginx(resolution: Value) -> Stack {
    let stack = Stack::new(&["member1"], quick()).await;
    let deployments = Collection::new("apps/v1", "deployments", "default");
    let mut foreign = deployment("nginx");
    foreign["spec"]["replicas"] = json!(8);
    stack.member("member1").rest.create(&deployments, &foreign).await.expect("the server answers");
    stack.policy(&["member1"], resolution).await;
    stack.create(&deployments, &deployment("nginx")).await;
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn c4_an_object_of_the_members_own_is_left_alone() {
    let mut stack = with_foreign_nginx(json!({})).await;
    let work = stack.until_work("member1", "Applied", "False").await;
    let message = work["status"]["conditions"].to_string();
    assert!(message.contains("already exists in the cluster"), "{message}");
    assert_eq!(stack.member("member1").get(NGINX).await.unwrap()["spec"]["replicas"], 8);
    stack.control.rest.delete(NGINX, None).await.unwrap();
    stack.control.until_gone(&work_path("member1")).await;
    let object = stack.member("member1").get(NGINX).await.unwrap();
    assert_eq!(object["spec"]["replicas"], 8, "what was never ours is not ours to delete");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c4_it_is_taken_over_when_the_policy_says_so() {
    let mut stack = with_foreign_nginx(json!({ "conflictResolution": "Overwrite" })).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.member("member1").until("taken over", NGINX, |object| object["spec"]["replicas"] == 2).await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_preserved_stays_without_our_marks() {
    let mut stack = Stack::with_nginx(&["member1"], json!({ "preserveResourcesOnDeletion": true })).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.control.rest.delete(NGINX, None).await.unwrap();
    stack.control.until_gone(&work_path("member1")).await;
    let object = stack.member("member1").get(NGINX).await.unwrap();
    let marks = format!("{}{}", object["metadata"]["labels"], object["metadata"]["annotations"]);
    assert!(!marks.contains("karmada.io"), "{marks}");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_a_restart_without_a_change_writes_nothing() {
    let mut stack = Stack::with_nginx(&["member1", "member2"], json!({})).await;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } });
    stack.create(&Collection::new("v1", "namespaces", ""), &namespace).await;
    for member in stack.members.values() {
        member.until("in the member", NGINX, Value::is_object).await;
        member.until("in the member", "/api/v1/namespaces/team", Value::is_object).await;
    }
    stack.until_work("member1", "Applied", "True").await;
    stack.until_work("member2", "Applied", "True").await;
    stack
        .control
        .until("complete", crate::harness::BINDING, |binding| {
            crate::harness::has_condition(binding, "FullyApplied", "True")
        })
        .await;
    stack.settle().await;
    stack.stop().await;
    stack.control.gate.forget();
    stack.members.values().for_each(|member| member.gate.forget());
    stack.restart().await;
    for member in stack.members.values() {
        let read = |path: &str| member.gate.asked().contains(&format!("GET {path}"));
        eventually("looked at", async || read(NGINX) && read("/api/v1/namespaces/team")).await;
        eventually("polled", async || {
            member.gate.asked().iter().filter(|one| *one == "GET /readyz").count() > 1
        })
        .await;
    }
    stack.settle().await;
    for (name, member) in &stack.members {
        assert_eq!(member.gate.writes(), [""; 0], "{name}");
    }
    assert_eq!(stack.control.gate.writes(), [""; 0]);
    stack.stop().await;
}
