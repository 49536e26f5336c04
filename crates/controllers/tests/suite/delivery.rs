//! Adoption of objects that existed before (conflict resolution), and objects that are preserved on deletion.

use controllers::rest::Collection;
use serde_json::{Value, json};

use crate::stack::{NGINX, Stack, at, nginx, policy, work_path};

async fn with_foreign_nginx(resolution: Value) -> Stack {
    let stack = Stack::new(&["member1"]).await;
    let deployments = Collection::new("apps/v1", "deployments", "default");
    let mut foreign = nginx();
    foreign["spec"]["replicas"] = json!(8);
    stack.member("member1").rest.create(&deployments, &foreign).await.expect("the server answers");
    stack.create(policy("pp", ("Deployment", "nginx"), &["member1"], resolution)).await;
    stack.create(nginx()).await;
    stack
}

#[tokio::test(start_paused = true)]
async fn c4_an_object_of_the_members_own_is_left_alone() {
    let mut stack = with_foreign_nginx(json!({})).await;
    let work = stack.until_work("member1", "Applied", "False").await;
    let message = work["status"]["conditions"].to_string();
    assert!(message.contains("already exists in the cluster"), "{message}");
    assert_eq!(stack.member("member1").get(NGINX).await.unwrap()["spec"]["replicas"], 8);
    stack.control.rest.delete(&at(NGINX), None).await.unwrap();
    stack.control.until_gone(&work_path("member1")).await;
    let object = stack.member("member1").get(NGINX).await.unwrap();
    assert_eq!(object["spec"]["replicas"], 8, "what was never ours is not ours to delete");
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn c4_it_is_taken_over_when_the_policy_says_so() {
    let mut stack = with_foreign_nginx(json!({ "conflictResolution": "Overwrite" })).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.member("member1").until("taken over", NGINX, |object| object["spec"]["replicas"] == 2).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_preserved_stays_without_our_marks() {
    let mut stack = Stack::with_nginx(&["member1"], json!({ "preserveResourcesOnDeletion": true })).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.control.rest.delete(&at(NGINX), None).await.unwrap();
    stack.control.until_gone(&work_path("member1")).await;
    let object = stack.member("member1").get(NGINX).await.unwrap();
    let marks = format!("{}{}", object["metadata"]["labels"], object["metadata"]["annotations"]);
    assert!(!marks.contains("karmada.io"), "{marks}");
    stack.stop().await;
}
