//! Conversion webhooks: every request and response uses the requested version, one version is stored, and errors are
//! in Kubernetes' words.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::client::{Ask, DEFINITIONS, Server};
use crate::webhooks::Webhook;
use apiserver::body::Body;

const V1: &str = "/apis/ex.com/v1/namespaces/default/hosts";
const V2: &str = "/apis/ex.com/v2/namespaces/default/hosts";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hosts.ex.com";

fn version(name: &str, storage: bool, spec: Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "properties": spec },
            "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
        } } },
    })
}

fn definition(webhook: &Webhook, v1_is_stored: bool) -> Value {
    let text = json!({ "type": "string" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "hosts.ex.com" },
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "names": { "plural": "hosts", "kind": "Host" },
            "versions": [
                version("v1", v1_is_stored, json!({ "hostPort": text })),
                version("v2", !v1_is_stored, json!({ "host": text, "port": text, "zone": { "type": "string", "default": "z" } })),
            ],
            "conversion": { "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": { "url": webhook.url, "caBundle": webhook.authority },
            } },
        },
    })
}

/// `hostPort` is `host` and `port` in the second version.
fn convert(object: &Value, wanted: &str) -> Value {
    let mut converted = object.clone();
    converted["apiVersion"] = wanted.into();
    let spec = &object["spec"];
    converted["spec"] = match wanted {
        "ex.com/v1" => {
            json!({ "hostPort": format!("{}:{}", spec["host"].as_str().unwrap_or(""), spec["port"].as_str().unwrap_or("")) })
        }
        _ => {
            let (host, port) = spec["hostPort"].as_str().unwrap_or(":").split_once(':').expect("a colon");
            json!({ "host": host, "port": port })
        }
    };
    // A webhook has no say in these.
    converted["metadata"]["finalizers"] = json!(["not/believed"]);
    converted
}

fn review(uid: &Value, result: Value, objects: Vec<Value>) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "response": { "uid": uid, "result": result, "convertedObjects": objects },
    })
}

async fn converter() -> Webhook {
    Webhook::answering(|request| {
        let wanted = request["desiredAPIVersion"].as_str().expect("a version");
        let objects = request["objects"].as_array().expect("objects");
        let converted = objects.iter().map(|object| convert(object, wanted)).collect();
        review(&request["uid"], json!({ "status": "Success" }), converted)
    })
    .await
}

fn host(version: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": format!("ex.com/{version}"), "kind": "Host", "metadata": { "name": name }, "spec": spec })
}

/// The first events of a watch, each by the words at these places in it.
async fn events(body: &mut Body, count: usize, places: [&str; 3]) -> Vec<[String; 3]> {
    let mut text = String::new();
    while text.lines().count() < count {
        let frame = body.frame().await.expect("more events").expect("a frame");
        text.push_str(std::str::from_utf8(frame.data_ref().expect("data")).expect("text"));
    }
    let words = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("an event");
        places.map(|place| event.pointer(place).and_then(Value::as_str).expect("a word").to_owned())
    };
    text.lines().map(words).collect()
}

#[tokio::test]
async fn every_version_shows_what_every_version_wrote() {
    let (server, webhook) = (Server::new().await, converter().await);
    let defined = server.ask(Ask::post(DEFINITIONS, definition(&webhook, true))).await;
    assert_eq!(defined.warnings, Vec::<String>::new());
    defined.expect(201);
    let made =
        server.ask(Ask::post(V2, host("v2", "a", json!({ "host": "h", "port": "1" })))).await.expect(201);
    assert_eq!(made["apiVersion"], "ex.com/v2");
    assert_eq!(made["spec"], json!({ "host": "h", "port": "1", "zone": "z" }), "converted, then defaulted");
    assert_eq!(made["metadata"].get("finalizers"), None);
    let stored = server.store().get("ex.com/hosts", "default/a").expect("it is stored");
    let stored: Value = serde_json::from_slice(&stored.value).expect("JSON");
    assert_eq!(
        (&stored["apiVersion"], &stored["spec"]),
        (&json!("ex.com/v1"), &json!({ "hostPort": "h:1" }))
    );
    let asked = webhook.asked().len();
    let seen = server.ask(Ask::get(&format!("{V1}/a"))).await.expect(200);
    assert_eq!(seen["spec"], json!({ "hostPort": "h:1" }));
    assert_eq!(webhook.asked().len(), asked, "what is stored so is shown so");
    server.ask(Ask::post(V1, host("v1", "b", json!({ "hostPort": "g:2" })))).await.expect(201);

    let asked = webhook.asked().len();
    let list = server.ask(Ask::get(V2)).await.expect(200);
    let specs: Vec<&Value> =
        list["items"].as_array().expect("items").iter().map(|item| &item["spec"]).collect();
    assert_eq!(
        specs,
        [
            &json!({ "host": "h", "port": "1", "zone": "z" }),
            &json!({ "host": "g", "port": "2", "zone": "z" })
        ]
    );
    assert_eq!(webhook.asked().len(), asked + 1, "a list is converted at once");

    let patched =
        server.ask(Ask::merge(&format!("{V2}/b"), json!({ "spec": { "port": "3" } }))).await.expect(200);
    assert_eq!(patched["spec"], json!({ "host": "g", "port": "3", "zone": "z" }));
    let status = json!({ "status": { "phase": "Up" } });
    let patched = server.ask(Ask::merge(&format!("{V2}/b/status"), status)).await.expect(200);
    assert_eq!((&patched["spec"]["port"], &patched["status"]["phase"]), (&json!("3"), &json!("Up")));
    let applied = host("v2", "c", json!({ "host": "k" }));
    let path = format!("{V2}/c?fieldManager=t");
    server.ask(Ask::patch("apply", &path, applied.clone())).await.expect(201);
    let again = server.ask(Ask::patch("apply", &path, applied)).await.expect(200);
    assert_eq!(again["spec"]["host"], "k");
    let seen = server.ask(Ask::get(&format!("{V1}/b"))).await.expect(200);
    assert_eq!(seen["spec"], json!({ "hostPort": "g:3" }));
    server.ask(Ask::delete(&format!("{V2}/b"))).await.expect(200);
}

