//! Which CRDs are installed on an API server, and which are left to other installers.

use controllers::rest::{Collection, Rest};
use serde_json::{Value, json};

use crate::stack::Place;

const CLUSTERS: &str = "clusters.cluster.karmada.io";

async fn has_clusters(control: &Rest) -> bool {
    let path = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "").object(CLUSTERS);
    control.get::<Value>(&path).await.expect("the server answers").is_some()
}

async fn serve(control: &Rest, service: Value) {
    let spec = json!({
        "group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": 2000, "versionPriority": 10,
        "service": service, "insecureSkipTLSVerify": true,
    });
    let object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1alpha1.cluster.karmada.io" }, "spec": spec,
    });
    let services = Collection::new("apiregistration.k8s.io/v1", "apiservices", "");
    control.create(&services, &object).await.expect("the server answers");
}

/// A definition beside an aggregated API server shares its keys in etcd: deleting it deletes every real Cluster.
#[tokio::test(start_paused = true)]
async fn m5_a_kind_that_an_api_service_serves_is_not_installed() {
    let control = Place::alone().await.rest;
    serve(&control, json!({ "name": "karmada-aggregated-apiserver", "namespace": "karmada-system" })).await;
    plane::install_kinds(&control).await.expect("the server answers");
    assert!(!has_clusters(&control).await);
    let definitions = plane::wanted_definitions(&control).await.expect("the server answers");
    let names: Vec<&Value> = definitions.aggregated.iter().map(|one| &one["metadata"]["name"]).collect();
    assert_eq!(names, [CLUSTERS]);
    assert_eq!(definitions.wanted.len() + 1, api::crd::crds().len());
}

/// API servers make an APIService for every definition; it names no Service.
#[tokio::test(start_paused = true)]
async fn a_kind_that_a_definition_serves_is_installed() {
    let control = Place::alone().await.rest;
    serve(&control, Value::Null).await;
    plane::install_kinds(&control).await.expect("the server answers");
    assert!(has_clusters(&control).await);
}
