//! The object lifecycle: generation, status, finalizers, graceful deletion, and writes that change nothing.

use serde_json::{Value, json};

use crate::client::{Ask, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn map(name: &str, finalizers: &[&str]) -> Value {
    json!({ "metadata": { "name": name, "finalizers": finalizers }, "data": { "a": "1" } })
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "c", "image": "i" }], "terminationGracePeriodSeconds": 30 },
    })
}

fn deployment(name: &str) -> Value {
    let template = json!({
        "metadata": { "labels": { "app": name } }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    json!({
        "metadata": { "name": name },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": name } }, "template": template },
    })
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("a number")
}

#[tokio::test]
async fn finalizers_keep_an_object() {
    let server = Server::new().await;
    let path = format!("{MAPS}/kept");
    server.ask(Ask::post(MAPS, map("kept", &["a.io/x", "a.io/y"]))).await.expect(201);
    let marked = server.ask(Ask::delete(&path)).await.expect(200);
    assert_eq!(marked["kind"], "ConfigMap", "what is kept is shown");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = server.ask(Ask::delete(&path)).await.expect(200);
    assert_eq!(version(&again), version(&marked), "a second delete changes nothing");
    let more = json!({ "metadata": { "finalizers": ["a.io/x", "a.io/y", "a.io/z"] } });
    let refused = server.ask(Ask::merge(&path, more)).await;
    assert_eq!(refused.code, 422, "no new finalizers on what is being deleted");
    assert!(refused.refusal().2.contains("no new finalizers can be added"), "{}", refused.text);
    let undo = json!({ "metadata": { "deletionTimestamp": null } });
    let kept = server.ask(Ask::merge(&path, undo)).await.expect(200);
    assert!(kept["metadata"]["deletionTimestamp"].is_string(), "a deletion cannot be undone");
    server.ask(Ask::merge(&path, json!({ "metadata": { "finalizers": ["a.io/y"] } }))).await.expect(200);
    let last = server.ask(Ask::merge(&path, json!({ "metadata": { "finalizers": null } }))).await.expect(200);
    assert!(last["metadata"].get("finalizers").is_none());
    assert_eq!(server.ask(Ask::get(&path)).await.code, 404, "the last finalizer lets it go");
    let gone = server.ask(Ask::delete(&path)).await;
    assert_eq!(gone.refusal(), (404, "NotFound", "configmaps \"kept\" not found"));
}

#[tokio::test]
async fn a_plain_delete_answers_with_a_status() {
    let server = Server::new().await;
    let made = server.ask(Ask::post(MAPS, map("plain", &[]))).await.expect(201);
    let status = server.ask(Ask::delete(&format!("{MAPS}/plain"))).await.expect(200);
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    let details = json!({ "name": "plain", "kind": "configmaps", "uid": made["metadata"]["uid"] });
    assert_eq!(status["details"], details);
    let next = server.ask(Ask::post(MAPS, map("plain", &[]))).await.expect(201);
    assert_ne!(next["metadata"]["uid"], made["metadata"]["uid"], "a namesake is another object");
    assert!(version(&next) > version(&made));
}

#[tokio::test]
async fn pods_end_gracefully() {
    let server = Server::new().await;
    // The pod is not scheduled to a node: it is deleted at once.
    server.ask(Ask::post(PODS, pod("idle"))).await.expect(201);
    server.ask(Ask::delete(&format!("{PODS}/idle"))).await.expect(200);
    assert_eq!(server.ask(Ask::get(&format!("{PODS}/idle"))).await.code, 404);
    // A node runs it: it gets its time, which only gets shorter, and goes with a period of 0.
    server.ask(Ask::post(PODS, pod("busy"))).await.expect(201);
    let binding = json!({ "target": { "kind": "Node", "name": "n" }, "metadata": { "name": "busy" } });
    server.ask(Ask::post(&format!("{PODS}/busy/binding"), binding)).await.expect(201);
    let path = format!("{PODS}/busy");
    let marked = server.ask(Ask::delete(&path)).await.expect(200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["generation"], 2, "the beginning of the end is a change");
    let shorter = server.ask(Ask::delete(&format!("{path}?gracePeriodSeconds=5"))).await.expect(200);
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    let longer = server.ask(Ask::delete(&format!("{path}?gracePeriodSeconds=60"))).await.expect(200);
    assert_eq!(longer["metadata"]["deletionGracePeriodSeconds"], 5);
    server.ask(Ask::delete(&format!("{path}?gracePeriodSeconds=0"))).await.expect(200);
    assert_eq!(server.ask(Ask::get(&path)).await.code, 404);
    // What has finished needs no time.
    server.ask(Ask::post(PODS, pod("done"))).await.expect(201);
    let binding = json!({ "target": { "kind": "Node", "name": "n" }, "metadata": { "name": "done" } });
    server.ask(Ask::post(&format!("{PODS}/done/binding"), binding)).await.expect(201);
    let phase = json!({ "status": { "phase": "Succeeded" } });
    server.ask(Ask::merge(&format!("{PODS}/done/status"), phase)).await.expect(200);
    server.ask(Ask::delete(&format!("{PODS}/done"))).await.expect(200);
    assert_eq!(server.ask(Ask::get(&format!("{PODS}/done"))).await.code, 404);
}

#[tokio::test]
async fn generation_counts_what_users_want() {
    let server = Server::new().await;
    let path = format!("{DEPLOYMENTS}/g");
    let made = server.ask(Ask::post(DEPLOYMENTS, deployment("g"))).await.expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    let generation = async |ask: Ask| server.ask(ask).await.expect(200)["metadata"]["generation"].clone();
    assert_eq!(generation(Ask::merge(&path, json!({ "metadata": { "labels": { "a": "b" } } }))).await, 1);
    assert_eq!(generation(Ask::merge(&path, json!({ "spec": { "replicas": 3 } }))).await, 2);
    assert_eq!(generation(Ask::merge(&path, json!({ "spec": { "replicas": 3 } }))).await, 2);
    assert_eq!(generation(Ask::merge(&path, json!({ "metadata": { "generation": 9 } }))).await, 2);
    let status = json!({ "status": { "replicas": 3 }, "spec": { "replicas": 9 } });
    assert_eq!(generation(Ask::merge(&format!("{path}/status"), status)).await, 2);
    let keep = json!({ "metadata": { "finalizers": ["a.io/x"] } });
    assert_eq!(generation(Ask::merge(&path, keep)).await, 2);
    assert_eq!(generation(Ask::delete(&path)).await, 3, "deletion is a wish too");
    let map = server.ask(Ask::post(MAPS, map("none", &[]))).await.expect(201);
    assert!(map["metadata"].get("generation").is_none(), "not every kind counts");
}

#[tokio::test]
async fn status_and_spec_keep_to_themselves() {
    let server = Server::new().await;
    let mut wanted = deployment("s");
    wanted["status"] = json!({ "replicas": 7 });
    let made = server.ask(Ask::post(DEPLOYMENTS, wanted)).await.expect(201);
    assert!(made["status"].get("replicas").is_none(), "status is ignored on create");
    let path = format!("{DEPLOYMENTS}/s");
    let mut both = made.clone();
    both["spec"]["replicas"] = 5.into();
    both["status"] = json!({ "replicas": 5, "observedGeneration": 1 });
    let after = server.ask(Ask::put(&format!("{path}/status"), both.clone())).await.expect(200);
    assert_eq!((&after["spec"]["replicas"], &after["status"]["replicas"]), (&json!(1), &json!(5)));
    both["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"].clone();
    both["status"] = json!({ "replicas": 9 });
    let after = server.ask(Ask::put(&path, both)).await.expect(200);
    assert_eq!((&after["spec"]["replicas"], &after["status"]["replicas"]), (&json!(5), &json!(5)));
}

#[tokio::test]
async fn scale_is_a_view() {
    let server = Server::new().await;
    server.ask(Ask::post(DEPLOYMENTS, deployment("v"))).await.expect(201);
    let path = format!("{DEPLOYMENTS}/v");
    let scale = server.ask(Ask::get(&format!("{path}/scale"))).await.expect(200);
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    let mut wanted = scale.clone();
    wanted["spec"]["replicas"] = 4.into();
    let after = server.ask(Ask::put(&format!("{path}/scale"), wanted.clone())).await.expect(200);
    assert_eq!(after["spec"]["replicas"], 4);
    let stale = server.ask(Ask::put(&format!("{path}/scale"), wanted.clone())).await;
    assert_eq!((stale.code, stale.refusal().1), (409, "Conflict"), "its resourceVersion is the object's");
    let merged = server.ask(Ask::merge(&format!("{path}/scale"), json!({ "spec": { "replicas": 2 } }))).await;
    assert_eq!(merged.expect(200)["spec"]["replicas"], 2);
    let object = server.ask(Ask::get(&path)).await.expect(200);
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(2), &json!(3)));
    let negative =
        server.ask(Ask::merge(&format!("{path}/scale"), json!({ "spec": { "replicas": -1 } }))).await;
    assert_eq!((negative.code, negative.refusal().1), (422, "Invalid"), "{}", negative.text);
}

