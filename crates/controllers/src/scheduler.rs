//! The scheduler: chooses through `decide` the clusters and replicas of a binding, and writes them and the status
//! conditions.

use std::time::Duration;

use api::binding::SCHEDULED;
use api::{Binding, ConditionStatus};
use decide::placement::{Attempt, Placement, Trigger, listed, placement};
use decide::{BindingKey, conditions};
use serde_json::json;
use tokio::time::Instant;

use crate::ctx::{Ctx, bindings};
use crate::events::{EventType, Regarding};
use crate::rest::{Error, Path};
use crate::runtime::Action;

const COMPONENT: &str = "karmada-scheduler";
/// The retry interval of a binding that could not be placed; capacity may come back unannounced.
const UNSCHEDULABLE_RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Reason of the event and of the condition of a binding that is about something outside its namespace.
const IGNORED: &str = "ResourceOutsideNamespace";
/// How often in a row a status is written that others write, too.
const STATUS_WRITE_ATTEMPTS_MAX: usize = 4;

/// Places one binding.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Action, Error> {
    let Some(seen) = ctx.cache.binding(key) else { return ignore(ctx, key).await };
    let clusters = ctx.cache.snapshot().clusters.clone();
    let start = Instant::now();
    let outcome = placement(&seen, &clusters, (ctx.now)());
    if matches!(outcome, Placement::Skipped(_)) {
        return Ok(Action::AwaitChange);
    }
    if !matches!(outcome, Placement::Unchanged) {
        note_time(ctx, start);
    }
    let written = write(ctx, key, &seen, &outcome).await;
    match &written {
        Ok(false) => {}
        Err(error) if error.is_conflict() => {}
        written => record_events(ctx, &seen, &outcome, start, written.as_ref().err()),
    }
    if written.is_err() || matches!(outcome, Placement::Kept { .. }) {
        count_incoming(ctx, "ScheduleAttemptFailure");
    }
    written?;
    match outcome {
        // Which clusters may run it changes with the clusters, and they bring it here again.
        Placement::Kept { failure, .. } if !failure.is_no_fit() => {
            Ok(Action::RequeueAfter(UNSCHEDULABLE_RETRY_INTERVAL))
        }
        _ => Ok(Action::AwaitChange),
    }
}

/// Says on a binding that it is ignored, if it is there.
async fn ignore(ctx: &Ctx, key: &BindingKey) -> Result<Action, Error> {
    let Some((seen, why)) = ctx.cache.trespasser(key) else { return Ok(Action::AwaitChange) };
    let message = format!("{why}.");
    ctx.record_standing_event(Regarding::from(&*seen), COMPONENT, EventType::Warning, IGNORED, &message);
    let mut status = seen.status.clone();
    let condition = conditions::condition(SCHEDULED, ConditionStatus::False, IGNORED, &message);
    conditions::set(&mut status.conditions, condition, (ctx.now)());
    if status != seen.status {
        let path = bindings(key).object(&key.name);
        ctx.control.write_status(&path, &seen.metadata.resource_version, &seen.status, &status).await?;
    }
    Ok(Action::AwaitChange)
}

/// Writes the clusters into a binding before it is created, which saves a write. Its status, and whatever takes more
/// than choosing clusters, is left to the reconcile after its creation.
pub fn place_new(ctx: &Ctx, binding: &mut Binding) {
    let has_groups = |placement: &api::Placement| !placement.cluster_affinities.is_empty();
    // Only the status could say which group it was.
    if binding.spec.placement.as_ref().is_none_or(has_groups) {
        return;
    }
    let clusters = ctx.cache.snapshot().clusters.clone();
    let start = Instant::now();
    let outcome = placement(binding, &clusters, (ctx.now)());
    if matches!(outcome, Placement::Scheduled(_)) {
        note_time(ctx, start);
        outcome.write_spec(binding);
    }
}

