//! Paths and methods that lead nowhere, and those that try to lead somewhere else.

use expect_test::expect_file;
use http::Method;
use serde_json::json;

use crate::client::{Ask, Server};
use crate::table::Table;

const MAPS: &str = "/api/v1/namespaces/paths/configmaps";

#[tokio::test]
async fn nowhere() {
    let server = Server::with_namespace("paths").await;
    let mut table = Table::new(&server);
    let get = Ask::get;
    // A real server answers these with a page that is no Status; clients make the same of both.
    let pages =
        ["/nothing", "/apis/nothing", "/apis/nothing.io/v1", "/apis/nothing.io/v1/things", "/openapi/v9"];
    for path in pages.into_iter().chain(["/openapi/v3/apis/nothing/v1"]) {
        assert_eq!(server.ask(get(path)).await.code, 404, "{path}");
    }
    table.ask(get("/api/v2")).await;
    table.ask(get("/api/v2/pods")).await;
    table.ask(get("/apis/apps/v2/deployments")).await;
    table.ask(get("/apis/apps/v1/nothing")).await;
    table.ask(get("/api/v1/nothing")).await;
    table.ask(get("/api/v1/namespaces/paths/nothing")).await;
    table.ask(get("/api/v1/namespaces/paths/nothing/x")).await;
    table.ask(get(&format!("{MAPS}/lost"))).await;
    table.ask(get(&format!("{MAPS}/lost/status"))).await;
    table.ask(get("/apis/apps/v1/namespaces/paths/deployments/lost")).await;
    table.ask(get("/apis/apps/v1/namespaces/paths/deployments/lost/scale")).await;
    table.ask(get("/apis/apps/v1/namespaces/paths/deployments/lost/nothing")).await;
    table.ask(get("/apis/apps/v1/namespaces/paths/deployments/lost/status/x")).await;
    table.is(expect_file!["answers/paths-nowhere.txt"]);
}

#[tokio::test]
async fn wrong_scope() {
    let server = Server::with_namespace("paths").await;
    let mut table = Table::new(&server);
    table.ask(Ask::get("/api/v1/configmaps/x")).await;
    table.ask(Ask::get("/api/v1/namespaces/paths/nodes")).await;
    table.ask(Ask::get("/api/v1/namespaces/paths/nodes/n")).await;
    table.ask(Ask::get("/api/v1/namespaces/paths/namespaces/x")).await;
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "namespace": "paths" } });
    table.ask(Ask::post("/api/v1/configmaps", map.clone())).await;
    table.ask(Ask::delete("/api/v1/configmaps")).await;
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "x" } });
    table.ask(Ask::post("/api/v1/namespaces/paths/nodes", node)).await;
    table.is(expect_file!["answers/paths-wrong-scope.txt"]);
}

