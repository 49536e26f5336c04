//! Must a binding leave a cluster, and may its old copy go? Taints, failing applications and graceful eviction in
//! one look, all decided by `decide::eviction`; time is an input, so a look may ask for another one later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::taint::NO_EXECUTE;
use api::{Binding, Cluster, Time};
use decide::BindingKey;
use decide::eviction::{Evictions, Graceful, Settings, UNHEALTHY_SINCE, eviction, graceful};
use serde::Serialize;
use serde_json::{Value, json};

use crate::ctx::{Ctx, bindings};
use crate::events::{Regarding, Tone};
use crate::rest::Error;
use crate::runtime::Next;

const COMPONENT: &str = "taint-manager";
/// How long an old copy stays when nobody says otherwise.
const GRACE_SECONDS: i64 = 600;

/// Judges one binding.
///
/// Clusters, tasks and memory are one write, so a crash leaves either all of it or nothing, and the next look
/// comes to the same answer: since when a workload fails is on the binding, since when a taint is there is on
/// the cluster, and since when a task runs is in the task.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Next, Error> {
    let Some(seen) = ctx.view.binding(key) else { return Ok(Next::Wait) };
    let clusters = ctx.view.world().clusters.clone();
    if is_quiet(&seen, &clusters) {
        return Ok(Next::Wait);
    }
    let (start, now) = (Instant::now(), (ctx.now)());
    let settings = Settings { taints_evict: ctx.switches.failover, ..Settings::default() };
    let evictions = eviction(&seen, &clusters, now, settings);
    let mut binding = Binding::clone(&seen);
    evictions.write(&mut binding);
    let tasks = graceful(&binding, now, GRACE_SECONDS);
    tasks.write(&mut binding);
    if binding != *seen {
        let written = ctx.control.merge(&bindings(key).object(&key.name), &patch(&seen, &binding)).await;
        tell(ctx, &seen, &evictions, &tasks, written.is_ok());
        ctx.metrics.observe_since("eviction_processing_latency_seconds", &[], start);
        written?;
    }
    Ok(next(now, [evictions.next, tasks.next]))
}

/// Most bindings have nothing to be judged, and are many.
fn is_quiet(binding: &Binding, clusters: &Arc<Vec<Cluster>>) -> bool {
    let spec = &binding.spec;
    let fails_over = spec.failover.as_ref().is_some_and(|failover| failover.application.is_some());
    let remembers = binding.metadata.annotations.contains_key(UNHEALTHY_SINCE);
    let evicts = |cluster: &Cluster| cluster.spec.taints.iter().any(|taint| taint.effect == NO_EXECUTE);
    !fails_over && !remembers && spec.graceful_eviction_tasks.is_empty() && !clusters.iter().any(evicts)
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

/// An empty list is written as no list at all, as everybody else writes it.
fn list<T: Serialize>(items: &[T]) -> Value {
    if items.is_empty() { Value::Null } else { json!(items) }
}

fn tell(ctx: &Ctx, binding: &Binding, evictions: &Evictions, tasks: &Graceful, written: bool) {
    let about = || [Regarding::from(binding), Regarding::template_of(binding)];
    let (tone, reason, word) = match written {
        true => (Tone::Normal, "EvictWorkloadFromClusterSucceed", "succeed"),
        false => (Tone::Warning, "EvictWorkloadFromClusterFailed", "failed"),
    };
    for cluster in evictions.evictions.keys().chain(tasks.let_go.keys()) {
        ctx.tell(about(), COMPONENT, tone, reason, &format!("Evict from cluster {cluster} {word}."));
    }
    for cluster in evictions.evictions.keys() {
        let kind = binding.spec.resource.kind.as_str();
        ctx.metrics.count("eviction_kind_total", &[("member_cluster", cluster), ("resource_kind", kind)]);
        ctx.metrics.count("eviction_processing_total", &[("result", crate::metrics::result(written))]);
    }
}

/// When to look again; a task ends after its last second, not in it.
fn next(now: jiff::Timestamp, times: [Option<Time>; 2]) -> Next {
    let Some(at) = times.into_iter().flatten().min() else { return Next::Wait };
    let left = at.timestamp().duration_since(now);
    Next::After(Duration::try_from(left).unwrap_or_default() + Duration::from_millis(1))
}