fn note_time(ctx: &Ctx, start: Instant) {
    // Karmada times its steps one by one; here choosing and dividing are one question.
    let step = [("schedule_step", "AssignReplicas")];
    ctx.metrics.observe_since("karmada_scheduler_scheduling_algorithm_duration_seconds", &step, start);
}

/// Counts a binding that is enqueued, by its cause in Karmada's words.
pub fn count_incoming(ctx: &Ctx, event: &'static str) {
    ctx.metrics.count("karmada_scheduler_queue_incoming_bindings_total", &[("event", event)]);
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
        binding = ctx.control.merge_into(&path, &patch).await?;
    }
    Ok(write_status(ctx, &path, binding, outcome).await? || news)
}

/// The status aggregator writes other fields at the same time. As long as the generation is the one that was decided
/// upon, the decision holds.
async fn write_status(
    ctx: &Ctx,
    path: &Path,
    mut binding: Binding,
    outcome: &Placement,
) -> Result<bool, Error> {
    let mut tries = 0;
    loop {
        let before = binding.status.clone();
        outcome.write_status(&mut binding, (ctx.now)());
        if binding.status == before {
            return Ok(false);
        }
        let metadata = &binding.metadata;
        let version = &metadata.resource_version;
        tries += 1;
        let error = match ctx.control.write_status(path, version, &before, &binding.status).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_conflict() && tries < STATUS_WRITE_ATTEMPTS_MAX => error,
            Err(error) => return Err(error),
        };
        let fresh = ctx.control.get::<Binding>(path).await?;
        let same = |fresh: &Binding| {
            fresh.metadata.uid == metadata.uid && fresh.metadata.generation == metadata.generation
        };
        binding = fresh.filter(same).ok_or(error)?;
    }
}

fn record_events(ctx: &Ctx, binding: &Binding, outcome: &Placement, start: Instant, error: Option<&Error>) {
    let (trigger, tried, failure) = match outcome {
        // It was placed before it was created, and no event has been recorded.
        Placement::Unchanged if binding.status.last_scheduled_time.is_none() => {
            (&Trigger::Nowhere, &Vec::new(), None)
        }
        Placement::Skipped(_) | Placement::Left { .. } | Placement::Unchanged => return,
        Placement::Scheduled(schedule) => (&schedule.trigger, &schedule.tried, None),
        Placement::Nowhere { trigger, tried, failure } | Placement::Kept { trigger, tried, failure, .. } => {
            (trigger, tried, Some(failure.to_string()))
        }
    };
    let failure = error.map(ToString::to_string).or(failure);
    let result = if failure.is_none() { "scheduled" } else { "error" };
    let labels = [("result", result), ("schedule_type", trigger.schedule_type())];
    ctx.metrics.count("karmada_scheduler_schedule_attempts_total", &labels);
    ctx.metrics.observe_since("karmada_scheduler_e2e_scheduling_duration_seconds", &labels, start);
    let about = || [Regarding::from(binding), Regarding::template_of(binding)];
    let failed =
        |why: &str| ctx.record_event(about(), COMPONENT, EventType::Warning, "ScheduleBindingFailed", why);
    for Attempt { failure, .. } in tried {
        failed(&failure.to_string());
    }
    match (outcome, failure) {
        (Placement::Scheduled(_) | Placement::Unchanged, None) => {
            let clusters = match outcome {
                Placement::Scheduled(schedule) => &schedule.clusters,
                _ => &binding.spec.clusters,
            };
            // The cluster-scoped message lacks the colon in Karmada too.
            let colon = if binding.metadata.namespace.is_empty() { "" } else { ":" };
            let result = listed(clusters);
            let message = format!("Binding has been scheduled successfully. Result{colon} {result}");
            ctx.record_event(about(), COMPONENT, EventType::Normal, "ScheduleBindingSucceed", &message);
        }
        // With several affinity groups the last error is the first group's, which was recorded already.
        (_, Some(why)) if error.is_some() || tried.is_empty() => failed(&why),
        _ => {}
    }
}
