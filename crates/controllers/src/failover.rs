//! Failover: evicts bindings from clusters because of taints or failing applications, and ends graceful eviction tasks.
//! `decide::eviction` decides; time is an input, so a reconcile may requeue itself for later.

use std::sync::Arc;
use std::time::Duration;

use api::binding::{BindingStatus, LAST_COPY_KEPT, SCHEDULED};
use api::taint::NO_EXECUTE;
use api::{Binding, Cluster, ConditionStatus, Time};
use decide::BindingKey;
use decide::conditions;
use decide::eviction::{Evictions, Graceful, Settings, UNHEALTHY_SINCE, Why, eviction, graceful, kept};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::ctx::{Ctx, bindings};
use crate::events::{EventType, Regarding};
use crate::rest::Error;
use crate::runtime::Action;

const COMPONENT: &str = "taint-manager";
/// The default grace period of an eviction task, in seconds.
const GRACE_SECONDS: i64 = 600;

/// Judges one binding.
///
/// Clusters, tasks and memory are one write, so a crash leaves either all of it or nothing, and the next look
/// comes to the same answer: since when a workload fails is on the binding, since when a taint is there is on
/// the cluster, and since when a task runs is in the task.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Action, Error> {
    let Some(seen) = ctx.cache.binding(key) else { return Ok(Action::AwaitChange) };
    let clusters = ctx.cache.snapshot().clusters.clone();
    if is_quiet(&seen, &clusters) {
        return Ok(Action::AwaitChange);
    }
    let (start, now) = (Instant::now(), (ctx.now)());
    let settings = Settings { taints_evict: ctx.feature_gates.gates.failover, ..Settings::default() };
    let mut evictions = eviction(&seen, &clusters, now, settings);
    let turn = hold_back(ctx, key, &mut evictions);
    let mut binding = Binding::clone(&seen);
    evictions.write(&mut binding);
    let tasks = graceful(&binding, &clusters, now, GRACE_SECONDS);
    tasks.write(&mut binding);
    match binding == *seen {
        // What was written leads here again, and then the status follows.
        true => write_kept(ctx, key, &seen, &evictions).await?,
        false => {
            let written = ctx.control.merge(&bindings(key).object(&key.name), &patch(&seen, &binding)).await;
            if !written.as_ref().is_err_and(Error::is_conflict) {
                record_events(ctx, &seen, &evictions, &tasks, written.is_ok());
                count(ctx, &seen, &evictions, start, written.is_ok());
            }
            written?;
        }
    }
    Ok(next(now, [evictions.next, tasks.next], turn))
}

/// Says on the binding, and in an Event, that copies stay because nothing else fits (M2); or no longer.
async fn write_kept(ctx: &Ctx, key: &BindingKey, seen: &Binding, evictions: &Evictions) -> Result<(), Error> {
    let mut status = seen.status.clone();
    match kept(seen, evictions) {
        Some(condition) => conditions::set(&mut status.conditions, condition, (ctx.now)()),
        None => status.conditions.retain(|condition| condition.kind != LAST_COPY_KEPT),
    }
    if status == seen.status {
        return Ok(());
    }
    let (path, version) = (bindings(key).object(&key.name), &seen.metadata.resource_version);
    ctx.control.write_status(&path, version, &seen.status, &status).await?;
    let message = |status: &BindingStatus| {
        conditions::find(&status.conditions, LAST_COPY_KEPT).map(|condition| condition.message.clone())
    };
    if let Some(news) = message(&status).filter(|news| message(&seen.status).as_ref() != Some(news)) {
        let about = [Regarding::from(seen), Regarding::template_of(seen)];
        ctx.record_event(about, COMPONENT, EventType::Warning, LAST_COPY_KEPT, &news);
    }
    Ok(())
}

