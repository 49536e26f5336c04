//! Invalid names, labels and other metadata.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::client::{Ask, Server};
use crate::table::Table;

const MAPS: &str = "/api/v1/namespaces/metadata/configmaps";

fn map(metadata: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })
}

#[tokio::test]
async fn names() {
    let server = Server::with_namespace("metadata").await;
    let mut table = Table::new(&server);
    let post = |metadata: Value| Ask::post(MAPS, map(metadata));
    let named = |name: &str| post(json!({ "name": name }));
    table.ask(post(json!({}))).await;
    table.ask(named("Upper")).await;
    table.ask(named("..")).await;
    table.ask(named("a/b")).await;
    table.ask(named("a%b")).await;
    table.ask(named("-a")).await;
    table.ask(named("é")).await;
    table.ask(named("a\0b")).await;
    table.ask(named(&"a".repeat(254))).await;
    table.ask(post(json!({ "name": "n", "namespace": "elsewhere" }))).await;
    let namespace = |name: &str| Ask::post("/api/v1/namespaces", json!({ "metadata": { "name": name } }));
    table.ask(namespace("has.dot")).await;
    table.ask(namespace(&"a".repeat(64))).await;
    let lost = "/api/v1/namespaces/lost/configmaps";
    table.ask(Ask::post(lost, map(json!({ "name": "n" })))).await;
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "1st" },
                          "spec": { "ports": [{ "port": 80 }] } });
    table.ask(Ask::post("/api/v1/namespaces/metadata/services", service)).await;
    table.is(expect_file!["answers/metadata-names.txt"]);
}

#[tokio::test]
async fn maps_and_lists() {
    let server = Server::with_namespace("metadata").await;
    let mut table = Table::new(&server);
    let with = |key: &str, value: Value| {
        let mut metadata = json!({ "name": "fresh" });
        metadata[key] = value;
        Ask::post(&format!("{MAPS}?dryRun=All"), map(metadata))
    };
    table.ask(with("labels", json!({ "a b": "c" }))).await;
    table.ask(with("labels", json!({ "": "c" }))).await;
    table.ask(with("labels", json!({ "a/b/c": "c" }))).await;
    table.ask(with("labels", json!({ "Up.Per/b": "c" }))).await;
    table.ask(with("labels", json!({ "a": "c d" }))).await;
    table.ask(with("labels", json!({ "a": "x".repeat(64) }))).await;
    table.ask(with("annotations", json!({ "a b": "c" }))).await;
    table.ask(with("annotations", json!({ "a": "x".repeat(256 * 1024) }))).await;
    table.ask(with("finalizers", json!(["a b"]))).await;
    table.ask(with("finalizers", json!(["plain"]))).await;
    table.ask(with("finalizers", json!(["orphan", "foregroundDeletion"]))).await;
    table.ask(with("ownerReferences", json!([{}]))).await;
    let owner =
        |kind: &str| json!({ "apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": true });
    table.ask(with("ownerReferences", json!([owner("Pod"), owner("Node")]))).await;
    table.ask(with("ownerReferences", json!([owner("Event")]))).await;
    table.ask(with("managedFields", json!([{ "operation": "Guess" }]))).await;
    table.is(expect_file!["answers/metadata-maps-and-lists.txt"]);
}

