//! The garbage collector: owners and dependents under background, foreground and orphan deletion.

use serde_json::{Value, json};

use crate::client::{Ask, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

fn reference(owner: &Value, block: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block,
    })
}

async fn make(server: &Server, collection: &str, name: &str, owners: &[&Value], block: bool) -> Value {
    let references: Vec<Value> = owners.iter().map(|owner| reference(owner, block)).collect();
    let mut object = json!({ "metadata": { "name": name, "ownerReferences": references } });
    if collection == CLASSES {
        object["value"] = 1.into();
    }
    server.ask(Ask::post(collection, object)).await.expect(201)
}

#[tokio::test]
async fn background() {
    let server = Server::with_controllers().await;
    let owner = make(&server, MAPS, "owner", &[], false).await;
    let child = make(&server, SECRETS, "child", &[&owner], true).await;
    make(&server, MAPS, "grandchild", &[&child], true).await;
    server.ask(Ask::delete(&format!("{MAPS}/owner"))).await.expect(200);
    assert_eq!(server.ask(Ask::get(&format!("{MAPS}/owner"))).await.code, 404, "the owner goes at once");
    server.until_gone(&format!("{SECRETS}/child")).await;
    server.until_gone(&format!("{MAPS}/grandchild")).await;
}

#[tokio::test]
async fn foreground_waits_for_those_that_block() {
    let server = Server::with_controllers().await;
    let owner = make(&server, MAPS, "owner", &[], false).await;
    let child = make(&server, SECRETS, "child", &[&owner], true).await;
    make(&server, MAPS, "grandchild", &[&child], true).await;
    make(&server, SECRETS, "loose", &[&owner], false).await;
    let hold = json!({ "metadata": { "finalizers": ["a.io/hold"] } });
    server.ask(Ask::merge(&format!("{MAPS}/grandchild"), hold.clone())).await.expect(200);
    server.ask(Ask::merge(&format!("{SECRETS}/loose"), hold)).await.expect(200);
    let marked =
        server.ask(Ask::delete(&format!("{MAPS}/owner?propagationPolicy=Foreground"))).await.expect(200);
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let is_marked = |answer: &crate::client::Answer| answer.body["metadata"]["deletionTimestamp"].is_string();
    server.until(&format!("{MAPS}/grandchild"), is_marked).await;
    server.until(&format!("{SECRETS}/loose"), is_marked).await;
    // The grandchild is held, so the child waits for it and the owner for the child.
    for path in [format!("{MAPS}/owner"), format!("{SECRETS}/child")] {
        let waiting = server.ask(Ask::get(&path)).await.expect(200);
        assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]), "{path}");
    }
    let free = json!({ "metadata": { "finalizers": null } });
    server.ask(Ask::merge(&format!("{MAPS}/grandchild"), free)).await.expect(200);
    server.until_gone(&format!("{SECRETS}/child")).await;
    server.until_gone(&format!("{MAPS}/owner")).await;
    // What does not block its owner is still held by its own finalizer.
    server.ask(Ask::get(&format!("{SECRETS}/loose"))).await.expect(200);
}

#[tokio::test]
async fn orphans_stay_without_their_owner() {
    let server = Server::with_controllers().await;
    let owner = make(&server, MAPS, "owner", &[], false).await;
    let other = make(&server, MAPS, "other", &[], false).await;
    make(&server, SECRETS, "one", &[&owner], true).await;
    make(&server, SECRETS, "two", &[&owner, &other], true).await;
    server.ask(Ask::delete(&format!("{MAPS}/owner?propagationPolicy=Orphan"))).await.expect(200);
    server.until_gone(&format!("{MAPS}/owner")).await;
    let one = server.ask(Ask::get(&format!("{SECRETS}/one"))).await.expect(200);
    assert!(one["metadata"].get("ownerReferences").is_none());
    let two = server.ask(Ask::get(&format!("{SECRETS}/two"))).await.expect(200);
    assert_eq!(two["metadata"]["ownerReferences"][0]["name"], "other");
    assert_eq!(two["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_dependent_is_deleted_with_its_last_owner() {
    let server = Server::with_controllers().await;
    let first = make(&server, MAPS, "first", &[], false).await;
    let second = make(&server, CLASSES, "second", &[], false).await;
    make(&server, SECRETS, "child", &[&first, &second], false).await;
    server.ask(Ask::delete(&format!("{MAPS}/first"))).await.expect(200);
    let one_left = |answer: &crate::client::Answer| {
        answer.body["metadata"]["ownerReferences"].as_array().is_some_and(|list| list.len() == 1)
    };
    let child = server.until(&format!("{SECRETS}/child"), one_left).await;
    assert_eq!(child["metadata"]["ownerReferences"][0]["kind"], "PriorityClass");
    server.ask(Ask::delete(&format!("{CLASSES}/second"))).await.expect(200);
    server.until_gone(&format!("{SECRETS}/child")).await;
}

#[tokio::test]
async fn a_namesake_is_no_owner() {
    let server = Server::with_controllers().await;
    let mut namesake = make(&server, MAPS, "owner", &[], false).await;
    namesake["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    make(&server, SECRETS, "child", &[&namesake], false).await;
    server.until_gone(&format!("{SECRETS}/child")).await;
    server.ask(Ask::get(&format!("{MAPS}/owner"))).await.expect(200);
}

#[tokio::test]
async fn an_owner_of_an_unknown_kind_is_left_alone() {
    let server = Server::with_controllers().await;
    let ghost =
        json!({ "apiVersion": "nobody.io/v1", "kind": "Ghost", "metadata": { "name": "g", "uid": "u" } });
    make(&server, SECRETS, "child", &[&ghost], false).await;
    let owner = make(&server, MAPS, "owner", &[], false).await;
    make(&server, SECRETS, "marker", &[&owner], false).await;
    server.ask(Ask::delete(&format!("{MAPS}/owner"))).await.expect(200);
    server.until_gone(&format!("{SECRETS}/marker")).await;
    server.ask(Ask::get(&format!("{SECRETS}/child"))).await.expect(200);
}

#[tokio::test]
async fn a_restart_resumes_unfinished_work_items() {
    let store = store::Store::in_memory();
    let server = Server::on(store.clone()).await;
    let owner = make(&server, MAPS, "owner", &[], false).await;
    make(&server, SECRETS, "child", &[&owner], true).await;
    let other = make(&server, MAPS, "other", &[], false).await;
    make(&server, SECRETS, "held", &[&other], true).await;
    server.ask(Ask::delete(&format!("{MAPS}/owner"))).await.expect(200);
    server.ask(Ask::delete(&format!("{MAPS}/other?propagationPolicy=Foreground"))).await.expect(200);
    // No controller has run until now.
    server.ask(Ask::get(&format!("{SECRETS}/child"))).await.expect(200);
    let next = Server::on(store).await;
    next.start_controllers();
    next.until_gone(&format!("{SECRETS}/child")).await;
    next.until_gone(&format!("{SECRETS}/held")).await;
    next.until_gone(&format!("{MAPS}/other")).await;
}
