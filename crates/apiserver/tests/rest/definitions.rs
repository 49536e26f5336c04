//! CustomResourceDefinitions at run time: served at once, defaulted, pruned, in several versions, and deleted with
//! all their objects.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::client::{Answer, Ask, DEFINITIONS, Server};

const WIDGETS: &str = "/apis/shop.example.com/v1/namespaces/default/widgets";

fn version(name: &str, storage: bool) -> Value {
    let colour = json!({ "type": "string", "default": "red" });
    json!({
        "name": name, "served": true, "storage": storage,
        "subresources": {
            "status": {},
            "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
        },
        "schema": { "openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": { "replicas": { "type": "integer" }, "colour": colour },
                },
                "status": { "type": "object", "properties": { "replicas": { "type": "integer" } } },
                "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            },
        } },
    })
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.shop.example.com") },
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": { "plural": plural, "kind": kind },
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Widget",
        "metadata": { "name": name }, "spec": spec, "free": { "any": [1] }, "stray": true,
    })
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().expect("conditions");
    conditions.iter().find(|one| one["type"] == kind).map_or(&Value::Null, |one| &one["status"])
}

#[tokio::test]
async fn a_kind_is_served_when_its_definition_is_created() {
    let server = Server::new().await;
    let made = server.ask(Ask::post(DEFINITIONS, definition("widgets", "Widget"))).await.expect(201);
    assert_eq!(
        (condition(&made, "Established"), condition(&made, "NamesAccepted")),
        (&json!("True"), &json!("True"))
    );
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    let object = server.ask(Ask::post(WIDGETS, widget("w", json!({ "replicas": 2, "unknown": 1 })))).await;
    let warnings = object.warnings.clone();
    let object = object.expect(201);
    assert_eq!(object["spec"], json!({ "replicas": 2, "colour": "red" }), "defaulted and pruned");
    assert_eq!(object["free"], json!({ "any": [1] }), "what is to be kept is kept");
    assert!(object.get("stray").is_none());
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let groups = server.ask(Ask::get("/apis/shop.example.com")).await.expect(200);
    assert_eq!(groups["preferredVersion"]["version"], "v1");
    let resources = server.ask(Ask::get("/apis/shop.example.com/v1")).await.expect(200);
    let names: Vec<&str> = resources["resources"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
}

#[tokio::test]
async fn versions_are_views_of_one_object() {
    let server = Server::new().await;
    server.define(definition("widgets", "Widget")).await;
    let old = "/apis/shop.example.com/v1beta1/namespaces/default/widgets";
    let mut object = widget("w", json!({ "replicas": 1 }));
    object["apiVersion"] = "shop.example.com/v1beta1".into();
    let made = server.ask(Ask::post(old, object)).await.expect(201);
    assert_eq!(made["apiVersion"], "shop.example.com/v1beta1");
    let seen = server.ask(Ask::get(&format!("{WIDGETS}/w"))).await.expect(200);
    assert_eq!(seen["apiVersion"], "shop.example.com/v1");
    assert_eq!(seen["metadata"]["uid"], made["metadata"]["uid"]);
    let list = server.ask(Ask::get(old)).await.expect(200);
    assert_eq!(list["items"][0]["apiVersion"], "shop.example.com/v1beta1");
    // The other version becomes the one that is stored; both have been stored by now.
    let path = format!("{DEFINITIONS}/widgets.shop.example.com");
    let mut definition = server.ask(Ask::get(&path)).await.expect(200);
    definition["spec"]["versions"] = json!([version("v1", false), version("v1beta1", true)]);
    let after = server.ask(Ask::put(&path, definition)).await.expect(200);
    assert_eq!(after["status"]["storedVersions"], json!(["v1", "v1beta1"]));
    let seen = server.ask(Ask::get(&format!("{WIDGETS}/w"))).await.expect(200);
    assert_eq!((&seen["apiVersion"], &seen["spec"]["replicas"]), (&json!("shop.example.com/v1"), &json!(1)));
    let drop_stored = json!({ "spec": { "versions": [version("v1beta1", true)] } });
    let refused = server.ask(Ask::merge(&path, drop_stored)).await;
    assert_eq!(refused.code, 422, "a version that was stored cannot be dropped: {}", refused.text);
}

#[tokio::test]
async fn parts_of_custom_objects() {
    let server = Server::new().await;
    server.define(definition("widgets", "Widget")).await;
    let mut object = widget("w", json!({ "replicas": 1 }));
    object["status"] = json!({ "replicas": 9 });
    let made = server.ask(Ask::post(WIDGETS, object)).await.expect(201);
    assert!(made.get("status").is_none());
    assert_eq!(made["metadata"]["generation"], 1);
    let path = format!("{WIDGETS}/w");
    let status = json!({ "status": { "replicas": 1 }, "spec": { "replicas": 7 }, "metadata": { "labels": { "a": "b" } } });
    let after = server.ask(Ask::merge(&format!("{path}/status"), status)).await.expect(200);
    assert_eq!((&after["spec"]["replicas"], &after["status"]["replicas"]), (&json!(1), &json!(1)));
    assert_eq!(after["metadata"]["generation"], 1);
    let scale = server.ask(Ask::get(&format!("{path}/scale"))).await.expect(200);
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["replicas"]), (&json!(1), &json!(1)));
    server.ask(Ask::merge(&format!("{path}/scale"), json!({ "spec": { "replicas": 3 } }))).await.expect(200);
    let after = server.ask(Ask::get(&path)).await.expect(200);
    assert_eq!((&after["spec"]["replicas"], &after["metadata"]["generation"]), (&json!(3), &json!(2)));
}

