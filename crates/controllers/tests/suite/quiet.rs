//! R1 and C6: new controllers that find everything in its desired state write nothing at all, neither to the control
//! plane nor to a member.

use std::time::Duration;

use controllers::ctx::{Ctx, Members};
use controllers::gates::FeatureGates;
use controllers::rest::{Collection, LeaderFence};
use serde_json::json;

use crate::stack::{CONFIG, NGINX, Stack, at, condition, config_map, deployment, namespace, nginx, policy};

const BOTH: [&str; 2] = ["member1", "member2"];

/// One of everything that controllers have to do with.
async fn full() -> Stack {
    let stack = Stack::new(&BOTH).await;
    stack.create(namespace("team", json!({ "owner": "me" }))).await;
    overrides(&stack).await;
    templates_with_needs(&stack).await;
    held_and_waiting(&stack).await;
    frozen_and_refused(&stack).await;
    cluster_scoped(&stack).await;
    of_the_same_kind_by_name(&stack).await;
    leaving(&stack).await;
    // Evictions take turns.
    tokio::time::sleep(Duration::from_secs(60)).await;
    stack.settle().await;
    report_status(&stack).await;
    stack.settle().await;
    stack
}

async fn overrides(stack: &Stack) {
    let label = |value: &str| json!([{ "overriders": { "labelsOverrider": [{ "operator": "add", "value": { "by": value } }] } }]);
    for (kind, metadata, selected) in [
        ("OverridePolicy", json!({ "namespace": "default", "name": "op" }), ("apps/v1", "Deployment")),
        ("ClusterOverridePolicy", json!({ "name": "cop" }), ("v1", "Namespace")),
    ] {
        let selectors = json!([{ "apiVersion": selected.0, "kind": selected.1 }]);
        let spec = json!({ "resourceSelectors": selectors, "overrideRules": label(kind) });
        stack
            .create(json!({
                "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
            }))
            .await;
    }
}

async fn templates_with_needs(stack: &Stack) {
    stack.create(config_map("default", "conf")).await;
    let failover = json!({ "application": { "decisionConditions": { "tolerationSeconds": 3600 } } });
    let more = json!({ "propagateDeps": true, "failover": failover });
    stack.create(policy("needs", ("Deployment", "web"), &BOTH, more)).await;
    stack.create(deployment("web", "conf")).await;
    stack.create(policy("pp", ("Deployment", "nginx"), &BOTH, json!({}))).await;
    stack.create(nginx()).await;
}

async fn held_and_waiting(stack: &Stack) {
    let held = json!({ "suspension": { "dispatchingOnClusters": { "clusterNames": ["member2"] } } });
    stack.create(policy("held", ("ConfigMap", "held"), &BOTH, held)).await;
    stack.create(config_map("default", "held")).await;
    let selectors = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "rolled" }]);
    let rollout = json!({ "resourceSelectors": selectors, "suspension": { "dispatching": true } });
    stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "RolloutPolicy",
            "metadata": { "namespace": "default", "name": "slow" }, "spec": rollout,
        }))
        .await;
    stack.create(policy("rolled", ("ConfigMap", "rolled"), &BOTH, json!({}))).await;
    stack.create(config_map("default", "rolled")).await;
    // One waits for its user altogether, the other with a change of its policy.
    let lazy = || json!({ "activationPreference": "Lazy" });
    stack.create(config_map("default", "lazy")).await;
    stack.create(policy("moved", ("ConfigMap", "moved"), &["member1"], lazy())).await;
    stack.create(config_map("default", "moved")).await;
    stack.settle().await;
    stack.create(policy("lazy", ("ConfigMap", "lazy"), &BOTH, lazy())).await;
    let moved = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies/moved";
    let there = json!({ "placement": { "clusterAffinity": { "clusterNames": ["member2"] } } });
    stack.merge(moved, json!({ "spec": there })).await;
}

async fn frozen_and_refused(stack: &Stack) {
    let path = stack.create(policy("gone", ("ConfigMap", "frozen"), &BOTH, json!({}))).await;
    let frozen = stack.create(config_map("default", "frozen")).await;
    stack.settle().await;
    stack.delete(&path).await;
    stack.merge(&frozen, json!({ "data": { "key": "newer" } })).await;
    let foreign = config_map("default", "foreign");
    let collection = Collection::new("v1", "configmaps", "default");
    stack.member("member1").rest.create(&collection, &foreign).await.expect("the server answers");
    stack.create(policy("foreign", ("ConfigMap", "foreign"), &BOTH, json!({}))).await;
    stack.create(foreign).await;
    let far = json!({ "placement": { "clusterAffinity": { "clusterNames": ["nowhere"] } } });
    stack.create(policy("far", ("ConfigMap", "far"), &[], far)).await;
    stack.create(config_map("default", "far")).await;
}

async fn cluster_scoped(stack: &Stack) {
    let selectors =
        json!([{ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "reader" }]);
    stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
            "metadata": { "name": "roles" }, "spec": { "resourceSelectors": selectors, "placement": {} },
        }))
        .await;
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    stack
        .create(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "reader" }, "rules": rules,
        }))
        .await;
    let workload = json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "held" });
    stack
        .create(json!({
            "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": { "name": "once" },
            "spec": { "workloads": [workload] },
        }))
        .await;
}

