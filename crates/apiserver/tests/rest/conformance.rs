//! Expectations of Kubernetes' conformance tests for API machinery that no other test here covers:
//! docs/conformance.md has the list.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::client::{Answer, Ask, DEFINITIONS, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
}

/// A list whose revision was compacted away goes on where it was, with what is there now.
#[tokio::test]
async fn a_list_that_took_too_long_can_go_on() {
    let server = Server::new().await;
    for number in 0..10 {
        let map = json!({ "metadata": { "name": format!("t-{number}") } });
        server.ask(Ask::post(MAPS, map)).await.expect(201);
    }
    let page = |token: &str| Ask::get(&format!("{MAPS}?limit=4&continue={token}"));
    let first = server.ask(page("")).await.expect(200);
    let token = first["metadata"]["continue"].as_str().expect("there is more");
    server.ask(Ask::post(MAPS, json!({ "metadata": { "name": "t-3a" } }))).await.expect(201);
    server.store().compact(server.store().revision()).await.expect("it can be compacted");
    let refused = server.ask(page(token)).await;
    assert_eq!((refused.code, &refused.body["reason"]), (410, &json!("Expired")));
    let token = refused.body["metadata"]["continue"].as_str().expect("a way to go on");
    let second = server.ask(page(token)).await.expect(200);
    assert_eq!(names(&second), ["t-3a", "t-4", "t-5", "t-6"]);
    assert_eq!(second["metadata"]["remainingItemCount"], 3);
    assert_ne!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let last = server.ask(page(second["metadata"]["continue"].as_str().expect("more"))).await.expect(200);
    assert_eq!((names(&last), last["metadata"].get("continue")), (vec!["t-7", "t-8", "t-9"], None));
    assert_eq!(last["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
    let old = first["metadata"]["resourceVersion"].as_str().expect("a revision");
    let exact = format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    let refused = server.ask(Ask::get(&exact)).await;
    let message = "The resourceVersion for the provided list is too old.";
    assert_eq!(refused.refusal(), (410, "Expired", message));
}

#[tokio::test]
async fn a_review_is_no_table() {
    let server = Server::new().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({ "spec": { "nonResourceAttributes": { "path": "/", "verb": "get" } } });
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let ask = |accept: &str| Ask::post(path, review.clone()).header("accept", accept);
    let refused = server.ask(ask(table)).await;
    assert_eq!((refused.code, refused.refusal().1), (406, "NotAcceptable"));
    // kubectl says what else it takes.
    server.ask(ask(&format!("{table},application/json"))).await.expect(201);
}

fn definition(name: &str, labels: Value) -> Value {
    let kind = name[..1].to_uppercase() + &name[1..];
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{name}s.ex.com"), "labels": labels },
        "spec": {
            "group": "ex.com", "scope": "Cluster", "names": { "plural": format!("{name}s"), "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": { "type": "object" } },
            } } }],
        },
    })
}

/// `kubectl explain` finds out from the documents what every object has.
#[tokio::test]
async fn the_fields_of_every_object_are_explained() {
    let server = Server::new().await;
    server.define(definition("thing", Value::Null)).await;
    let document = server.ask(Ask::get("/openapi/v3/apis/ex.com/v1")).await.expect(200);
    let schemas = &document["components"]["schemas"];
    let says = |value: &Value, words: &str| {
        assert!(value["description"].as_str().is_some_and(|text| text.starts_with(words)), "{value}");
    };
    let thing = &schemas["com.ex.v1.Thing"]["properties"];
    says(&thing["apiVersion"], "APIVersion defines");
    says(&thing["metadata"], "Standard object's metadata");
    let metadata = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"];
    says(&metadata["creationTimestamp"], "CreationTimestamp is a timestamp");
}

