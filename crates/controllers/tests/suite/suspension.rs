//! U2 to U4: while a Work is suspended nothing is written to its member, whatever happens; it can still be deleted.

use serde_json::{Value, json};

use crate::stack::{NGINX, Stack, at, work_path};

async fn suspended() -> Stack {
    let stack = Stack::with_nginx(&["member1", "member2"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.until_work("member2", "Applied", "True").await;
    stack.edit_policy(json!({ "suspension": { "dispatching": true } })).await;
    stack.until_work("member1", "Dispatching", "False").await;
    stack.until_work("member2", "Dispatching", "False").await;
    stack.settle().await;
    stack.members.values().for_each(|member| member.gate.forget());
    stack
}

/// How often the controllers have read the member's object.
fn reads(stack: &Stack, member: &str) -> usize {
    let asked = stack.member(member).gate.asked();
    asked.iter().filter(|asked| *asked == &format!("GET {NGINX}")).count()
}

/// Waits until the controllers have read the member's object more often than that.
async fn noticed(stack: &Stack, member: &str, before: usize) {
    stack.until("noticed", async |stack| reads(stack, member) > before).await;
    stack.settle().await;
}

#[tokio::test(start_paused = true)]
async fn u3_nothing_is_written_while_suspended_and_everything_after() {
    let mut stack = suspended().await;
    let member = stack.member("member1");
    // A new template reaches the Work, not the member.
    stack.control.rest.merge(&at(NGINX), &json!({ "spec": { "replicas": 5 } })).await.unwrap();
    let told = |work: &Value| work["spec"]["workload"]["manifests"][0]["spec"]["replicas"] == 5;
    stack.control.until("the Work is current", &work_path("member1"), told).await;
    // Drift stays.
    let before = reads(&stack, "member1");
    member.rest.merge(&at(NGINX), &json!({ "spec": { "replicas": 7 } })).await.unwrap();
    noticed(&stack, "member1", before).await;
    // Status is still collected.
    let status = json!({ "status": { "replicas": 7, "readyReplicas": 1 } });
    member.rest.merge(&at(&format!("{NGINX}/status")), &status).await.unwrap();
    let collected = |work: &Value| work["status"]["manifestStatuses"][0]["status"]["readyReplicas"] == 1;
    stack.control.until("collected", &work_path("member1"), collected).await;
    // What is deleted stays so, also for controllers that remember nothing.
    let before = reads(&stack, "member1");
    member.rest.delete(&at(NGINX), None).await.unwrap();
    noticed(&stack, "member1", before).await;
    stack.stop().await;
    let before = reads(&stack, "member1");
    stack.restart().await;
    noticed(&stack, "member1", before).await;
    let member = stack.member("member1");
    assert_eq!(member.get(NGINX).await, None);
    for (name, member) in &stack.members {
        assert_eq!(member.gate.writes(), [""; 0], "{name}");
    }
    stack.edit_policy(json!({ "suspension": null })).await;
    member.until("resumed", NGINX, |object| object["spec"]["replicas"] == 5).await;
    stack.until_work("member1", "Dispatching", "True").await;
    stack.settle().await;
    let work = api::names::work_name("Deployment", "nginx", "default");
    assert_eq!(stack.told(&work, "WorkDispatching").await.len(), 4, "two members, each in both states");
    assert!(!stack.told(&work, "SyncSucceed").await.is_empty());
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn u4_suspension_does_not_hold_back_the_end() {
    let mut stack = suspended().await;
    stack.edit_policy(json!({ "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } })).await;
    stack.member("member1").until_gone(NGINX).await;
    assert!(stack.member("member2").get(NGINX).await.is_some());
    stack.control.rest.delete(&at(NGINX), None).await.unwrap();
    stack.member("member2").until_gone(NGINX).await;
    stack.stop().await;
}