/// Delays the evictions whose slot has not come; returns for how long.
fn hold_back(ctx: &Ctx, key: &BindingKey, evictions: &mut Evictions) -> Option<Duration> {
    let by_taint = |why: &Why| matches!(why, Why::TaintUntolerated { .. });
    if !evictions.evictions.values().any(|eviction| by_taint(&eviction.why)) {
        ctx.eviction_limiter.release(key);
        return None;
    }
    let wait = ctx.eviction_limiter.wait(key)?;
    evictions.evictions.retain(|_, eviction| !by_taint(&eviction.why));
    Some(wait)
}

/// Most bindings have nothing to be judged, and are many.
fn is_quiet(binding: &Binding, clusters: &Arc<Vec<Cluster>>) -> bool {
    let spec = &binding.spec;
    let fails_over = spec.failover.as_ref().is_some_and(|failover| failover.application.is_some());
    let remembers = binding.metadata.annotations.contains_key(UNHEALTHY_SINCE);
    let evicts = |cluster: &Cluster| cluster.spec.taints.iter().any(|taint| taint.effect == NO_EXECUTE);
    let stays = conditions::find(&binding.status.conditions, LAST_COPY_KEPT).is_some();
    let unfit = conditions::status(&binding.status.conditions, SCHEDULED) == Some(ConditionStatus::False);
    !fails_over
        && !remembers
        && !stays
        && !unfit
        && spec.graceful_eviction_tasks.is_empty()
        && !clusters.iter().any(evicts)
}

fn patch(seen: &Binding, binding: &Binding) -> Value {
    json!({
        "metadata": {
            "resourceVersion": seen.metadata.resource_version,
            "annotations": { UNHEALTHY_SINCE: binding.metadata.annotations.get(UNHEALTHY_SINCE) },
        },
        "spec": {
            "clusters": list(&binding.spec.clusters),
            "gracefulEvictionTasks": list(&binding.spec.graceful_eviction_tasks),
        },
    })
}

/// An empty list is written as no list at all, as Karmada's `omitempty` does.
fn list<T: Serialize>(items: &[T]) -> Value {
    if items.is_empty() { Value::Null } else { json!(items) }
}

fn record_events(ctx: &Ctx, binding: &Binding, evictions: &Evictions, tasks: &Graceful, written: bool) {
    let about = || [Regarding::from(binding), Regarding::template_of(binding)];
    let (event_type, reason, word) = match written {
        true => (EventType::Normal, "EvictWorkloadFromClusterSucceed", "succeed"),
        false => (EventType::Warning, "EvictWorkloadFromClusterFailed", "failed"),
    };
    for cluster in evictions.evictions.keys().chain(tasks.let_go.keys()) {
        ctx.record_event(
            about(),
            COMPONENT,
            event_type,
            reason,
            &format!("Evict from cluster {cluster} {word}."),
        );
    }
}

fn count(ctx: &Ctx, binding: &Binding, evictions: &Evictions, start: Instant, written: bool) {
    let queue = match binding.metadata.namespace.as_str() {
        "" => ("name", "cluster-binding-eviction"),
        _ => ("name", "binding-eviction"),
    };
    let kind = binding.spec.resource.kind.as_str();
    for cluster in evictions.evictions.keys() {
        ctx.metrics.count("eviction_kind_total", &[("member_cluster", cluster), ("resource_kind", kind)]);
        let result = ("result", crate::metrics::result(written));
        ctx.metrics.count("eviction_processing_total", &[queue, result]);
        ctx.metrics.observe_since("eviction_processing_latency_seconds", &[queue], start);
    }
}

/// When to look again; a task ends after its last second, not in it.
fn next(now: jiff::Timestamp, times: [Option<Time>; 2], turn: Option<Duration>) -> Action {
    let after = |at: Time| Duration::try_from(at.timestamp().duration_since(now)).unwrap_or_default();
    let times = times.into_iter().flatten().map(|at| after(at) + Duration::from_millis(1));
    times.chain(turn).min().map_or(Action::AwaitChange, Action::RequeueAfter)
}