/// Definitions are listed and deleted by label, and only those.
#[tokio::test]
async fn definitions_go_by_their_labels() {
    let server = Server::with_controllers().await;
    for name in ["one", "two", "three"] {
        server.define(definition(name, json!({ "of": "ours" }))).await;
    }
    server.define(definition("other", Value::Null)).await;
    let selected = format!("{DEFINITIONS}?labelSelector=of%3Dours");
    let list = server.ask(Ask::get(&selected)).await.expect(200);
    assert_eq!(names(&list), ["ones.ex.com", "threes.ex.com", "twos.ex.com"]);
    server.ask(Ask::delete(&selected)).await.expect(200);
    server.until(&selected, |answer| names(&answer.body).is_empty()).await;
    let list = server.ask(Ask::get(DEFINITIONS)).await.expect(200);
    assert_eq!(names(&list), ["others.ex.com"]);
    server.ask(Ask::get("/apis/ex.com/v1/others")).await.expect(200);
}

/// The status of a definition can be written by others too, and what they write is seen.
#[tokio::test]
async fn the_status_of_a_definition_is_a_part_of_its_own() {
    let server = Server::new().await;
    server.define(definition("thing", Value::Null)).await;
    let path = format!("{DEFINITIONS}/things.ex.com/status");
    let mut seen = server.ask(Ask::get(&path)).await.expect(200);
    assert_eq!(seen["spec"]["names"]["kind"], "Thing");
    let conditions = seen["status"]["conditions"].as_array_mut().expect("conditions");
    conditions.push(json!({ "type": "", "status": "", "message": "updated" }));
    let updated = server.ask(Ask::put(&path, seen)).await.expect(200);
    let messages = |object: &Value| -> BTreeSet<String> {
        let conditions = object["status"]["conditions"].as_array().expect("conditions");
        conditions.iter().filter_map(|one| Some(one["message"].as_str()?.to_owned())).collect()
    };
    assert!(messages(&updated).contains("updated"), "{updated}");
    let patch = json!([{ "op": "add", "path": "/status/conditions", "value": [{ "message": "patched" }] }]);
    let patched = server.ask(Ask::patch("json", &path, patch)).await.expect(200);
    assert!(messages(&patched).contains("patched"), "{patched}");
}

/// YAML that says a thing twice is refused, commented on or taken, as the client wishes; what it says last counts.
#[tokio::test]
async fn keys_that_come_twice_in_yaml() {
    let server = Server::new().await;
    let yaml = "\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: one\n  a: two\n";
    let line = "line 8: key \"a\" already set in map";
    let warning = format!("299 - {line:?}");
    let apply = |validation: &str| {
        let path = format!("{MAPS}/m?fieldManager=t&fieldValidation={validation}");
        Ask::patch("apply", &path, yaml)
    };
    let refused = server.ask(apply("Strict")).await;
    let message = format!(
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {line}"
    );
    assert_eq!(refused.refusal(), (400, "BadRequest", message.as_str()));
    let warned = server.ask(apply("Warn")).await;
    assert_eq!((warned.code, &warned.warnings[..]), (201, &[warning.clone()][..]));
    assert_eq!(warned.body["data"]["a"], "two");
    assert_eq!(server.ask(apply("Ignore")).await.warnings, Vec::<String>::new());
    let post = |validation: &str| {
        let path = format!("{MAPS}?fieldValidation={validation}");
        Ask::post(&path, yaml.replace("name: m", "name: other")).content_type("application/yaml")
    };
    let refused = server.ask(post("Strict")).await;
    assert!(refused.refusal().2.contains(line), "{refused:?}");
    assert_eq!(server.ask(post("Warn")).await.warnings, [warning]);
    let json =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"one","a":"two"}}"#;
    let double = Ask::patch("apply", &format!("{MAPS}/m?fieldManager=t&fieldValidation=Strict"), json);
    assert!(server.ask(double).await.refusal().2.contains("line 1: key \"a\" already set in map"));
}

