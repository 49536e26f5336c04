//! Races: namesakes, half-made Works, caches that lag behind. Nothing is lost, nothing is left over, and nothing is
//! done to the wrong object.

use std::time::Duration;

use api::{Binding, PropagationPolicy};
use controllers::ctx::{Ctx, Members};
use controllers::gates::FeatureGates;
use controllers::rest::Collection;
use controllers::{binding, cache, policies};
use decide::PolicyKey;
use http::StatusCode;
use serde_json::{Value, json};

use crate::stack::{
    BINDING, CONFIG, NGINX, POLICY, Stack, at, cluster_path, config_map, impatient, namespace, nginx, policy,
    work_path,
};

const BOTH: [&str; 2] = ["member1", "member2"];

/// A context of its own whose cache holds only what the test puts into it.
fn blind(stack: &Stack) -> Ctx {
    Ctx::new(stack.control.rest.clone(), Members::default(), FeatureGates::default(), stack.clock.clone())
}

async fn applied() -> Stack {
    let stack = Stack::with_nginx(&BOTH, json!({})).await;
    for member in BOTH {
        stack.until_work(member, "Applied", "True").await;
    }
    stack.settle().await;
    stack
}

#[tokio::test(start_paused = true)]
async fn a_work_that_the_view_does_not_know_yet_goes_with_its_binding() {
    let mut stack = applied().await;
    stack.stop().await;
    stack.delete(BINDING).await;
    let ctx = blind(&stack);
    let deleting: Binding = serde_json::from_value(stack.get(BINDING).await).unwrap();
    let key = cache::binding_key(&deleting.metadata);
    ctx.cache.put_binding(key.clone(), deleting);
    binding::reconcile(&ctx, &key).await.unwrap();
    for member in BOTH {
        let work = stack.get(&work_path(member)).await;
        assert!(work["metadata"]["deletionTimestamp"].is_string(), "{work:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_work_whose_binding_is_gone_is_found_and_goes() {
    let mut stack = applied().await;
    let mut left = stack.get(&work_path("member1")).await;
    left["metadata"] = json!({
        "namespace": "karmada-es-member1", "name": "left", "finalizers": left["metadata"]["finalizers"],
        "labels": { "resourcebinding.karmada.io/permanent-id": "gone" },
        "annotations": {
            "resourcebinding.karmada.io/namespace": "default", "resourcebinding.karmada.io/name": "gone-configmap",
        },
    });
    left["spec"]["workload"]["manifests"] = json!([config_map("default", "conf")]);
    let path = stack.create(left).await;
    stack.control.until_gone(&path).await;
    assert_eq!(stack.members_with(NGINX).await, BOTH);
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_was_torn_away_takes_over_what_its_namesake_left() {
    let mut stack = applied().await;
    let uid = stack.member("member1").get(NGINX).await.unwrap()["metadata"]["uid"].clone();
    let id =
        |binding: &Value| binding["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"].clone();
    let before = id(&stack.get(BINDING).await);
    stack.stop().await;
    // The member2 Work must be deleted in the end, since the namesake is placed elsewhere.
    stack.merge(BINDING, json!({ "metadata": { "finalizers": null } })).await;
    stack.delete(BINDING).await;
    stack.control.until_gone(BINDING).await;
    stack.edit_policy(json!({ "placement": { "clusterAffinity": { "clusterNames": ["member1"] } } })).await;
    stack.restart().await;
    stack.until_in(NGINX, &["member1"]).await;
    stack.settle().await;
    let after = id(&stack.get(BINDING).await);
    assert!(after.is_string() && after != before);
    let work = stack.get(&work_path("member1")).await;
    assert_eq!(id(&work), after);
    assert!(stack.get(&work_path("member2")).await.is_null());
    let object = stack.member("member1").get(NGINX).await.unwrap();
    assert_eq!(object["metadata"]["uid"], uid, "what runs goes on running");
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_work_that_is_going_is_not_written_and_comes_back_current() {
    let mut stack = Stack::nginx_with(impatient(), &["member1"], json!({})).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.settle().await;
    stack.member("member1").gate.shut();
    stack.delete(&work_path("member1")).await;
    stack.merge(NGINX, json!({ "spec": { "replicas": 7 } })).await;
    stack.settle().await;
    let work = stack.get(&work_path("member1")).await;
    assert_eq!(work["spec"]["workload"]["manifests"][0]["spec"]["replicas"], 2, "{work:#}");
    stack.member("member1").gate.open();
    stack.member("member1").until("current", NGINX, |object| object["spec"]["replicas"] == 7).await;
    stack.until_work("member1", "Applied", "True").await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_cluster_that_cannot_be_written_for_does_not_hold_up_the_others() {
    let mut stack = applied().await;
    stack.control.gate.refuse(&format!("PUT {}", work_path("member1")), StatusCode::INTERNAL_SERVER_ERROR);
    stack.merge(NGINX, json!({ "spec": { "replicas": 7 } })).await;
    stack.member("member2").until("current", NGINX, |object| object["spec"]["replicas"] == 7).await;
    stack.control.gate.open();
    stack.member("member1").until("current", NGINX, |object| object["spec"]["replicas"] == 7).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_policys_namesake_keeps_its_finalizer() {
    let mut stack = Stack::new(&[]).await;
    stack.stop().await;
    stack.create(policy("pp", ("ConfigMap", "conf"), &[], json!({}))).await;
    let ctx = blind(&stack);
    let mut old = stack.get(POLICY).await;
    assert_eq!(old["metadata"]["finalizers"], json!(["karmada.io/propagation-policy-controller"]));
    old["metadata"]["uid"] = json!("older");
    old["metadata"]["deletionTimestamp"] = json!("2027-01-01T00:00:00Z");
    ctx.cache.put(old);
    let key = PolicyKey { namespace: "default".to_owned(), name: "pp".to_owned() };
    policies::reconcile(&ctx, &key).await.unwrap();
    let found: PropagationPolicy = serde_json::from_value(stack.get(POLICY).await).unwrap();
    assert_eq!(found.metadata.finalizers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_deleted_and_made_again_at_once_is_there_in_the_end() {
    let mut stack = Stack::with(&["member1"], impatient(), FeatureGates::default()).await;
    const TEAM: &str = "/api/v1/namespaces/team";
    stack.create(namespace("team", json!({ "owner": "me" }))).await;
    stack.until_in(TEAM, &["member1"]).await;
    stack.settle().await;
    stack.member("member1").gate.shut();
    stack.delete(TEAM).await;
    stack.control.until_gone(TEAM).await;
    stack.create(namespace("team", json!({ "owner": "you" }))).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    stack.member("member1").gate.open();
    stack.member("member1").until("new", TEAM, |one| one["metadata"]["labels"]["owner"] == "you").await;
    stack.settle().await;
    let uid = stack.get(TEAM).await["metadata"]["uid"].clone();
    let work = Collection::of(&api::kinds::WORK, "karmada-es-member1").object(&api::names::work_name(
        "Namespace",
        "team",
        "",
    ));
    let owners = stack.get(&work.to_string()).await["metadata"]["ownerReferences"].clone();
    assert_eq!(owners[0]["uid"], uid);
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_override_follows_the_labels_of_a_cluster_without_a_restart() {
    let mut stack = Stack::new(&BOTH).await;
    let rule = json!({
        "targetCluster": { "labelSelector": { "matchLabels": { "tier": "gold" } } },
        "overriders": { "labelsOverrider": [{ "operator": "add", "value": { "tier": "gold" } }] },
    });
    stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": { "namespace": "default", "name": "op" },
            "spec": { "overrideRules": [rule] },
        }))
        .await;
    stack.create(policy("pp", ("ConfigMap", "conf"), &BOTH, json!({}))).await;
    stack.create(config_map("default", "conf")).await;
    stack.until_in(CONFIG, &BOTH).await;
    stack.merge(&cluster_path("member2"), json!({ "metadata": { "labels": { "tier": "gold" } } })).await;
    let gold = |object: &Value| object["metadata"]["labels"]["tier"] == "gold";
    stack.member("member2").until("gold", CONFIG, gold).await;
    assert!(!gold(&stack.member("member1").get(CONFIG).await.unwrap()));
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn evictions_take_turns() {
    let mut stack = Stack::new(&BOTH).await;
    let all = json!({ "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap" }] });
    stack.create(policy("pp", ("ConfigMap", ""), &BOTH, all)).await;
    for number in 0..5 {
        stack.create(config_map("default", &format!("conf{number}"))).await;
    }
    stack.settle().await;
    let taint = json!({ "spec": { "taints": [{ "key": "gone", "effect": "NoExecute" }] } });
    stack.merge(&cluster_path("member1"), taint).await;
    let evicted = async || {
        let bindings = stack.get("/apis/work.karmada.io/v1alpha2/resourcebindings").await;
        let left = |one: &&Value| one["spec"]["clusters"] == json!([{ "name": "member2" }]);
        bindings["items"].as_array().unwrap().iter().filter(left).count()
    };
    for expected in 1..=5 {
        tokio::time::sleep(Duration::from_secs(if expected == 1 { 1 } else { 2 })).await;
        assert_eq!(evicted().await, expected);
    }
    stack.stop().await;
}

/// The object exists when the controllers reconcile, and is gone when they first list its kind: no watch reports it.
#[tokio::test(start_paused = true)]
async fn what_goes_before_its_member_is_watched_comes_back() {
    let mut stack = applied().await;
    stack.member("member1").gate.refuse("GET /apis/apps/v1/deployments$", StatusCode::INTERNAL_SERVER_ERROR);
    stack.restart().await;
    stack.settle().await;
    stack.member("member1").rest.delete(&at(NGINX), None).await.unwrap();
    stack.member("member1").gate.open();
    stack.until_in(NGINX, &BOTH).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stranger_in_place_of_our_object_is_not_overwritten() {
    let mut stack = applied().await;
    let member = stack.member("member1");
    member.gate.shut();
    member.rest.delete(&at(NGINX), None).await.unwrap();
    let deployments = Collection::new("apps/v1", "deployments", "default");
    let mut stranger = nginx();
    stranger["spec"]["replicas"] = json!(8);
    // Before the controllers have seen that theirs is gone.
    let made = member.rest.create(&deployments, &stranger).await.unwrap();
    member.gate.open();
    stack.until_work("member1", "Applied", "False").await;
    let found = member.get(NGINX).await.unwrap();
    assert_eq!(
        (&found["spec"]["replicas"], &found["metadata"]["uid"]),
        (&json!(8), &json!(made.metadata.uid))
    );
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_is_made_for_a_template_that_has_gone_goes_too() {
    let mut stack = applied().await;
    stack.stop().await;
    let ctx = blind(&stack);
    ctx.cache.put(stack.get(NGINX).await);
    ctx.cache.put(stack.get(POLICY).await);
    let served = cache::Served { plural: "deployments".to_owned(), namespaced: true };
    ctx.cache.served().put("apps/v1", "Deployment", served);
    stack.merge(BINDING, json!({ "metadata": { "finalizers": null } })).await;
    stack.delete(NGINX).await;
    stack.control.until_gone(BINDING).await;
    let key = decide::TemplateKey {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "default".to_owned(),
        name: "nginx".to_owned(),
    };
    controllers::detector::reconcile(&ctx, &key).await.unwrap();
    stack.restart().await;
    stack.control.until_gone(BINDING).await;
    stack.until_in(NGINX, &[]).await;
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_ends_takes_everything_along_and_one_that_ends_in_a_member_comes_back() {
    let mut stack = Stack::new(&["member1"]).await;
    stack.create(namespace("team", json!({}))).await;
    let mut own = nginx();
    own["metadata"]["namespace"] = json!("team");
    let mut rule = policy("pp", ("Deployment", "nginx"), &["member1"], json!({}));
    rule["metadata"]["namespace"] = json!("team");
    stack.create(rule).await;
    stack.create(own).await;
    let there = "/apis/apps/v1/namespaces/team/deployments/nginx";
    stack.until_in(there, &["member1"]).await;
    stack.settle().await;
    let member = stack.member("member1");
    let first = member.get(there).await.unwrap()["metadata"]["uid"].clone();
    member.rest.delete(&at("/api/v1/namespaces/team"), None).await.unwrap();
    let reborn = |object: &Value| object.is_object() && object["metadata"]["uid"] != first;
    member.until("back", there, reborn).await;
    stack.delete("/api/v1/namespaces/team").await;
    stack.control.until_gone("/api/v1/namespaces/team").await;
    stack.until_in("/api/v1/namespaces/team", &[]).await;
    stack.settle().await;
    let works = stack.get("/apis/work.karmada.io/v1alpha1/works").await;
    assert_eq!(works["items"], json!([]), "{works:#}");
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_work_that_somebody_deletes_while_it_is_held_comes_back_held() {
    let mut stack = applied().await;
    stack.edit_policy(json!({ "suspension": { "dispatching": true } })).await;
    stack.until_work("member1", "Dispatching", "False").await;
    stack.settle().await;
    stack.delete(&work_path("member1")).await;
    stack.member("member1").until_gone(NGINX).await;
    stack.until_work("member1", "Dispatching", "False").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stack.members_with(NGINX).await, ["member2"], "nothing is written while it is held (U3)");
    stack.edit_policy(json!({ "suspension": null })).await;
    stack.until_in(NGINX, &BOTH).await;
    stack.stop().await;
}
