//! The controllers beside the API server, in the same process: installs their CRDs, joins the local members and runs
//! the controllers.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use apiserver::ApiServer;
use apiserver::authn::Identity;
use controllers::ctx::{Ctx, Members};
use controllers::rest::Rest;
use controllers::start::{Controllers, start};
use plane::policy_impact::PolicyImpact;
use plane::restart::{HeldStart, held_start, publish_held_start};

use crate::feature_gates::SwitchFlags;
use crate::locals::Local;
use crate::{output, terminal_text};

/// Installs Karmada's kinds, joins the members and starts every controller; none run while the start is held.
pub async fn run(
    server: &ApiServer,
    locals: &[Local],
    flags: &SwitchFlags,
    policy_impact: &PolicyImpact,
) -> Result<Option<Controllers>> {
    let feature_gates = flags.feature_gates()?;
    let client = kube::Client::new(server.trusting(Identity::untracked("longshore")), "default");
    let control = Rest::new(client);
    plane::install_kinds(&control).await.context("install the kinds of policies")?;
    let held = held_start(&control, &feature_gates, policy_impact.budget(), jiff::Timestamp::now()).await;
    if let Some(held) =
        held.context("plan the change of the feature gates")?.filter(|held| !flags.accepts(held))
    {
        publish_held_start(&control, Some(&held)).await.context("publish that the controllers wait")?;
        print_held_start(&held);
        return Ok(None);
    }
    plane::publish_gates(&control, &feature_gates, policy_impact.budget())
        .await
        .context("publish the feature gates")?;
    publish_held_start(&control, None).await.context("publish that the controllers run")?;
    let members = Members::default();
    for local in locals {
        members.insert(&local.name, Rest::new(local.client()));
        plane::join(&control, &local.cluster()).await.with_context(|| format!("join {}", local.name))?;
    }
    let ctx = Ctx::new(control, members, feature_gates, Arc::new(jiff::Timestamp::now));
    policy_impact.see(ctx.cache.clone());
    let supervisor = ctx.supervisor.clone();
    server.add_liveness(move || supervisor.failure());
    let counted = ctx.clone();
    server.add_metrics(move || controllers::scrape::render(&counted));
    Ok(Some(start(ctx)))
}

/// Says why no controller runs, and what to do.
pub fn print_held_start(held: &HeldStart) {
    let before = if held.before.is_empty() { "their defaults".to_owned() } else { held.before.join(",") };
    output::print_message(&terminal_text::labelled(
        "warning: ",
        &format!(
            "the controllers do not run, because with these feature gates {} The feature gates before were {before}.",
            held.why
        ),
    ));
    output::print_message(&terminal_text::labelled(
        "hint: ",
        &format!(
            "nothing was changed; see the plan with `longshore plan --restart --feature-gates …`, then start \
             again with --accept={}, or with the earlier feature gates",
            held.digest
        ),
    ));
}
