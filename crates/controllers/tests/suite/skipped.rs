//! Namespaces and kinds that the operator skips: no policy claims their templates, and earlier copies continue.

use controllers::gates::FeatureGates;
use controllers::members::Settings;
use decide::{Gates, SkippedResources};
use serde_json::json;

use crate::stack::{Stack, config_map, namespace};

const ALL: [&str; 1] = ["member1"];
const POLICY: &str = "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies/all";
const NAMESPACE: &str = "/api/v1/namespaces/lab-1";
const LEFT_OUT: &str = "/api/v1/namespaces/lab-1/configmaps/conf";
const TAKEN: &str = "/api/v1/namespaces/shop/configmaps/conf";
const SECRET: &str = "/api/v1/namespaces/shop/secrets/key";

fn leaving_out() -> FeatureGates {
    let skipped = SkippedResources::read("lab-.*", "v1/Secret").expect("readable");
    FeatureGates { gates: Gates { skipped, ..Gates::default() } }
}

/// A policy that selects all there is.
async fn fill(stack: &Stack) {
    let kind = |kind: &str| json!({ "apiVersion": "v1", "kind": kind });
    stack
        .create(json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
            "metadata": { "name": "all" },
            "spec": {
                "resourceSelectors": [kind("ConfigMap"), kind("Secret")],
                "placement": { "clusterAffinity": { "clusterNames": ALL } },
            },
        }))
        .await;
    for name in ["lab-1", "shop"] {
        stack.create(namespace(name, json!({}))).await;
        stack.create(config_map(name, "conf")).await;
    }
    stack
        .create(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "shop", "name": "key" },
        }))
        .await;
    stack.until_in(TAKEN, &ALL).await;
    stack.settle().await;
}

#[tokio::test(start_paused = true)]
async fn no_policy_claims_skipped_resources() {
    let mut stack = Stack::with(&ALL, Settings::default(), leaving_out()).await;
    fill(&stack).await;
    for path in [NAMESPACE, LEFT_OUT, SECRET] {
        assert_eq!(stack.member("member1").get(path).await, None, "{path}");
        assert!(!is_claimed(&stack, path).await, "{path}");
    }
    stack.restart_with(FeatureGates::default()).await;
    for path in [NAMESPACE, LEFT_OUT, SECRET] {
        stack.until_in(path, &ALL).await;
    }
    stack.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resources_propagated_before_they_were_skipped_stay_propagated() {
    let mut stack = Stack::new(&ALL).await;
    fill(&stack).await;
    stack.until_in(LEFT_OUT, &ALL).await;
    stack.settle().await;
    let revisions = stack.revisions().await;
    stack.restart_with(leaving_out()).await;
    stack.settle().await;
    assert_eq!(stack.revisions().await, revisions, "nothing is written anywhere");
    stack.merge(LEFT_OUT, json!({ "data": { "of": "tomorrow" } })).await;
    let changed = |object: &serde_json::Value| object["data"]["of"] == "tomorrow";
    stack.member("member1").until("changed", LEFT_OUT, changed).await;
    // No other policy claims it after its policy is deleted, and what runs stays.
    assert!(is_claimed(&stack, LEFT_OUT).await);
    stack.delete(POLICY).await;
    stack.control.until_gone(POLICY).await;
    stack.settle().await;
    assert!(!is_claimed(&stack, LEFT_OUT).await);
    stack.until_in(LEFT_OUT, &ALL).await;
    stack.delete(LEFT_OUT).await;
    stack.member("member1").until_gone(LEFT_OUT).await;
    stack.stop().await;
}

async fn is_claimed(stack: &Stack, path: &str) -> bool {
    let labels = stack.get(path).await["metadata"]["labels"].clone();
    labels["clusterpropagationpolicy.karmada.io/permanent-id"].as_str().is_some_and(|id| !id.is_empty())
}
