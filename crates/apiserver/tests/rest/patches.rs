//! Patches that cannot be applied, as a whole or from the middle on: nothing of them is written.

use expect_test::expect_file;
use futures::future::join_all;
use serde_json::{Value, json};
use store::{Options, Store};

use crate::client::{Ask, Server};
use crate::table::Table;

const MAPS: &str = "/api/v1/namespaces/patches/configmaps";

fn object(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "labels": { "a": "b" } }, "data": { "one": "1" } })
}

#[tokio::test]
async fn json_patches() {
    let server = Server::with_namespace("patches").await;
    let mut table = Table::new(&server).guarding(MAPS, object("j"));
    let path = format!("{MAPS}/j");
    let patch = |body: Value| Ask::patch("json", &path, body);
    let good = json!({ "op": "add", "path": "/data/two", "value": "2" });
    let then = |bad: Value| patch(json!([good.clone(), bad]));
    table.ask(Ask::patch("json", &path, "[")).await;
    table.ask(patch(json!({}))).await;
    table.ask(patch(json!(["x"]))).await;
    table.ask(then(json!({ "op": "guess", "path": "/data/a" }))).await;
    table.ask(then(json!({ "op": "remove", "path": "/data/lost" }))).await;
    table.ask(then(json!({ "op": "replace", "path": "/data/lost", "value": "x" }))).await;
    table.ask(then(json!({ "op": "test", "path": "/data/one", "value": "2" }))).await;
    table.ask(then(json!({ "op": "test", "path": "/data/lost", "value": "2" }))).await;
    table.ask(then(json!({ "op": "add", "path": "/lost/deep", "value": 1 }))).await;
    table.ask(then(json!({ "op": "add", "path": "no-slash", "value": 1 }))).await;
    table.ask(then(json!({ "op": "add", "path": "/data/x" }))).await;
    table.ask(then(json!({ "op": "add", "value": "x" }))).await;
    table.ask(then(json!({ "op": "move", "path": "/data/x", "from": "/data/lost" }))).await;
    table.ask(then(json!({ "op": "copy", "path": "/data/x" }))).await;
    table.ask(then(json!({ "op": "replace", "path": "/data", "value": "text" }))).await;
    table.ask(then(json!({ "op": "remove", "path": "/metadata" }))).await;
    table.ask(then(json!({ "op": "replace", "path": "/kind", "value": "Secret" }))).await;
    table.ask(then(json!({ "op": "replace", "path": "/metadata/name", "value": "q" }))).await;
    table.ask(then(json!({ "op": "replace", "path": "/metadata/uid", "value": "q" }))).await;
    table.ask(then(json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": "1" }))).await;
    table.ask(then(json!({ "op": "add", "path": "/metadata/labels/x", "value": "a b" }))).await;
    let many: Vec<Value> = std::iter::repeat_n(good.clone(), 10_001).collect();
    table.ask(patch(many.into())).await;
    table.ask(Ask::patch("json", &format!("{MAPS}/lost"), json!([good]))).await;
    table.is(expect_file!["answers/patches-json-patches.txt"]);
}

#[tokio::test]
async fn merge_patches() {
    let server = Server::with_namespace("patches").await;
    let mut table = Table::new(&server).guarding(MAPS, object("m"));
    let path = format!("{MAPS}/m");
    server.renew(MAPS, json!({ "metadata": { "name": "m" } })).await;
    for kind in ["merge", "strategic-merge"] {
        let patch = |body: &str| Ask::patch(kind, &path, body);
        for body in ["", "{", "[]", "\"x\"", "7"] {
            let answer = server.ask(patch(body)).await;
            assert!(answer.code == 400 || answer.code == 422, "{kind} {body}: {}", answer.text);
        }
    }
    let patch = |body: Value| Ask::merge(&path, body);
    table.ask(patch(json!({ "data": { "two": "2", "three": 3 } }))).await;
    table.ask(patch(json!({ "data": ["x"] }))).await;
    table.ask(patch(json!({ "kind": "Secret" }))).await;
    table.ask(patch(json!({ "apiVersion": "v2" }))).await;
    table.ask(patch(json!({ "metadata": { "name": "q" } }))).await;
    table.ask(patch(json!({ "metadata": { "namespace": "q" } }))).await;
    table.ask(patch(json!({ "metadata": { "uid": "q" } }))).await;
    table.ask(patch(json!({ "metadata": { "resourceVersion": "1" }, "data": { "x": "y" } }))).await;
    table.ask(patch(json!({ "metadata": { "labels": { "a b": "c" } } }))).await;
    table.ask(patch(json!({ "metadata": null }))).await;
    table.ask(patch(json!({ "data": { "bad/key": "x" } }))).await;
    let strict = Ask::merge(&format!("{path}?fieldValidation=Strict"), json!({ "datta": {} }));
    table.ask(strict).await;
    let warn = Ask::merge(&format!("{path}?dryRun=All"), json!({ "datta": {} }));
    table.ask(warn).await;
    table.ask(Ask::merge(&format!("{MAPS}/lost"), json!({}))).await;
    table.ask(Ask::merge(MAPS, json!({}))).await;
    table.is(expect_file!["answers/patches-merge-patches.txt"]);
}

#[tokio::test]
async fn strategic_patches() {
    let server = Server::with_namespace("patches").await;
    let mut table = Table::new(&server).guarding(MAPS, object("s"));
    let path = format!("{MAPS}/s");
    let patch = |body: Value| Ask::patch("strategic-merge", &path, body);
    table.ask(patch(json!({ "$patch": "guess" }))).await;
    table.ask(patch(json!({ "metadata": { "ownerReferences": [{ "name": "x" }] } }))).await;
    table.ask(patch(json!({ "metadata": { "finalizers": "x" } }))).await;
    table.ask(patch(json!({ "metadata": { "$retainKeys": "x" } }))).await;
    table.ask(patch(json!({ "data": { "two": "2", "three": 3 } }))).await;
    table.ask(patch(json!({ "metadata": { "name": "q" } }))).await;
    table.is(expect_file!["answers/patches-strategic-patches.txt"]);
}

#[tokio::test]
async fn patches_of_one_object_at_once_are_all_made() {
    // A store on disk takes its time, so that all of them have read before the first is written.
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path(), Options::default()).expect("an empty store");
    let server = Server::on(store).await;
    server.namespace("patches").await;
    server.renew(MAPS, object("busy")).await;
    let path = format!("{MAPS}/busy");
    let keys: Vec<String> = (0..40).map(|number| format!("key-{number}")).collect();
    let asked = keys.iter().map(|key| server.ask(Ask::merge(&path, json!({ "data": { key: "here" } }))));
    for answer in join_all(asked).await {
        answer.expect(200);
    }
    let now = server.ask(Ask::get(&path)).await.expect(200);
    assert!(keys.iter().all(|key| now["data"][key] == "here"), "{now}");
}

#[tokio::test]
async fn of_patches_that_saw_the_same_state_one_is_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(directory.path(), Options::default()).expect("an empty store");
    let server = Server::on(store).await;
    server.namespace("patches").await;
    let seen = server.renew(MAPS, object("seen")).await["metadata"]["resourceVersion"].clone();
    let path = format!("{MAPS}/seen");
    let patch =
        |value: u8| json!({ "metadata": { "resourceVersion": seen }, "data": { "one": value.to_string() } });
    let asked = (2..9).map(|value| server.ask(Ask::merge(&path, patch(value))));
    let answers = join_all(asked).await;
    let made = answers.iter().filter(|answer| answer.refusal().0 == 200).count();
    assert_eq!(made, 1, "{answers:?}");
}