#[tokio::test]
async fn a_no_op_update_writes_nothing() {
    let server = Server::new().await;
    server.ask(Ask::post(MAPS, map("same", &[]))).await.expect(201);
    let path = format!("{MAPS}/same");
    let revision = server.store().revision();
    let current = server.ask(Ask::get(&path)).await.expect(200);
    for ask in [
        Ask::put(&path, current.clone()),
        Ask::merge(&path, json!({})),
        Ask::merge(&path, json!({ "data": { "a": "1" } })),
        Ask::patch("json", &path, json!([])),
        Ask::patch("strategic-merge", &path, json!({ "data": { "a": "1" } })),
    ] {
        assert_eq!(server.ask(ask).await.expect(200), current);
    }
    assert_eq!(server.store().revision(), revision);
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let server = Server::new().await;
    let before = server.ask(Ask::post(MAPS, map("dry", &["a.io/x"]))).await.expect(201);
    let path = format!("{MAPS}/dry");
    let revision = server.store().revision();
    let made = server.ask(Ask::post(&format!("{MAPS}?dryRun=All"), map("wet", &[]))).await.expect(201);
    assert!(made["metadata"]["uid"].is_string() && made["metadata"]["creationTimestamp"].is_string());
    let change = json!({ "data": { "a": "2" } });
    let changed = server.ask(Ask::merge(&format!("{path}?dryRun=All"), change)).await.expect(200);
    assert_eq!(changed["data"]["a"], "2");
    let mut put = before.clone();
    put["data"]["b"] = "3".into();
    assert_eq!(server.ask(Ask::put(&format!("{path}?dryRun=All"), put)).await.expect(200)["data"]["b"], "3");
    let marked = server.ask(Ask::delete(&format!("{path}?dryRun=All"))).await.expect(200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    server.ask(Ask::delete(&format!("{MAPS}?dryRun=All"))).await.expect(200);
    let apply = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "9" } });
    let apply = Ask::patch("apply", &format!("{MAPS}/new?dryRun=All&fieldManager=t"), apply);
    assert_eq!(server.ask(apply).await.expect(201)["data"]["a"], "9");
    assert_eq!(server.store().revision(), revision);
    assert_eq!(server.ask(Ask::get(&path)).await.expect(200), before);
}

#[tokio::test]
async fn immutable_maps_stay() {
    let server = Server::new().await;
    let mut fixed = map("fixed", &[]);
    fixed["immutable"] = true.into();
    server.ask(Ask::post(MAPS, fixed)).await.expect(201);
    let path = format!("{MAPS}/fixed");
    let refused = server.ask(Ask::merge(&path, json!({ "data": { "a": "2" } }))).await;
    assert_eq!((refused.code, refused.refusal().1), (422, "Invalid"), "{}", refused.text);
    server.ask(Ask::merge(&path, json!({ "metadata": { "labels": { "a": "b" } } }))).await.expect(200);
}
