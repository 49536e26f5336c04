//! Drift: changes by other clients to our objects in a member are undone; the member's own status is not.

use serde_json::{Value, json};

use crate::stack::{BINDING, NGINX, Stack, at, condition};

fn patches(stack: &Stack) -> usize {
    let writes = stack.member("member1").gate.writes();
    writes.iter().filter(|write| write.starts_with("PATCH") && write.ends_with("nginx")).count()
}

fn is_marked(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["annotations"]["work.karmada.io/name"].is_string() && metadata["labels"]["app"] == "nginx"
}

#[tokio::test(start_paused = true)]
async fn an_edited_object_is_repaired() {
    let mut stack = Stack::with_nginx(&["member1"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    let member = stack.member("member1");
    let edit = json!({ "spec": { "replicas": 9 } });
    member.rest.merge(&at(NGINX), &edit).await.unwrap();
    member.until("repaired", NGINX, |object| object["spec"]["replicas"] == 2).await;
    for marks in
        [json!({ "annotations": { "work.karmada.io/name": null } }), json!({ "labels": { "app": "x" } })]
    {
        member.rest.merge(&at(NGINX), &json!({ "metadata": marks })).await.unwrap();
        member.until("marked again", NGINX, is_marked).await;
    }
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_comes_back() {
    let mut stack = Stack::with_nginx(&["member1"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    let member = stack.member("member1");
    let first = member.get(NGINX).await.unwrap();
    member.rest.delete(&at(NGINX), None).await.unwrap();
    let reborn = |object: &Value| object.is_object() && object["metadata"]["uid"] != first["metadata"]["uid"];
    member.until("back", NGINX, reborn).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_member_reports_reaches_the_template_and_costs_no_write_to_the_member() {
    let mut stack = Stack::with_nginx(&["member1"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.settle().await;
    let before = patches(&stack);
    let member = stack.member("member1");
    for ready in 1..=2 {
        let generation = member.get(NGINX).await.unwrap()["metadata"]["generation"].clone();
        let status = json!({ "status": {
            "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready, "availableReplicas": ready,
            "observedGeneration": generation,
        } });
        member.rest.merge(&at(&format!("{NGINX}/status")), &status).await.unwrap();
        stack
            .control
            .until("template status", NGINX, |template| template["status"]["readyReplicas"] == ready)
            .await;
    }
    let binding = stack
        .control
        .until("healthy", BINDING, |binding| binding["status"]["aggregatedStatus"][0]["health"] == "Healthy")
        .await;
    assert!(condition(&binding, "FullyApplied") == "True");
    assert_eq!(patches(&stack), before, "a status is no reason to apply");
    stack.stop().await;
}
