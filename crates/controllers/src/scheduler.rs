//! Where does a binding's template run, with how many replicas? Asks `decide` and writes the clusters, and
//! what the status says about it.

use std::time::{Duration, Instant};

use api::Binding;
use decide::BindingKey;
use decide::placement::{Placement, placement};
use serde_json::{Value, json};

use crate::ctx::{Ctx, bindings};
use crate::events::{Regarding, Tone};
use crate::rest::Error;
use crate::runtime::Next;

const COMPONENT: &str = "karmada-scheduler";
/// How soon a binding that could not be placed is looked at again; capacity may come back unannounced.
const RETRY: Duration = Duration::from_secs(10);

/// Places one binding.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Next, Error> {
    let Some(seen) = ctx.view.binding(key) else { return Ok(Next::Wait) };
    let clusters = ctx.view.world().clusters.clone();
    let start = Instant::now();
    let outcome = placement(&seen, &clusters);
    if matches!(outcome, Placement::Skipped(_)) {
        return Ok(Next::Wait);
    }
    let written = write(ctx, key, &seen, &outcome).await;
    if !matches!(written, Ok(false)) {
        tell(ctx, &seen, &outcome, start, written.as_ref().err());
    }
    written?;
    match outcome {
        Placement::Kept { .. } => Ok(Next::After(RETRY)),
        _ => Ok(Next::Wait),
    }
}

/// Writes the clusters, then the status; says whether anything was new. A crash between the two is seen by the
/// status that lags behind, and the same placement writes it.
async fn write(ctx: &Ctx, key: &BindingKey, seen: &Binding, outcome: &Placement) -> Result<bool, Error> {
    let path = bindings(key).object(&key.name);
    let mut binding = seen.clone();
    let mut news = false;
    outcome.write_spec(&mut binding);
    if binding != *seen {
        news = true;
        let patch = json!({
            "metadata": {
                "resourceVersion": seen.metadata.resource_version,
                "annotations": binding.metadata.annotations,
            },
            "spec": { "clusters": binding.spec.clusters },
        });
        let written: Value = ctx.control.merge(&path, &patch).await?;
        binding = serde_json::from_value(written).unwrap_or(binding);
    }
    let before = binding.status.clone();
    outcome.write_status(&mut binding, (ctx.now)());
    if binding.status != before {
        let patch = json!({
            "metadata": { "resourceVersion": binding.metadata.resource_version },
            "status": binding.status,
        });
        ctx.control.merge(&format!("{path}/status"), &patch).await?;
        news = true;
    }
    Ok(news)
}

fn tell(ctx: &Ctx, binding: &Binding, outcome: &Placement, start: Instant, error: Option<&Error>) {
    let (trigger, failure) = match outcome {
        Placement::Skipped(_) | Placement::Unchanged => return,
        Placement::Scheduled(schedule) => (&schedule.trigger, None),
        Placement::Nowhere { trigger, failure, .. } | Placement::Kept { trigger, failure, .. } => {
            (trigger, Some(failure.to_string()))
        }
    };
    let failure = error.map(ToString::to_string).or(failure);
    let result = if failure.is_none() { "scheduled" } else { "error" };
    let labels = [("result", result), ("schedule_type", trigger.schedule_type())];
    ctx.metrics.count("karmada_scheduler_schedule_attempts_total", &labels);
    ctx.metrics.observe_since("karmada_scheduler_e2e_scheduling_duration_seconds", &labels, start);
    let about = [Regarding::from(binding), Regarding::template_of(binding)];
    match (outcome, failure) {
        (Placement::Scheduled(schedule), None) => {
            // The cluster-scoped message lacks the colon in Karmada too.
            let colon = if binding.metadata.namespace.is_empty() { "" } else { ":" };
            let result = schedule.result();
            let message = format!("Binding has been scheduled successfully. Result{colon} {result}");
            ctx.tell(about, COMPONENT, Tone::Normal, "ScheduleBindingSucceed", &message);
        }
        (_, failure) => {
            let why = failure.unwrap_or_default();
            ctx.tell(about, COMPONENT, Tone::Warning, "ScheduleBindingFailed", &why);
        }
    }
}