/// C5: a kind of another group with the same text, and an object whose binding would belong to another template.
async fn of_the_same_kind_by_name(stack: &Stack) {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let definition = stack
        .create(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "configmaps.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "plural": "configmaps", "kind": "ConfigMap", "listKind": "ConfigMapList" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
            },
        }))
        .await;
    let served = |one: &serde_json::Value| condition(one, "Established") == "True";
    stack.control.until("served", &definition, served).await;
    let selectors = json!([{ "apiVersion": "example.com/v1", "kind": "ConfigMap", "name": "held" }]);
    stack.create(policy("twin", ("ConfigMap", ""), &BOTH, json!({ "resourceSelectors": selectors }))).await;
    let metadata = json!({ "namespace": "default", "name": "held" });
    stack.create(json!({ "apiVersion": "example.com/v1", "kind": "ConfigMap", "metadata": metadata })).await;
}

/// A taint by condition that evicts what is not held; what leaves waits for its replacement.
async fn leaving(stack: &Stack) {
    let ready = json!([{ "conditionType": "Ready", "operator": "In", "statusValues": ["True"] }]);
    stack.settle().await;
    stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": { "name": "always" },
            "spec": {
                "targetClusters": { "clusterNames": ["member1"] }, "addOnConditions": ready,
                "taints": [{ "key": "test", "effect": "NoExecute" }],
            },
        }))
        .await;
}

/// The replacement of `nginx` is healthy; that of `web` never becomes so, and its eviction stays under way.
async fn report_status(stack: &Stack) {
    let member = stack.member("member2");
    let object = member.get(NGINX).await.expect("it was delivered");
    let status = json!({ "status": {
        "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "observedGeneration": object["metadata"]["generation"],
    } });
    member.rest.merge(&at(&format!("{NGINX}/status")), &status).await.expect("the server answers");
}

#[tokio::test(start_paused = true)]
async fn r1_new_controllers_that_find_nothing_to_do_write_nothing() {
    let mut stack = full().await;
    check_that_it_is_full(&stack).await;
    let before = stack.revisions().await;
    for _ in 0..2 {
        stack.stop().await;
        stack.control.gate.forget();
        stack.members.values().for_each(|member| member.gate.forget());
        stack.restart().await;
        stack.settle().await;
        // Long enough for every health check, retry and resync to come round.
        tokio::time::sleep(Duration::from_secs(120)).await;
        for (name, member) in &stack.members {
            let asked = member.gate.asked();
            assert!(asked.contains(&format!("GET {NGINX}")) || name == "member1", "{name} was looked at");
            assert_eq!(member.gate.writes(), [""; 0], "{name}");
        }
        assert_eq!(stack.control.gate.writes(), [""; 0]);
    }
    assert_eq!(stack.revisions().await, before);
    stack.stop().await;
}

/// The test means something only while all of this is really there.
async fn check_that_it_is_full(stack: &Stack) {
    assert_eq!(stack.members_with("/api/v1/namespaces/team").await, BOTH);
    assert_eq!(stack.members_with(NGINX).await, ["member2"], "evicted and replaced");
    let web = stack.binding("web-deployment").await;
    assert_eq!(web["spec"]["gracefulEvictionTasks"][0]["fromCluster"], "member1", "{web:#}");
    assert!(web["metadata"]["annotations"]["longshore.io/unhealthy-since"].is_string(), "{web:#}");
    assert!(stack.binding("conf-configmap").await["spec"]["requiredBy"].is_array());
    assert_eq!(
        stack.members_with(CONFIG).await,
        BOTH,
        "it stays where a copy of web waits for its eviction (M1)"
    );
    assert!(stack.binding("lazy-configmap").await.is_null());
    let frozen = stack.member("member2").get("/api/v1/namespaces/default/configmaps/frozen").await;
    assert_eq!(frozen.expect("it was delivered")["data"]["key"], "one");
    assert_eq!(stack.members_with("/api/v1/namespaces/default/configmaps/rolled").await, [""; 0]);
    let refused = stack.told("foreign", "SyncFailed").await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(stack.told("held", "ApplyPolicyFailed").await.len(), 1);
    let nowhere = stack.told("far", "ScheduleBindingFailed").await;
    assert_eq!(nowhere.len(), 1, "{nowhere:?}");
    let reader = "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader";
    assert!(!stack.members_with(reader).await.is_empty());
    let rebalancer = stack.get("/apis/apps.karmada.io/v1alpha1/workloadrebalancers/once").await;
    assert!(rebalancer["status"]["finishTime"].is_string());
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_only_watches() {
    let mut stack = full().await;
    stack.stop().await;
    stack.control.gate.forget();
    let control = stack.control.through.clone().under(LeaderFence::default());
    let standby = Ctx::new(control, Members::default(), FeatureGates::default(), stack.clock.clone());
    let running = controllers::start::start(standby.clone());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let metrics = controllers::scrape::render(&standby);
    assert!(!metrics.contains("workqueue_depth"), "nobody is behind: {metrics}");
    let asked = stack.control.gate.asked();
    assert!(asked.iter().any(|one| one == "GET /apis/work.karmada.io/v1alpha1/works"), "{asked:?}");
    let works: Vec<&String> = asked.iter().filter(|one| one.contains("/namespaces/karmada-es-")).collect();
    assert!(works.is_empty(), "{works:?}");
    running.shut_down().await;
}
