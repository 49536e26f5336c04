//! The controllers beside the API server, in the same process: their kinds installed, the local members
//! joined, everything running.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use apiserver::ApiServer;
use apiserver::auth::Identity;
use controllers::ctx::{Ctx, Members};
use controllers::gates::Switches;
use controllers::rest::Rest;
use controllers::start::{Controllers, start};
use plane::outlook::Outlook;

use crate::locals::Local;

/// Installs Karmada's kinds, joins the members and starts every controller.
pub async fn run(
    server: &ApiServer,
    locals: &[Local],
    switches: Switches,
    outlook: &Outlook,
) -> Result<Controllers> {
    let client = kube::Client::new(server.trusting(Identity::untracked("longshore")), "default");
    let control = Rest::new(client);
    plane::install_kinds(&control).await.context("install the kinds of policies")?;
    plane::publish_gates(&control, &switches).await.context("tell the feature gates")?;
    let members = Members::default();
    for local in locals {
        members.insert(&local.name, Rest::new(local.client()));
        plane::join(&control, &local.cluster()).await.with_context(|| format!("join {}", local.name))?;
    }
    let ctx = Ctx::new(control, members, switches, Arc::new(jiff::Timestamp::now));
    outlook.see(ctx.view.clone());
    let supervisor = ctx.supervisor.clone();
    server.add_liveness(move || supervisor.failure());
    let counted = ctx.clone();
    server.add_metrics(move || controllers::metrics::render(&counted));
    Ok(start(ctx))
}
