//! The namespace lifecycle: default objects, refusals while terminating, and deletion.

use serde_json::{Value, json};

use crate::client::{Answer, Ask, Server};

const NAMESPACES: &str = "/api/v1/namespaces";

#[tokio::test]
async fn every_namespace_has_its_default_objects() {
    let server = Server::with_controllers().await;
    server.namespace("fresh").await;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease", "fresh"] {
        let account = format!("{NAMESPACES}/{namespace}/serviceaccounts/default");
        let root = format!("{NAMESPACES}/{namespace}/configmaps/kube-root-ca.crt");
        server.until(&account, |answer| answer.code == 200).await;
        let map = server.until(&root, |answer| answer.code == 200).await;
        assert_eq!(map["data"]["ca.crt"], "certificate");
        for path in [&account, &root] {
            let before = server.ask(Ask::get(path)).await.expect(200);
            server.ask(Ask::delete(path)).await.expect(200);
            let back = server.until(path, |answer| answer.code == 200).await;
            assert_ne!(back["metadata"]["uid"], before["metadata"]["uid"], "{path} comes back");
        }
    }
}

#[tokio::test]
async fn a_namespace_empties_itself() {
    let server = Server::with_controllers().await;
    server.namespace("doomed").await;
    let maps = format!("{NAMESPACES}/doomed/configmaps");
    for name in ["a", "b"] {
        server.ask(Ask::post(&maps, json!({ "metadata": { "name": name } }))).await.expect(201);
    }
    let held = json!({ "metadata": { "name": "held", "finalizers": ["a.io/hold"] } });
    server.ask(Ask::post(&maps, held)).await.expect(201);
    let marked = server.ask(Ask::delete(&format!("{NAMESPACES}/doomed"))).await.expect(200);
    assert_eq!(marked["status"]["phase"], "Terminating");
    server.until_gone(&format!("{maps}/a")).await;
    server.until_gone(&format!("{maps}/b")).await;
    let late = server.ask(Ask::post(&maps, json!({ "metadata": { "name": "late" } }))).await;
    let message = "configmaps \"late\" is forbidden: unable to create new content in namespace doomed because it is \
                   being terminated";
    assert_eq!(late.refusal(), (403, "Forbidden", message));
    let cause = &late.body["details"]["causes"][0];
    assert_eq!(cause["reason"], "NamespaceTerminating");
    let has_condition = |answer: &Answer| {
        let conditions = answer.body["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|one| {
            one["type"] == "NamespaceFinalizersRemaining" || one["type"] == "NamespaceContentRemaining"
        })
    };
    server.until(&format!("{NAMESPACES}/doomed"), has_condition).await;
    // An object with finalizers can still be changed, which is how they are removed.
    server
        .ask(Ask::merge(&format!("{maps}/held"), json!({ "metadata": { "finalizers": null } })))
        .await
        .expect(200);
    server.until_gone(&format!("{NAMESPACES}/doomed")).await;
    for path in ["configmaps", "serviceaccounts"] {
        let left = server.ask(Ask::get(&format!("{NAMESPACES}/doomed/{path}"))).await.expect(200);
        assert_eq!(left["items"], json!([]), "nothing is left behind");
    }
    let lost = server.ask(Ask::post(&maps, json!({ "metadata": { "name": "lost" } }))).await;
    assert_eq!(lost.refusal(), (404, "NotFound", "namespaces \"doomed\" not found"));
    server.namespace("doomed").await;
    server.until(&format!("{maps}/kube-root-ca.crt"), |answer| answer.code == 200).await;
}

#[tokio::test]
async fn the_namespaces_of_the_system_stay() {
    let server = Server::with_controllers().await;
    for name in ["default", "kube-system", "kube-public"] {
        let refused = server.ask(Ask::delete(&format!("{NAMESPACES}/{name}"))).await;
        let message = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        assert_eq!(refused.refusal(), (403, "Forbidden", message.as_str()));
    }
}

#[tokio::test]
async fn a_finalizer_of_its_own_holds_a_namespace() {
    let server = Server::with_controllers().await;
    let own = json!({ "metadata": { "name": "own", "finalizers": ["a.io/hold"] } });
    server.ask(Ask::post(NAMESPACES, own)).await.expect(201);
    let path = format!("{NAMESPACES}/own");
    server.ask(Ask::delete(&path)).await.expect(200);
    let emptied = |answer: &Answer| answer.body["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    let waiting = server.until(&path, emptied).await;
    assert_eq!(waiting["metadata"]["finalizers"], json!(["a.io/hold"]));
    server.ask(Ask::merge(&path, json!({ "metadata": { "finalizers": null } }))).await.expect(200);
    server.until_gone(&path).await;
}

#[tokio::test]
async fn finalizers_of_the_spec_are_removed_by_finalize_only() {
    let server = Server::new().await;
    server.namespace("fin").await;
    let path = format!("{NAMESPACES}/fin");
    let plain = server.ask(Ask::merge(&path, json!({ "spec": { "finalizers": [] } }))).await.expect(200);
    assert_eq!(plain["spec"]["finalizers"], json!(["kubernetes"]));
    server.ask(Ask::delete(&path)).await.expect(200);
    let mut namespace: Value = server.ask(Ask::get(&path)).await.expect(200);
    namespace["spec"]["finalizers"] = json!([]);
    server.ask(Ask::put(&format!("{path}/finalize"), namespace)).await.expect(200);
    assert_eq!(server.ask(Ask::get(&path)).await.code, 404);
}
