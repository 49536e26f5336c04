//! CRDs are added and removed. When a kind is really gone, everything that came from it is deleted; when discovery
//! merely misses it, nothing is.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use crate::stack::{CONFIG, Place, Stack, condition, config_map, policy};

pub const MINI: &str = "/apis/example.com/v1/namespaces/default/cars/mini";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cars.example.com";

fn definition() -> Value {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "cars.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "cars", "singular": "car", "kind": "Car", "listKind": "CarList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

pub async fn define(place: &Place) {
    let definitions = crate::stack::collection(&definition());
    place.rest.create(&definitions, &definition()).await.expect("the server answers");
    place.until("served", DEFINITION, |one| condition(one, "Established") == "True").await;
}

/// A car that has reached its member.
async fn driving() -> Stack {
    let stack = Stack::new(&["member1"]).await;
    define(&stack.control).await;
    define(stack.member("member1")).await;
    let selectors = json!({ "resourceSelectors": [{ "apiVersion": "example.com/v1", "kind": "Car" }] });
    stack.create(policy("pp", ("Car", ""), &["member1"], selectors)).await;
    stack
        .create(json!({
            "apiVersion": "example.com/v1", "kind": "Car",
            "metadata": { "namespace": "default", "name": "mini" },
        }))
        .await;
    stack.until_in(MINI, &["member1"]).await;
    stack.settle().await;
    stack
}

async fn until_nothing_is_left(stack: &Stack) {
    until_nothing_of_the_car_is_left(stack).await;
    let works = stack.get("/apis/work.karmada.io/v1alpha1/works").await;
    assert!(!works.to_string().contains("mini"), "{works:#}");
    assert!(stack.ctx.cache.served().get("example.com/v1", "Car").is_none());
    let snapshot = stack.ctx.cache.snapshot();
    assert!(!snapshot.templates.iter().any(|template| template.key.kind == "Car"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_goes_takes_everything_along() {
    let mut stack = driving().await;
    stack.delete(DEFINITION).await;
    until_nothing_is_left(&stack).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_deleted_while_controllers_were_down_takes_everything_along() {
    let mut stack = driving().await;
    stack.stop().await;
    // The garbage collector does not check the owner, as if it had missed the deletion.
    let orphan = json!({ "metadata": { "ownerReferences": null } });
    let binding = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/mini-car";
    stack.merge(binding, orphan).await;
    stack.delete(DEFINITION).await;
    stack.control.until_gone(DEFINITION).await;
    stack.restart().await;
    until_nothing_is_left(&stack).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_discovery_does_not_report_takes_nothing_along() {
    let mut stack = driving().await;
    let apis = json!({ "metadata": { "annotations": { "poke": "1" } } });
    for (request, status) in [
        ("GET /apis$", StatusCode::SERVICE_UNAVAILABLE),
        ("GET /apis/example.com/v1$", StatusCode::SERVICE_UNAVAILABLE),
        ("GET /apis/example.com/v1$", StatusCode::NOT_FOUND),
    ] {
        for restart in [false, true] {
            let writes = stack.member("member1").gate.writes().len();
            stack.control.gate.refuse(request, status);
            stack.merge(DEFINITION, apis.clone()).await;
            if restart {
                stack.restart().await;
            }
            tokio::time::sleep(Duration::from_secs(90)).await;
            let binding = stack.binding("mini-car").await;
            assert!(binding["metadata"]["deletionTimestamp"].is_null() && binding.is_object(), "{request}");
            assert_eq!(stack.members_with(MINI).await, ["member1"], "{request}");
            assert_eq!(stack.member("member1").gate.writes().len(), writes, "{request}");
            stack.control.gate.open();
            stack
                .until("heard of again", async |stack| {
                    let snapshot = stack.ctx.cache.snapshot();
                    snapshot.templates.iter().any(|template| template.key.kind == "Car")
                })
                .await;
        }
    }
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_kind_is_followed_at_once() {
    let mut stack = Stack::new(&["member1"]).await;
    define(&stack.control).await;
    let start = tokio::time::Instant::now();
    stack.until("known", async |stack| stack.ctx.cache.served().get("example.com/v1", "Car").is_some()).await;
    assert!(start.elapsed() < Duration::from_secs(1));
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_member_with_incomplete_discovery_says_so() {
    let mut stack = driving().await;
    let complete = |cluster: &Value| cluster["status"]["conditions"].to_string().contains("\"Complete\"");
    let partial = |cluster: &Value| cluster["status"]["conditions"].to_string().contains("\"Partial\"");
    let path = crate::stack::cluster_path("member1");
    let has_car = |cluster: &Value| cluster["status"]["apiEnablements"].to_string().contains("\"Car\"");
    stack.control.until("complete", &path, |one| complete(one) && has_car(one)).await;
    stack.member("member1").gate.refuse("GET /apis/example.com/v1$", StatusCode::SERVICE_UNAVAILABLE);
    let cluster = stack.control.until("partial", &path, partial).await;
    assert!(has_car(&cluster), "what was not told stays as it was known");
    stack.member("member1").gate.open();
    stack.control.until("complete", &path, complete).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_stops_no_other() {
    let mut stack = driving().await;
    let refused = "GET /apis/example.com/v1/cars";
    stack.control.gate.refuse(refused, StatusCode::INTERNAL_SERVER_ERROR);
    stack.restart().await;
    stack.create(policy("other", ("ConfigMap", "conf"), &["member1"], json!({}))).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &["member1"]).await;
    // Nothing is known of the cars, so they stay where they are.
    stack.settle().await;
    assert!(!stack.binding("mini-car").await.is_null());
    stack.until_in(MINI, &["member1"]).await;
    stack.control.gate.open();
    stack.delete(MINI).await;
    until_nothing_of_the_car_is_left(&stack).await;
    stack.stop().await;
}

async fn until_nothing_of_the_car_is_left(stack: &Stack) {
    stack.until_in(MINI, &[]).await;
    stack.until("the binding is gone", async |stack| stack.binding("mini-car").await.is_null()).await;
}

/// Credentials of members for instance, whatever the namespace they are in.
#[tokio::test(start_paused = true)]
async fn what_is_marked_as_the_systems_own_goes_nowhere() {
    let mut stack = Stack::new(&["member1"]).await;
    let all = json!({ "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap" }] });
    stack.create(policy("pp", ("ConfigMap", ""), &["member1"], all)).await;
    let mut own = config_map("default", "own");
    own["metadata"]["labels"] = json!({ "karmada.io/system": "true" });
    let own = stack.create(own).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &["member1"]).await;
    stack.settle().await;
    stack.until_in(&own, &[]).await;
    assert!(stack.binding("own-configmap").await.is_null());
    // What is marked later is followed no more.
    stack.merge(CONFIG, json!({ "metadata": { "labels": { "karmada.io/system": "true" } } })).await;
    stack.settle().await;
    stack.merge(CONFIG, json!({ "data": { "key": "later" } })).await;
    stack.settle().await;
    let copy = stack.member("member1").get(CONFIG).await.unwrap_or_default();
    assert_ne!(copy["data"]["key"], "later");
    stack.stop().await;
}