#[tokio::test]
async fn watches_speak_the_version_that_was_asked_for() {
    let (server, webhook) = (Server::new().await, converter().await);
    server.define(definition(&webhook, true)).await;
    server.ask(Ask::post(V1, host("v1", "a", json!({ "hostPort": "h:1" })))).await.expect(201);
    let mut body = server.open(Ask::get(&format!("{V2}?watch=true"))).await.into_body();
    server.ask(Ask::merge(&format!("{V1}/a"), json!({ "spec": { "hostPort": "h:2" } }))).await.expect(200);
    server.ask(Ask::delete(&format!("{V1}/a"))).await.expect(200);
    let seen = events(&mut body, 3, ["/type", "/object/apiVersion", "/object/spec/port"]).await;
    assert_eq!(
        seen,
        [["ADDED", "ex.com/v2", "1"], ["MODIFIED", "ex.com/v2", "2"], ["DELETED", "ex.com/v2", "2"]]
    );
}

#[tokio::test]
async fn another_stored_version_leaves_what_is_stored_readable() {
    let (server, webhook) = (Server::new().await, converter().await);
    server.define(definition(&webhook, true)).await;
    server.ask(Ask::post(V1, host("v1", "a", json!({ "hostPort": "h:1" })))).await.expect(201);
    let changed = server.ask(Ask::merge(DEFINITION, definition(&webhook, false))).await.expect(200);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    for (path, spec) in
        [(V1, json!({ "hostPort": "h:1" })), (V2, json!({ "host": "h", "port": "1", "zone": "z" }))]
    {
        let seen = server.ask(Ask::get(&format!("{path}/a"))).await.expect(200);
        assert_eq!(seen["spec"], spec);
        let list = server.ask(Ask::get(path)).await.expect(200);
        assert_eq!(list["items"][0]["spec"], spec, "{path}");
        assert_eq!(list["items"][0]["apiVersion"], list["apiVersion"], "{path}");
    }
    // A list of what was stored in different versions is in the one that was asked for.
    server.ask(Ask::post(V2, host("v2", "b", json!({ "host": "g", "port": "2" })))).await.expect(201);
    let list = server.ask(Ask::get(V1)).await.expect(200);
    let ports: Vec<&Value> =
        list["items"].as_array().expect("items").iter().map(|item| &item["spec"]["hostPort"]).collect();
    assert_eq!(ports, ["h:1", "g:2"]);
    // A write of nothing new moves it to the version that is stored now.
    server.ask(Ask::merge(&format!("{V2}/a"), json!({}))).await.expect(200);
    let stored = server.store().get("ex.com/hosts", "default/a").expect("it is stored");
    assert!(stored.value.starts_with(b"{\"apiVersion\":\"ex.com/v2\""));
}

