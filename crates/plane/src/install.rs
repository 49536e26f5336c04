//! What a control plane has before its controllers start: the kinds of policies, and its members.

use controllers::rest::{Collection, Error, Rest};
use serde_json::Value;

/// Definitions are applied, so that a newer version of ours replaces an older one.
pub async fn install_kinds(control: &Rest) -> Result<(), Error> {
    let definitions = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
    for definition in api::crd::crds() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        control.apply(&definitions.object(name), &definition, true).await?;
    }
    Ok(())
}

/// Makes a member known, or tells what is new of one that is; everything else of its Cluster stays.
pub async fn join(control: &Rest, cluster: &Value) -> Result<(), Error> {
    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
    let clusters = Collection::of(&api::kinds::CLUSTER, "");
    control.apply(&clusters.object(name), cluster, true).await.map(drop)
}
