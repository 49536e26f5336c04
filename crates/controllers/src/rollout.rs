//! Rollouts in stages: writes what `decide` says about the progress of a binding's rollout, with its events. The binding
//! controller asks for it after it has looked at the Works; which Works may change is decided from what is written here.

use api::rollout_progress::ROLLED_OUT;
use api::{Binding, BindingRollout, Work};
use decide::conditions;
use decide::rollout::{Happened, Step, condition, news};
use decide::works::{Works, advance};
use serde_json::{Value, json};

use crate::ctx::{Ctx, bindings};
use crate::events::{EventType, Regarding};
use crate::rest::Error;
use crate::runtime::Action;

const COMPONENT: &str = "rollout-controller";

/// Takes the next step of a binding's rollout and says when to look again.
pub async fn reconcile(
    ctx: &Ctx,
    binding: &Binding,
    works: &Works,
    existing: &[Work],
) -> Result<Action, Error> {
    if binding.metadata.deletion_timestamp.is_some() {
        return Ok(Action::AwaitChange);
    }
    let clusters = ctx.cache.snapshot().clusters.clone();
    match advance(binding, works, existing, &clusters, (ctx.now)()) {
        Some(step) => {
            record(ctx, binding, &step).await?;
            Ok(step.look_again.map_or(Action::AwaitChange, Action::RequeueAfter))
        }
        None if is_left_over(binding, works) => {
            let cleared = write_spec(ctx, binding, None).await?;
            write_status(ctx, &cleared, None).await?;
            Ok(Action::AwaitChange)
        }
        None => Ok(Action::AwaitChange),
    }
}

/// Whether a strategy was taken away: what was recorded under it counts no more.
fn is_left_over(binding: &Binding, works: &Works) -> bool {
    let has_record = binding.status.rollout.is_some() || recorded(binding).is_some();
    let staged = api::records::StrategyRecord::read(&binding.metadata).is_some();
    has_record && !staged && works.staged.is_none()
}

/// The progress is written before what may go where: a controller that stops between the two has delivered nothing, and
/// the next one comes to the same answer.
async fn record(ctx: &Ctx, binding: &Binding, step: &Step) -> Result<(), Error> {
    let seen = binding.status.rollout.clone();
    let binding = write_status(ctx, binding, Some(step)).await?;
    for one in news(seen.as_ref(), &step.progress) {
        let (event_type, reason) = event(one.what);
        let about = [Regarding::from(&binding), Regarding::template_of(&binding)];
        ctx.record_event(about, COMPONENT, event_type, reason, &one.message);
    }
    write_spec(ctx, &binding, step.rollout.as_ref()).await.map(drop)
}

fn event(what: Happened) -> (EventType, &'static str) {
    match what {
        Happened::Superseded => (EventType::Normal, "RolloutSuperseded"),
        Happened::Started => (EventType::Normal, "RolloutStarted"),
        Happened::StagePassed => (EventType::Normal, "RolloutStagePassed"),
        Happened::StageStarted => (EventType::Normal, "RolloutStageStarted"),
        Happened::ClusterFailed => (EventType::Warning, "RolloutClusterFailed"),
        Happened::Paused => (EventType::Warning, "RolloutPaused"),
        Happened::Failed => (EventType::Warning, "RolloutFailed"),
        Happened::Succeeded => (EventType::Normal, "RolloutSucceeded"),
    }
}

fn recorded(binding: &Binding) -> Option<&BindingRollout> {
    binding.spec.suspension.as_ref()?.rollout.as_ref()
}

async fn write_spec(
    ctx: &Ctx,
    binding: &Binding,
    rollout: Option<&BindingRollout>,
) -> Result<Binding, Error> {
    if recorded(binding) == rollout {
        return Ok(binding.clone());
    }
    let mut suspension = binding.spec.suspension.clone().unwrap_or_default();
    suspension.rollout = rollout.cloned();
    let mut text = match suspension == api::binding::BindingSuspension::default() {
        true => Value::Null,
        false => serde_json::to_value(&suspension).expect("our objects always serialise"),
    };
    if rollout.is_none() && text.is_object() {
        text["rollout"] = Value::Null;
    }
    let patch = json!({
        "metadata": { "resourceVersion": binding.metadata.resource_version },
        "spec": { "suspension": text },
    });
    ctx.control.merge_into(&path(binding), &patch).await
}

async fn write_status(ctx: &Ctx, binding: &Binding, step: Option<&Step>) -> Result<Binding, Error> {
    let mut next = binding.clone();
    next.status.rollout = step.map(|step| step.progress.clone());
    match step {
        Some(step) => {
            conditions::set(&mut next.status.conditions, condition(&step.progress), (ctx.now)());
        }
        None => next.status.conditions.retain(|condition| condition.kind != ROLLED_OUT),
    }
    if next.status != binding.status {
        let version = &binding.metadata.resource_version;
        let written =
            ctx.control.write_status(&path(binding), version, &binding.status, &next.status).await?;
        next.metadata.resource_version = written.metadata.resource_version;
    }
    Ok(next)
}

fn path(binding: &Binding) -> crate::rest::Path {
    let key = decide::BindingKey {
        namespace: binding.metadata.namespace.clone(),
        name: binding.metadata.name.clone(),
    };
    bindings(&key).object(&key.name)
}