#[tokio::test]
async fn methods() {
    let server = Server::with_namespace("paths").await;
    let mut table = Table::new(&server);
    let ask =
        |method: &str, path: &str| Ask::new(Method::from_bytes(method.as_bytes()).expect("a method"), path);
    let object = format!("{MAPS}/x");
    table.ask(ask("PUT", MAPS)).await;
    table.ask(ask("PATCH", MAPS)).await;
    table.ask(ask("POST", &object)).await;
    table.ask(ask("OPTIONS", &object)).await;
    table.ask(ask("BREW", &object)).await;
    table.ask(ask("DELETE", "/api/v1/namespaces")).await;
    table.ask(ask("POST", "/version")).await;
    table.ask(ask("POST", "/api")).await;
    table.ask(ask("DELETE", "/apis/apps/v1")).await;
    let deployment = "/apis/apps/v1/namespaces/paths/deployments/d";
    table.ask(ask("POST", &format!("{deployment}/status"))).await;
    table.ask(ask("DELETE", &format!("{deployment}/status"))).await;
    table.ask(ask("DELETE", &format!("{deployment}/scale"))).await;
    table.ask(ask("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")).await;
    table.ask(ask("DELETE", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x")).await;
    table.ask(ask("GET", "/api/v1/namespaces/paths/pods/p/eviction")).await;
    table.is(expect_file!["answers/paths-methods.txt"]);
}

/// No spelling of a path reaches an object that the plain spelling of its segments does not name. (A real
/// kube-apiserver decodes before it splits, so an escaped slash is a slash there; here it never is.)
#[tokio::test]
async fn tricks() {
    let server = Server::with_namespace("paths").await;
    server.renew("/api/v1/namespaces/paths/secrets", json!({ "metadata": { "name": "secret" } })).await;
    if matches!(server, Server::Remote { .. }) {
        return;
    }
    let tricks = [
        "/api/v1/namespaces/paths/configmaps/../secrets/secret",
        "/api/v1/namespaces/paths/configmaps/%2e%2e/secrets/secret",
        "/api/v1/namespaces/paths/configmaps/..%2fsecrets%2fsecret",
        "/api/v1/namespaces/paths/configmaps/..%2Fsecrets/secret",
        "/api/v1/namespaces/other%2f..%2fpaths/secrets/secret",
        "/api/v1/namespaces/paths%2fsecrets/secret",
        "/api/v1/namespaces/paths%00/secrets/secret",
        "/api/v1/namespaces/paths/secrets/secret%00",
        "/api/v1/namespaces/paths/secrets/%73ecret%20",
        "/api/v1/namespaces/paths/secrets/%ff",
        "/api/v1/namespaces/paths/secrets/%",
        "/api/v1/namespaces/paths/secrets/%zz",
        "/api/v1/namespaces//secrets/secret",
        "/api/v1/namespaces/paths/secrets//secret",
        "//api/v1/namespaces/paths/secrets/secret",
        "/api/v1/./namespaces/paths/secrets/secret",
        "/api/v1/namespaces/./secrets/secret",
        "/api/v1/namespaces/paths/secrets/secret/../../configmaps",
        "/API/V1/namespaces/paths/secrets/secret",
        "/api/v1;x=y/namespaces/paths/secrets/secret",
        "/api/v1/namespaces/paths\\secrets\\secret",
    ];
    for path in tricks {
        let answer = server.ask(Ask::get(path)).await;
        let found = answer.body["kind"] == "Secret" && answer.code == 200;
        assert!(!found, "{path} reached the secret");
        assert!([301, 400, 403, 404, 405].contains(&answer.code), "{path}: {}", answer.text);
    }
    let long = format!("{MAPS}/{}", "a".repeat(60_000));
    assert_eq!(server.ask(Ask::get(&long)).await.code, 404);
    let deep = format!("{MAPS}/x{}", "/status".repeat(5_000));
    assert_eq!(server.ask(Ask::get(&deep)).await.code, 404);
    // An escaped spelling of the very same segments is the same object.
    let escaped = server.ask(Ask::get("/api/v1/namespaces/%70aths/secrets/%73ecret")).await;
    assert_eq!(escaped.expect(200)["metadata"]["name"], "secret");
}

/// A name in the path is written by create and apply only if it could be read again.
#[tokio::test]
async fn names_in_paths() {
    let server = Server::with_namespace("paths").await;
    for name in ["%2e%2e", "a%2fb", "a%00b", "A", "%20"] {
        let path = format!("{MAPS}/{name}?fieldManager=test");
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
        let answer = server.ask(Ask::patch("apply", &path, body.clone())).await;
        assert!([400, 404, 422].contains(&answer.code), "{name}: {}", answer.text);
        let answer = server.ask(Ask::put(&path, body)).await;
        assert!([400, 404, 422].contains(&answer.code), "{name}: {}", answer.text);
    }
    let items = server.ask(Ask::get(MAPS)).await.expect(200)["items"].clone();
    let names: Vec<_> =
        items.as_array().expect("items").iter().map(|item| &item["metadata"]["name"]).collect();
    assert!(names.iter().all(|name| *name == "kube-root-ca.crt"), "{names:?}");
}
