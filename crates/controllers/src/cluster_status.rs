//! The cluster status controller: probes the health endpoint, version, API resources and nodes of a member every ten
//! seconds, and writes the results into the Cluster's status. Ready flips only when the new result lasts.

use std::time::Duration;

use api::cluster::{DISPATCHING, READY, SyncMode};
use api::{Cluster, Condition, ConditionStatus, kinds};
use decide::conditions;
use decide::readiness::not_yet;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::ctx::Ctx;
use crate::members::Member;
use crate::rest::{Collection, Error, Path, Rest};
use crate::runtime::Action;

mod agent;
mod pods;
mod summary;

use pods::{PodPage, Pods};
use summary::Facts;

/// The timeout for a member's version, kinds and nodes; what it does not return in time keeps its last value.
const FACTS_TIMEOUT: Duration = Duration::from_secs(20);
/// How soon a member is probed again while no connection to it has been attempted.
const FIRST_PROBE_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Asks one cluster how it is.
pub async fn reconcile(ctx: &Ctx, name: &str) -> Result<Action, Error> {
    let path = Collection::of(&kinds::CLUSTER, "").object(name);
    let Some(cluster) = ctx.control.get::<Cluster>(&path).await? else { return Ok(Action::AwaitChange) };
    // The agent in the member reports its status.
    if cluster.spec.sync_mode == SyncMode::Pull {
        return agent::reconcile(ctx, &cluster, &path).await;
    }
    let start = Instant::now();
    let settings = ctx.members.settings();
    let member = ctx.members.member(name);
    let (ready, facts) = match (ctx.members.get(name), ctx.members.why_not(name)) {
        // No connection has been attempted yet.
        (None, None) => return Ok(Action::RequeueAfter(FIRST_PROBE_RETRY_INTERVAL)),
        (None, Some(why)) => (not_ready("StatusCollectionFailed", &why), Facts::default()),
        (Some(rest), _) => ask(&rest, settings.status_timeout, &member).await,
    };
    let mut next = cluster.clone();
    let reported = conditions::status(&cluster.status.conditions, READY);
    let wait = not_yet(reported, ready.status, member.seen(ready.status), settings.health);
    if wait.is_none() {
        log_change(name, reported, &ready);
        conditions::set(&mut next.status.conditions, ready, (ctx.now)());
    }
    if let Some(dispatching) = dispatching(&member) {
        conditions::set(&mut next.status.conditions, dispatching, (ctx.now)());
    }
    facts.write(&mut next, (ctx.now)());
    if next.status != cluster.status {
        let version = &cluster.metadata.resource_version;
        ctx.control.write_status(&path, version, &cluster.status, &next.status).await?;
    }
    let labels = [("member_cluster", name)];
    ctx.metrics.observe_since("cluster_sync_status_duration_seconds", &labels, start);
    Ok(Action::RequeueAfter(wait.map_or(settings.status_interval, |wait| wait.min(settings.status_interval))))
}

/// Says that a member was lost or is back.
fn log_change(cluster: &str, before: Option<ConditionStatus>, ready: &Condition) {
    let Condition { reason, message, .. } = ready;
    match (before == Some(ConditionStatus::True), ready.status == ConditionStatus::True) {
        (true, false) => tracing::warn!(cluster, reason, message, "a member is not ready any more"),
        (false, true) if before.is_some() => tracing::info!(cluster, "a member is ready again"),
        (false, false) if before.is_none() => {
            tracing::warn!(cluster, reason, message, "a member is not ready")
        }
        _ => {}
    }
}

fn not_ready(reason: &str, message: &str) -> Condition {
    conditions::condition(READY, ConditionStatus::False, reason, message)
}

fn not_reachable() -> Condition {
    not_ready("ClusterNotReachable", "cluster is not reachable")
}

/// Whether Works are written to the member; `None` until a write was attempted, so that a restart reports nothing.
fn dispatching(member: &Member) -> Option<Condition> {
    Some(match member.is_breaker_open()? {
        false => conditions::condition(
            DISPATCHING,
            ConditionStatus::True,
            "Dispatching",
            "Works are being dispatched to the cluster.",
        ),
        true => conditions::condition(
            DISPATCHING,
            ConditionStatus::False,
            "ClusterNotAnswering",
            "The cluster failed to answer several times in a row; Works wait until it does.",
        ),
    })
}

/// Only the health probe has a short timeout: a large cluster far away takes longer to list what it has.
async fn ask(rest: &Rest, timeout: Duration, member: &Member) -> (Condition, Facts) {
    let health = tokio::time::timeout(timeout, healthy(rest)).await;
    match health.unwrap_or_else(|_| Err(Error::TimedOut { action: "ask for its health".to_owned() })) {
        Ok(()) => {}
        Err(Error::Unreachable { .. } | Error::TimedOut { .. }) => {
            return (not_reachable(), Facts::default());
        }
        Err(_) => {
            let message = "cluster is reachable but health endpoint responded without ok";
            return (not_ready("ClusterNotReady", message), Facts::default());
        }
    }
    let ready = conditions::condition(
        READY,
        ConditionStatus::True,
        "ClusterReady",
        "cluster is healthy and ready to accept workloads",
    );
    (ready, facts(rest, member).await)
}

async fn facts(rest: &Rest, member: &Member) -> Facts {
    let end = Instant::now() + FACTS_TIMEOUT;
    let (version_path, nodes_path) = (Path::fixed("/version"), Path::fixed("/api/v1/nodes"));
    let version = timeout_at(end, rest.fetch::<Value>(&version_path));
    let kinds = timeout_at(end, crate::discovery::all_kinds(rest));
    let nodes = timeout_at(end, rest.fetch::<Value>(&nodes_path));
    let mut facts = Facts {
        version: version.await.ok().and_then(Result::ok),
        kinds: kinds.await.ok().map(Result::unwrap_or_default),
        nodes: nodes.await.ok().and_then(Result::ok),
        pods: None,
    };
    if member.may_count() {
        let begun = Instant::now();
        facts.pods = timeout_at(end, pods(rest)).await.ok().and_then(Result::ok);
        member.counted(begun.elapsed());
    }
    facts
}

/// What all pods need together. They are read in pages: nothing else is so many.
async fn pods(rest: &Rest) -> Result<Pods, Error> {
    let (mut pods, mut next) = (Pods::default(), String::new());
    loop {
        let path = Path::fixed("/api/v1/pods").with("limit", "500").with("continue", &next);
        let page: PodPage = rest.fetch(&path).await?;
        page.items.iter().for_each(|pod| pods.add(pod));
        next = page.metadata.next;
        if next.is_empty() {
            return Ok(pods);
        }
    }
}

/// Old clusters know only the older of the two endpoints.
async fn healthy(rest: &Rest) -> Result<(), Error> {
    match rest.fetch_text(&Path::fixed("/readyz")).await {
        Err(Error::NotFound { .. }) => rest.fetch_text(&Path::fixed("/healthz")).await.map(drop),
        answer => answer.map(drop),
    }
}