/// Pods may need what else is in their namespace to end well: as long as there is one, nothing else goes.
#[tokio::test]
async fn a_namespace_loses_its_pods_first() {
    let server = Server::with_controllers().await;
    server.namespace("doomed").await;
    let inside = "/api/v1/namespaces/doomed";
    let containers = json!([{ "name": "c", "image": "i" }]);
    let pod = json!({ "metadata": { "name": "p", "finalizers": ["a.io/hold"] }, "spec": { "containers": containers } });
    server.ask(Ask::post(&format!("{inside}/pods"), pod)).await.expect(201);
    let maps = format!("{inside}/configmaps");
    server.ask(Ask::post(&maps, json!({ "metadata": { "name": "m" } }))).await.expect(201);
    server.ask(Ask::delete(inside)).await.expect(200);
    let has_conditions =
        |answer: &Answer| answer.body["status"]["conditions"].as_array().is_some_and(|all| all.len() == 5);
    let namespace = server.until(inside, has_conditions).await;
    let said = |kind: &str| {
        let conditions = namespace["status"]["conditions"].as_array().expect("conditions");
        let one = conditions.iter().find(|one| one["type"] == kind).expect("the condition");
        format!("{} {}", one["status"].as_str().expect("a word"), one["message"].as_str().expect("a text"))
    };
    assert_eq!(
        said("NamespaceContentRemaining"),
        "True Some resources are remaining: pods. has 1 resource instances"
    );
    let finalizers =
        "True Some content in the namespace has finalizers remaining: a.io/hold in 1 resource instances";
    assert_eq!(said("NamespaceFinalizersRemaining"), finalizers);
    let fine = "False All content successfully deleted, may be waiting on finalization";
    assert_eq!(said("NamespaceDeletionContentFailure"), fine);
    server.ask(Ask::get(&format!("{maps}/m"))).await.expect(200);
    let pod = server.ask(Ask::get(&format!("{inside}/pods/p"))).await.expect(200);
    assert!(pod["metadata"]["deletionTimestamp"].is_string(), "{pod}");
    let free = json!({ "metadata": { "finalizers": null } });
    server.ask(Ask::merge(&format!("{inside}/pods/p"), free)).await.expect(200);
    server.until_gone(inside).await;
}

/// Validation errors of a built-in object are reported in document order.
#[tokio::test]
async fn unknown_and_repeated_fields_are_told_as_they_come() {
    let server = Server::new().await;
    let maps = format!("{MAPS}?fieldValidation=Strict");
    let check = async |body: &'static str, expected: &str| {
        let refused = server.ask(Ask::post(&maps, body)).await;
        let (code, _, message) = refused.refusal();
        assert!(code == 400 && message.ends_with(expected), "{message}");
    };
    let body = r#"{"metadata":{"name":"m"},"x":1,"immutable":true,"immutable":false}"#;
    check(body, "strict decoding error: unknown field \"x\", duplicate field \"immutable\"").await;
    let body = r#"{"metadata":{"name":"m"},"immutable":true,"immutable":false,"x":1}"#;
    check(body, "strict decoding error: duplicate field \"immutable\", unknown field \"x\"").await;
}

/// Three that own each other in a circle do not wait for each other for ever.
#[tokio::test]
async fn a_cycle_of_owners_is_collected() {
    let server = Server::with_controllers().await;
    let mut uids = Vec::new();
    for name in ["one", "two", "three"] {
        let made = server.ask(Ask::post(MAPS, json!({ "metadata": { "name": name } }))).await.expect(201);
        uids.push(made["metadata"]["uid"].clone());
    }
    for (name, owner, uid) in
        [("one", "three", &uids[2]), ("two", "one", &uids[0]), ("three", "two", &uids[1])]
    {
        let reference = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "controller": true, "blockOwnerDeletion": true });
        let patch = json!({ "metadata": { "ownerReferences": [reference] } });
        server.ask(Ask::merge(&format!("{MAPS}/{name}"), patch)).await.expect(200);
    }
    let path = format!("{MAPS}/one?propagationPolicy=Foreground");
    server.ask(Ask::delete(&path)).await.expect(200);
    for name in ["one", "two", "three"] {
        server.until_gone(&format!("{MAPS}/{name}")).await;
    }
}
