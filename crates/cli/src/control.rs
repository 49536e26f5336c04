//! The controllers beside the API server, in the same process: their kinds installed, the local members
//! joined, everything running.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use apiserver::ApiServer;
use apiserver::auth::Identity;
use controllers::ctx::{Ctx, Members};
use controllers::gates::Switches;
use controllers::rest::{Collection, Error, Rest};
use controllers::start::{Controllers, start};
use serde_json::Value;

use crate::locals::Local;

/// Installs Karmada's kinds, joins the members and starts every controller.
pub async fn run(server: &ApiServer, locals: &[Local], switches: Switches) -> Result<Controllers> {
    let client = kube::Client::new(server.trusting(Identity::internal("longshore")), "default");
    let control = Rest::new(client);
    install_kinds(&control).await.context("install the kinds of policies")?;
    let members = Members::default();
    let clusters = Collection::of(&api::kinds::CLUSTER, "");
    for local in locals {
        members.insert(&local.name, Rest::new(local.client()));
        join(&control, &clusters, &local.cluster()).await.with_context(|| format!("join {}", local.name))?;
    }
    let ctx = Ctx::new(control, members, switches, Arc::new(jiff::Timestamp::now));
    Ok(start(ctx))
}

/// Definitions are applied, so that a newer version of ours replaces an older one.
async fn install_kinds(control: &Rest) -> Result<(), Error> {
    let definitions = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
    for definition in api::crd::crds() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        control.apply(&definitions.object(name), &definition, true).await?;
    }
    Ok(())
}

/// A member that was joined before has a new port; everything else of its Cluster stays.
async fn join(control: &Rest, clusters: &Collection, cluster: &Value) -> Result<(), Error> {
    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
    control.apply(&clusters.object(name), cluster, true).await.map(drop)
}