#[tokio::test]
async fn failures_of_conversion_webhooks_are_reported() {
    let server = Server::new().await;
    let is_broken = Arc::new(AtomicBool::new(false));
    let broken = is_broken.clone();
    let webhook = Webhook::answering(move |request| {
        let failure = json!({ "status": "Failure", "message": "out of order" });
        match broken.load(Ordering::SeqCst) {
            true => review(&request["uid"], failure, Vec::new()),
            false => review(
                &request["uid"],
                json!({ "status": "Success" }),
                vec![json!({ "apiVersion": "ex.com/v3" })],
            ),
        }
    })
    .await;
    server.define(definition(&webhook, true)).await;
    server.ask(Ask::post(V1, host("v1", "a", json!({ "hostPort": "h:1" })))).await.expect(201);
    let path = format!("{V2}/a");
    let refused = server.ask(Ask::get(&path)).await;
    let message = "conversion webhook for ex.com/v1, Kind=Host returned invalid object at index 0: invalid groupVersion \
                   (expected ex.com/v2, received ex.com/v3)";
    assert_eq!((refused.code, refused.body["message"].as_str()), (500, Some(message)));
    is_broken.store(true, Ordering::SeqCst);
    let message = "conversion webhook for ex.com/v1, Kind=Host failed: out of order";
    for ask in [
        Ask::get(&path),
        Ask::get(V2),
        Ask::merge(&path, json!({ "spec": { "port": "2" } })),
        Ask::delete(&path),
    ] {
        let heading = ask.heading();
        let refused = server.ask(ask).await;
        assert_eq!((refused.code, refused.body["message"].as_str()), (500, Some(message)), "{heading}");
    }
    let mut body = server.open(Ask::get(&format!("{V2}?watch=true"))).await.into_body();
    let frame = body.frame().await.expect("an event").expect("a frame");
    let event: Value = serde_json::from_slice(frame.data_ref().expect("data")).expect("an event");
    assert_eq!((&event["type"], &event["object"]["message"]), (&json!("ERROR"), &json!(message)));
    assert!(body.frame().await.is_none(), "the watch ends");
    server.ask(Ask::get(&format!("{V1}/a"))).await.expect(200);
}

#[tokio::test]
async fn objects_older_than_a_default_are_served_with_it() {
    let server = Server::new().await;
    let plain = |properties: Value| {
        let mut definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "hosts.ex.com" },
            "spec": {
                "group": "ex.com", "scope": "Namespaced", "names": { "plural": "hosts", "kind": "Host" },
                "versions": [],
            },
        });
        definition["spec"]["versions"] = json!([version("v1", true, properties)]);
        definition
    };
    server.define(plain(json!({ "a": { "type": "string" }, "b": { "type": "string" } }))).await;
    server.ask(Ask::post(V1, host("v1", "x", json!({ "a": "1", "b": "2" })))).await.expect(201);
    let younger = plain(json!({ "a": { "type": "string" }, "c": { "type": "string", "default": "new" } }));
    server.ask(Ask::merge(DEFINITION, younger)).await.expect(200);
    let expected = json!({ "a": "1", "c": "new" });
    assert_eq!(server.ask(Ask::get(&format!("{V1}/x"))).await.expect(200)["spec"], expected);
    assert_eq!(server.ask(Ask::get(V1)).await.expect(200)["items"][0]["spec"], expected);
    let mut body = server.open(Ask::get(&format!("{V1}?watch=true"))).await.into_body();
    let frame = body.frame().await.expect("an event").expect("a frame");
    let event: Value = serde_json::from_slice(frame.data_ref().expect("data")).expect("an event");
    assert_eq!(event["object"]["spec"], expected);
}

/// Selectors look at the version that was asked for, whatever is stored.
#[tokio::test]
async fn selectors_look_at_what_is_converted() {
    let (server, webhook) = (Server::new().await, converter().await);
    let mut definition = definition(&webhook, true);
    definition["spec"]["versions"][1]["selectableFields"] = json!([{ "jsonPath": ".spec.port" }]);
    server.define(definition).await;
    for (name, port) in [("a", "1"), ("b", "2"), ("c", "1")] {
        let spec = json!({ "hostPort": format!("h:{port}") });
        server.ask(Ask::post(V1, host("v1", name, spec))).await.expect(201);
    }
    let selected = format!("{V2}?fieldSelector=spec.port=1");
    let names = async |path: &str| {
        let list = server.ask(Ask::get(path)).await.expect(200);
        let items = list["items"].as_array().expect("items").iter();
        items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&selected).await, ["a", "c"]);
    assert_eq!(names(&format!("{selected},metadata.name=c")).await, ["c"]);
    assert_eq!(names(&format!("{selected},metadata.name=b")).await, Vec::<String>::new());
    let page = server.ask(Ask::get(&format!("{selected}&limit=1"))).await.expect(200);
    let token = page["metadata"]["continue"].as_str().expect("more");
    assert_eq!(names(&format!("{selected}&limit=1&continue={token}")).await, ["c"]);
    server.ask(Ask::get(&format!("{V1}?fieldSelector=spec.port=1"))).await.expect(400);

    let mut body = server.open(Ask::get(&format!("{selected}&watch=true"))).await.into_body();
    for port in ["2", "3", "1"] {
        let change = json!({ "spec": { "hostPort": format!("h:{port}") } });
        server.ask(Ask::merge(&format!("{V1}/a"), change)).await.expect(200);
    }
    server.ask(Ask::delete(&selected)).await.expect(200);
    let seen = events(&mut body, 6, ["/type", "/object/metadata/name", "/object/spec/port"]).await;
    let expected = [
        ["ADDED", "a", "1"],
        ["ADDED", "c", "1"],
        ["DELETED", "a", "1"],
        ["ADDED", "a", "1"],
        ["DELETED", "a", "1"],
        ["DELETED", "c", "1"],
    ];
    assert_eq!(seen, expected);
    assert_eq!(names(V2).await, ["b"], "what was not selected was not deleted");
}
