//! Every object of ours is removed in the right order, whatever exists, and a second run does nothing.

use controllers::rest::{Collection, Rest};
use serde_json::json;

use super::*;

const BINDING: &str = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/conf-configmap";
const TEMPLATE: &str = "/api/v1/namespaces/default/configmaps/conf";

/// A control plane in memory as stopped controllers leave it.
async fn left() -> Rest {
    let (server, control) = crate::test_server::in_memory().await;
    server.start_controllers();
    plane::install_kinds(&control).await.expect("the server answers");
    plane::publish_gates(
        &control,
        &controllers::gates::FeatureGates::default(),
        decide::budget::Budget::default(),
    )
    .await
    .expect("the server answers");
    for (plural, name) in plane::webhooks::CONFIGURATIONS {
        let kind = match plural {
            "mutatingwebhookconfigurations" => "MutatingWebhookConfiguration",
            _ => "ValidatingWebhookConfiguration",
        };
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": name },
        });
        let all = Collection::new("admissionregistration.k8s.io/v1", plural, "");
        control.create(&all, &object).await.expect("the server answers");
    }
    let annotations = json!({ "longshore.io/claim": "{}", "note": "of the user" });
    let template = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "conf", "namespace": "default", "annotations": annotations },
    });
    control
        .create(&Collection::new("v1", "configmaps", "default"), &template)
        .await
        .expect("the server answers");
    let binding = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {
            "name": "conf-configmap", "namespace": "default",
            "annotations": { "longshore.io/pin": "{\"template\":\"d\"}", "policy.karmada.io/applied-placement": "{}" },
        },
        "spec": {
            "resource": { "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "conf" },
            "requiredBy": [{ "namespace": "default", "name": "web-deployment", "clusters": [{ "name": "member1" }] }],
            "suspension": { "dispatchingOnClusters": { "clusterNames": ["member1"] } },
        },
    });
    let bindings = Collection::of(&api::kinds::RESOURCE_BINDING, "default");
    control.create(&bindings, &binding).await.expect("the server answers");
    control
}

async fn found(control: &Rest) -> Vec<Step> {
    let gates = decide::Gates::default();
    let read = controllers::snapshot::list_snapshot(control, gates, jiff::Timestamp::now()).await;
    steps(control, &read.expect("the server answers").snapshot, "karmada-system")
        .await
        .expect("the server answers")
}

#[tokio::test]
async fn m5_nothing_of_ours_is_left_and_what_is_the_users_stays() {
    let control = left().await;
    let steps = found(&control).await;
    let said: Vec<&str> = steps.iter().map(|step| step.says.as_str()).collect();
    assert_eq!(
        said,
        [
            "delete mutatingwebhookconfigurations/longshore",
            "delete validatingwebhookconfigurations/longshore",
            "binding default/conf-configmap: lift the suspension that Longshore set, remove longshore.io/pin",
            "ConfigMap default/conf: remove longshore.io/claim",
            "delete the definition rolloutpolicies.policy.karmada.io and every RolloutPolicy",
            "delete the definition clusterrolloutpolicies.policy.karmada.io and every ClusterRolloutPolicy",
            "delete the ConfigMap with the feature gates: \
             /api/v1/namespaces/kube-public/configmaps/longshore-feature-gates",
        ]
    );
    // Broken off after some of it, it goes on where it was.
    for step in &steps[..3] {
        take(&control, step).await.expect("it can be done");
    }
    let rest = found(&control).await;
    assert_eq!(rest.len(), 4);
    for step in steps.iter().chain(&rest) {
        take(&control, step).await.expect("it can be done, also twice");
    }
    let binding: Value = control.fetch(&Path::fixed(BINDING)).await.expect("it is there");
    assert_eq!(binding["metadata"]["annotations"], json!({ "policy.karmada.io/applied-placement": "{}" }));
    assert!(binding["spec"].get("suspension").is_none(), "{binding:#}");
    let template: Value = control.fetch(&Path::fixed(TEMPLATE)).await.expect("it is there");
    assert_eq!(template["metadata"]["annotations"], json!({ "note": "of the user" }));
    // A definition goes when its objects have gone.
    let until_gone = async {
        while !found(&control).await.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), until_gone).await.expect("nothing is left");
}

#[tokio::test(start_paused = true)]
async fn controllers_that_lead_are_not_cut_off() {
    let control = left().await;
    let leases = Collection::new("coordination.k8s.io/v1", "leases", "default");
    let lease = |holder: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "longshore-controllers", "namespace": "default" },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15 },
        })
    };
    lease::check_no_leader(&control, "default").await.expect("there is no lease");
    control.create(&leases, &lease("one")).await.expect("the server answers");
    lease::check_no_leader(&control, "default").await.expect("it was not renewed");
    let renewing = async {
        loop {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            let renewed = json!({ "spec": { "renewTime": format!("{:.6}", jiff::Timestamp::now()) } });
            control.merge(&lease::path("default"), &renewed).await.expect("the server answers");
        }
    };
    tokio::select! {
        () = renewing => unreachable!("it never ends"),
        leads = lease::check_no_leader(&control, "default") => {
            let error = format!("{:#}", leads.expect_err("it is renewed"));
            assert!(error.contains("controllers still run (one holds the lease"), "{error}");
        }
    }
    control
        .merge(&lease::path("default"), &json!({ "spec": { "holderIdentity": "" } }))
        .await
        .expect("the server answers");
    lease::check_no_leader(&control, "default").await.expect("it was given back");
}
