//! Invalid input for custom kinds: the same cases as for built-in ones.

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::client::{Ask, DEFINITIONS, Server};
use crate::table::Table;

const WIDGETS: &str = "/apis/refusals.example.com/v1/namespaces/custom/widgets";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.refusals.example.com" },
        "spec": {
            "group": "refusals.example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object", "required": ["size"],
                            "properties": {
                                "size": { "type": "integer", "minimum": 1, "maximum": 9 },
                                "colour": { "type": "string", "enum": ["red", "blue"], "default": "red" },
                                "tags": { "type": "array", "maxItems": 2, "items": { "type": "string" } },
                            },
                        },
                        "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
                    },
                } },
            }],
        },
    })
}

fn widget(spec: Value) -> Value {
    json!({ "apiVersion": "refusals.example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "spec": spec })
}

#[tokio::test]
async fn objects() {
    let server = Server::with_namespace("custom").await;
    let mut table = Table::new(&server).guarding(WIDGETS, widget(json!({ "size": 1 })));
    if server.ask(Ask::get(WIDGETS)).await.code != 200 {
        server.define(definition()).await;
    }
    let mut other = widget(json!({ "size": 1 }));
    other["metadata"]["name"] = "x".into();
    let post = |change: &dyn Fn(&mut Value)| {
        let mut body = other.clone();
        change(&mut body);
        Ask::post(&format!("{WIDGETS}?dryRun=All"), body)
    };
    table.ask(post(&|w| w["kind"] = "Gadget".into())).await;
    table.ask(post(&|w| w["apiVersion"] = "v1".into())).await;
    table.ask(post(&|w| w["metadata"]["name"] = "Up".into())).await;
    table.ask(post(&|w| w["metadata"]["labels"] = json!({ "a b": "c" }))).await;
    table.ask(post(&|w| w["metadata"]["labels"] = json!({ "a": 1 }))).await;
    table.ask(post(&|w| w["metadata"] = "text".into())).await;
    table.ask(post(&|w| w["spec"] = Value::Null)).await;
    table.ask(post(&|w| w["spec"] = json!({}))).await;
    table.ask(post(&|w| w["spec"] = json!([]))).await;
    table.ask(post(&|w| w["spec"]["size"] = "large".into())).await;
    table.ask(post(&|w| w["spec"]["size"] = 10.into())).await;
    table.ask(post(&|w| w["spec"]["colour"] = "green".into())).await;
    table.ask(post(&|w| w["spec"]["tags"] = json!(["a", "b", 3]))).await;
    table.ask(post(&|w| w["spec"]["extra"] = 1.into())).await;
    let strict = |query: &str| {
        let mut body = other.clone();
        body["spec"]["extra"] = 1.into();
        Ask::post(&format!("{WIDGETS}?dryRun=All&fieldValidation={query}"), body)
    };
    table.ask(strict("Strict")).await;
    table.ask(strict("Ignore")).await;
    let path = format!("{WIDGETS}/w");
    let merge = |body: Value| Ask::merge(&path, body);
    table.ask(merge(json!({ "spec": { "size": "large" } }))).await;
    table.ask(merge(json!({ "spec": { "size": 10, "colour": "blue" } }))).await;
    table.ask(merge(json!({ "kind": "Gadget" }))).await;
    table.ask(merge(json!({ "apiVersion": "v1" }))).await;
    table.ask(merge(json!({ "metadata": { "name": "q" } }))).await;
    table.ask(merge(json!({ "metadata": { "labels": { "a": 1 } } }))).await;
    table.ask(merge(json!({ "metadata": { "resourceVersion": "1" }, "spec": { "size": 2 } }))).await;
    table.ask(Ask::patch("strategic-merge", &path, json!({}))).await;
    table.ask(Ask::patch("json", &path, json!([{ "op": "remove", "path": "/spec/lost" }]))).await;
    table.ask(Ask::put(&path, widget(json!({ "size": 2 })))).await;
    table.ask(Ask::get(&format!("{path}/scale"))).await;
    table.ask(Ask::get(&format!("{path}/nothing"))).await;
    table.ask(Ask::get(&format!("{WIDGETS}?fieldSelector=spec.size=1"))).await;
    table.is(expect_file!["answers/custom-objects.txt"]);
}

/// A real server answers these with a page that is no Status; clients make the same of both.
#[tokio::test]
async fn pages() {
    let server = Server::with_namespace("custom").await;
    if server.ask(Ask::get(WIDGETS)).await.code != 200 {
        server.define(definition()).await;
    }
    let everywhere = "/apis/refusals.example.com/v1/widgets";
    for ask in [
        Ask::get("/apis/refusals.example.com/v9/widgets"),
        Ask::get("/apis/refusals.example.com/v1/gadgets"),
        Ask::delete(everywhere),
        Ask::post(everywhere, widget(json!({ "size": 1 }))),
    ] {
        assert_eq!(server.ask(ask.clone()).await.code, 404, "{ask:?}");
    }
}

#[tokio::test]
async fn definitions() {
    let server = Server::new().await;
    let mut table = Table::new(&server);
    let with = |change: &dyn Fn(&mut Value)| {
        let text = definition().to_string().replace("refusals", "broken");
        let mut body = serde_json::from_str(&text).expect("still JSON");
        change(&mut body);
        Ask::post(&format!("{DEFINITIONS}?dryRun=All"), body)
    };
    table.ask(with(&|d| d["metadata"]["name"] = "other".into())).await;
    table.ask(with(&|d| d["spec"]["scope"] = "Everywhere".into())).await;
    table.ask(with(&|d| d["spec"]["group"] = "".into())).await;
    table.ask(with(&|d| d["spec"]["names"]["kind"] = "has space".into())).await;
    table.ask(with(&|d| d["spec"]["versions"] = json!([]))).await;
    table.ask(with(&|d| d["spec"]["versions"][0]["storage"] = false.into())).await;
    table.ask(with(&|d| d["spec"]["versions"][0]["name"] = "1".into())).await;
    table.ask(with(&|d| d["spec"]["versions"][0]["schema"] = Value::Null)).await;
    let with_schema =
        |schema: Value| with(&|d| d["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone());
    let with_field = |field: Value| with_schema(json!({ "type": "object", "properties": { "a": field } }));
    table.ask(with_schema(json!({ "type": "string" }))).await;
    table.ask(with_field(json!({}))).await;
    table.ask(with_field(json!({ "type": "string", "pattern": "(" }))).await;
    table.ask(with_field(json!({ "type": "string", "default": 1 }))).await;
    table.ask(with_field(json!({ "$ref": "#/x" }))).await;
    table.is(expect_file!["answers/custom-definitions.txt"]);
}