#[tokio::test]
async fn changes() {
    let server = Server::with_namespace("metadata").await;
    let mut table = Table::new(&server);
    let made = server.renew(MAPS, map(json!({ "name": "c", "labels": { "a": "b" } }))).await;
    let path = format!("{MAPS}/c");
    let put = |metadata: Value| Ask::put(&path, map(metadata));
    table.ask(put(json!({ "name": "other" }))).await;
    table.ask(put(json!({ "name": "c", "namespace": "other" }))).await;
    table.ask(put(json!({ "name": "c", "resourceVersion": "1" }))).await;
    table.ask(put(json!({ "name": "c", "uid": "other" }))).await;
    let guess = json!({ "name": "c", "labels": { "a": "b" }, "managedFields": [{ "operation": "Guess" }] });
    let unmanaged = Ask::put(&format!("{path}?dryRun=All"), map(guess));
    table.ask(unmanaged).await;
    table.ask(put(json!({ "name": "c", "labels": { "a b": "" } }))).await;
    table.ask(Ask::put(&path, json!({ "kind": "ConfigMap", "apiVersion": "v1" }))).await;
    table.ask(Ask::put(&format!("{MAPS}/lost"), map(json!({ "name": "lost" })))).await;
    let lost = map(json!({ "name": "lost", "resourceVersion": "1" }));
    table.ask(Ask::put(&format!("{MAPS}/lost"), lost)).await;
    table.ask(Ask::post(MAPS, map(json!({ "name": "c" })))).await;
    let dry = format!("{MAPS}?dryRun=All");
    table.ask(Ask::post(&dry, map(json!({ "name": "c" })))).await;
    let after = server.ask(Ask::get(&path)).await.expect(200);
    assert_eq!(after, made, "nothing of the refused changes was written");
    // A real server answers 500 without a reason to these two; a client's mistake is a client's mistake here.
    if matches!(server, Server::InProcess { .. }) {
        let create = server.ask(Ask::post(MAPS, map(json!({ "name": "n", "resourceVersion": "1" })))).await;
        assert_eq!(
            create.refusal(),
            (400, "BadRequest", "resourceVersion should not be set on objects to be created")
        );
        let update = server.ask(put(json!({ "name": "c", "resourceVersion": "x" }))).await;
        assert_eq!((update.code, update.refusal().1), (409, "Conflict"));
    }
    // Without a resourceVersion an update takes what is there, and what it does not name goes.
    let next = server.ask(put(json!({ "name": "c" }))).await.expect(200);
    assert!(next["metadata"].get("labels").is_none());
    let again = server.ask(put(json!({ "name": "c" }))).await.expect(200);
    assert_eq!(next, again, "an update that changes nothing makes no new revision");
    table.is(expect_file!["answers/metadata-changes.txt"]);
}

#[tokio::test]
async fn generated_names() {
    let server = Server::with_namespace("metadata").await;
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let made = server.ask(Ask::post(MAPS, map(json!({ "generateName": "job-" })))).await.expect(201);
        let name = made["metadata"]["name"].as_str().expect("a name").to_owned();
        assert!(name.len() == 9 && name.starts_with("job-"), "{name}");
        assert_eq!(made["metadata"]["generateName"], "job-");
        assert!(names.insert(name));
    }
    let long = "g".repeat(80);
    let made = server.ask(Ask::post(MAPS, map(json!({ "generateName": long })))).await.expect(201);
    let name = made["metadata"]["name"].as_str().expect("a name");
    assert!(name.len() == 63 && name.starts_with(&"g".repeat(58)), "{name}");
    let both = map(json!({ "generateName": "g-", "name": "chosen" }));
    let made = server.renew(MAPS, both).await;
    assert_eq!(made["metadata"]["name"], "chosen");
}

#[tokio::test]
async fn owners_can_be_forgotten() {
    let server = Server::with_namespace("metadata").await;
    let path = format!("{MAPS}/owned");
    for (forget, kind) in [(json!([{}]), "merge"), (json!([]), "merge"), (json!([{}]), "strategic-merge")] {
        let made = server.renew(MAPS, map(json!({ "name": "owned", "labels": { "a": "b" } }))).await;
        assert_eq!(made["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
        let patch = json!({ "metadata": { "managedFields": forget } });
        let after = server.ask(Ask::patch(kind, &path, patch)).await.expect(200);
        assert_eq!(after["metadata"].get("managedFields"), None, "{forget} {kind}");
    }
    server.renew(MAPS, map(json!({ "name": "owned", "labels": { "a": "b" } }))).await;
    let replace = json!([{ "op": "replace", "path": "/metadata/managedFields", "value": [{}] }]);
    let after = server.ask(Ask::patch("json", &path, replace)).await.expect(200);
    assert_eq!(after["metadata"].get("managedFields"), None);
}
