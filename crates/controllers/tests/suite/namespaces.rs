//! Namespace sync: namespaces are propagated to every member, and propagated objects find them there.

use serde_json::{Value, json};

use crate::stack::{Stack, at, condition, namespace};

const TEAM: &str = "/api/v1/namespaces/team";

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_to_every_member_also_to_those_that_join_later_and_ends_with_its_original() {
    let mut stack = Stack::new(&["member1"]).await;
    stack.create(namespace("team", json!({ "owner": "me" }))).await;
    let there = |namespace: &Value| namespace["metadata"]["labels"]["owner"] == "me";
    stack.member("member1").until("synced", TEAM, there).await;
    stack.join("member2").await;
    stack.member("member2").until("synced", TEAM, there).await;
    stack
        .control
        .rest
        .merge(&at(TEAM), &json!({ "metadata": { "labels": { "owner": "you" } } }))
        .await
        .unwrap();
    for member in stack.members.values() {
        member.until("followed", TEAM, |namespace| namespace["metadata"]["labels"]["owner"] == "you").await;
    }
    stack.control.rest.delete(&at(TEAM), None).await.unwrap();
    for member in stack.members.values() {
        member.until_gone(TEAM).await;
    }
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_template_finds_its_namespace_in_the_member() {
    let mut stack = Stack::new(&["member1"]).await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": { "name": "all" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment" }],
            "placement": { "clusterAffinity": { "clusterNames": ["member1"] } },
        },
    });
    stack.create(policy).await;
    // Kept out of members at first, so that the template comes before its namespace.
    stack.create(namespace("team", json!({ "namespace.karmada.io/skip-auto-propagation": "true" }))).await;
    let mut nginx = crate::stack::nginx();
    nginx["metadata"]["namespace"] = json!("team");
    stack.create(nginx).await;
    let name = api::names::work_name("Deployment", "nginx", "team");
    let work = format!("/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works/{name}");
    let refused = |work: &Value| condition(work, "Applied") == "False";
    stack.control.until("refused", &work, refused).await;
    let admit = json!({ "metadata": { "labels": { "namespace.karmada.io/skip-auto-propagation": null } } });
    stack.control.rest.merge(&at(TEAM), &admit).await.unwrap();
    let path = "/apis/apps/v1/namespaces/team/deployments/nginx";
    stack.member("member1").until("arrived", path, Value::is_object).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_takes_over_a_namespace_that_went_out_by_itself_and_leaves_it_again() {
    let mut stack = Stack::new(&["member1", "member2"]).await;
    stack.create(namespace("team", json!({}))).await;
    stack.until_in(TEAM, &["member1", "member2"]).await;
    stack.settle().await;
    let policy = json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": { "name": "teams" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "v1", "kind": "Namespace", "name": "team" }],
            "placement": { "clusterAffinity": { "clusterNames": ["member1"] } },
        },
    });
    stack.create(policy).await;
    let binding = "/apis/work.karmada.io/v1alpha2/clusterresourcebindings/team-namespace";
    let applied = |binding: &Value| condition(binding, "FullyApplied") == "True";
    stack.control.until("taken over", binding, applied).await;
    stack.settle().await;
    let uid = stack.member("member1").get(TEAM).await.unwrap()["metadata"]["uid"].clone();
    stack.until_in(TEAM, &["member1", "member2"]).await;
    // The binding goes, and its copy with it; the namespace goes out by itself again.
    stack.delete("/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies/teams").await;
    stack.settle().await;
    stack.delete(binding).await;
    stack.control.until_gone(binding).await;
    let reborn = |object: &Value| object.is_object() && object["metadata"]["uid"] != uid;
    stack.member("member1").until("back", TEAM, reborn).await;
    stack.stop().await;
}