#[tokio::test]
async fn names_are_taken_and_become_free() {
    let server = Server::with_controllers().await;
    server.define(definition("widgets", "Widget")).await;
    let second = server.ask(Ask::post(DEFINITIONS, definition("wodgets", "Widget"))).await.expect(201);
    assert_eq!(condition(&second, "NamesAccepted"), "False");
    assert_ne!(condition(&second, "Established"), "True");
    let wodgets = "/apis/shop.example.com/v1/namespaces/default/wodgets";
    assert_eq!(server.ask(Ask::get(wodgets)).await.code, 404);
    server.ask(Ask::delete(&format!("{DEFINITIONS}/widgets.shop.example.com"))).await.expect(200);
    server.until(wodgets, |answer| answer.code == 200).await;
    let second = server.ask(Ask::get(&format!("{DEFINITIONS}/wodgets.shop.example.com"))).await.expect(200);
    assert_eq!(condition(&second, "NamesAccepted"), "True");
}

#[tokio::test]
async fn a_definition_takes_its_objects_along() {
    let server = Server::with_controllers().await;
    server.define(definition("widgets", "Widget")).await;
    server.namespace("other").await;
    server.ask(Ask::post(WIDGETS, widget("a", json!({})))).await.expect(201);
    let mut held = widget("held", json!({}));
    held["metadata"]["finalizers"] = json!(["a.io/hold"]);
    server.ask(Ask::post("/apis/shop.example.com/v1/namespaces/other/widgets", held)).await.expect(201);
    let watch = server.open(Ask::get("/apis/shop.example.com/v1/widgets?watch=true")).await;
    let path = format!("{DEFINITIONS}/widgets.shop.example.com");
    let marked = server.ask(Ask::delete(&path)).await.expect(200);
    assert_eq!(condition(&marked, "Terminating"), "True");
    server.until_gone(&format!("{WIDGETS}/a")).await;
    server.ask(Ask::get(&path)).await.expect(200);
    let refused = server.ask(Ask::post(WIDGETS, widget("late", json!({})))).await;
    assert_eq!((refused.code, refused.refusal().1), (403, "Forbidden"), "{}", refused.text);
    let held = "/apis/shop.example.com/v1/namespaces/other/widgets/held";
    server.ask(Ask::merge(held, json!({ "metadata": { "finalizers": null } }))).await.expect(200);
    server.until_gone(&path).await;
    server.until_gone("/apis/shop.example.com/v1").await;
    let body = tokio::time::timeout(std::time::Duration::from_secs(5), watch.into_body().collect());
    let bytes = body.await.expect("watches of a kind that is gone end").expect("a body").to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    let deleted = text.lines().filter(|line| line.starts_with("{\"type\":\"DELETED\"")).count();
    assert_eq!(deleted, 2, "{text}");
    // The same name again is a new, empty kind.
    server.define(definition("widgets", "Widget")).await;
    assert_eq!(server.ask(Ask::get(WIDGETS)).await.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn definitions_survive_a_restart() {
    let store = store::Store::in_memory();
    let server = Server::on(store.clone()).await;
    server.define(definition("widgets", "Widget")).await;
    server.ask(Ask::post(WIDGETS, widget("w", json!({})))).await.expect(201);
    let next = Server::on(store).await;
    next.until(&format!("{WIDGETS}/w"), |answer: &Answer| answer.code == 200).await;
}
