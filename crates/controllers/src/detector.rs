//! The resource detector: decides through `decide` which policy claims a template and whether its binding follows, and
//! writes both: the claim on the template, and the binding.

use decide::claim::{Claim, ClaimReason};
use decide::propagation::Propagation;
use decide::snapshot::Interpreters;
use decide::{PolicyKey, TemplateKey};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::ctx::{Ctx, bindings};
use crate::events::{EventType, Regarding};
use crate::rest::Error;
use crate::runtime::Action;
use crate::{dependencies, metrics, policy_status, scheduler};

const COMPONENT: &str = "resource-detector";

/// Brings one template's claim and binding in line.
///
/// The claim is written first, with the record of how things stood; the binding follows. Stopping between the
/// two changes nothing, because the next reconcile reads the record instead of judging anew:
/// - claimed, no binding yet: the record says whether the template waits for its user (R3), so a lazy claim
///   still waits and any other still acts. The other way round, a template without a claim that has a binding
///   is what static mode leaves alone (S4), and its claim would never come.
/// - claimed by another policy, binding still of the old one: the pin shows what the binding follows, the
///   record what the new owner found, which is all that activation asks for.
/// - un-claimed, binding still marked: an unclaimed reconcile takes the marks off the binding. The policy may be
///   gone by then; nothing of it is needed.
/// - waiting list (S3): the mark stays until the pin shows that the successor acted, so it takes a second
///   reconcile to remove it, which comes with the binding's own change.
///
/// Both writes carry the resourceVersion that was decided upon: after a concurrent write this one fails, and the
/// reconcile is repeated with the new state. Creating a binding that the cache does not know yet fails as well.
pub async fn reconcile(ctx: &Ctx, key: &TemplateKey) -> Result<Action, Error> {
    // Read everything the decision needs, once, and decide.
    let start = Instant::now();
    let evaluated = evaluate(ctx, key);
    // Others count and attach what is there, or is no more.
    policy_status::recount(ctx, key);
    let Some((propagation, seen)) = evaluated else { return delete_orphaned_binding(ctx, key).await };
    dependencies::enqueue_attached(ctx, key);
    if matches!(propagation.claim, Claim::Taken(..)) {
        ctx.metrics.observe_since("resource_match_policy_duration_seconds", &[], start);
    }
    if let Some(marks) = &propagation.template
        && let Some(path) = ctx.template_path(key)
    {
        let written = ctx.control.merge(&path, &marks_patch(&seen, marks)).await;
        record_preemption(ctx, &seen, &propagation, written.as_ref().err());
        written?;
    }
    if let Some(binding) = &propagation.binding {
        let start = Instant::now();
        let mut binding = binding.clone();
        if binding.metadata.resource_version.is_empty() {
            scheduler::place_new(ctx, &mut binding);
        }
        let written = ctx.write_binding(&key.binding(), &binding).await;
        record_policy_applied(ctx, &seen, &propagation, start, written.as_ref().err());
        written?;
    }
    if let Some(refusal) = &propagation.refusal {
        // The error persists until an object changes, however often the template is reconciled.
        if let Some(message) = failure(&propagation, &refusal.to_string()) {
            let about = seen.regarding.clone();
            ctx.record_standing_event(about, COMPONENT, EventType::Warning, "ApplyPolicyFailed", &message);
        }
    }
    Ok(Action::AwaitChange)
}

/// Deletes the binding of a template that is gone. The garbage collector does that, except where the kind itself is
/// gone: then it cannot tell that the owner no longer exists.
async fn delete_orphaned_binding(ctx: &Ctx, key: &TemplateKey) -> Result<Action, Error> {
    let binding = ctx.cache.binding(&key.binding()).filter(|binding| TemplateKey::of(binding) == *key);
    if let Some(binding) = binding.filter(|binding| binding.metadata.deletion_timestamp.is_none())
        && ctx.cache.served().is_gone(&key.api_version, &key.kind)
    {
        let path = bindings(&key.binding()).object(&binding.metadata.name);
        ctx.control.delete(&path, Some(&binding.metadata.uid)).await?;
    }
    Ok(Action::AwaitChange)
}

/// The policy in Karmada's words.
fn policy_text(policy: &PolicyKey) -> String {
    match policy.namespace.as_str() {
        "" => format!("cluster policy({})", policy.name),
        namespace => format!("policy({namespace}/{})", policy.name),
    }
}

fn record_policy_applied(
    ctx: &Ctx,
    seen: &SeenTemplate,
    decided: &Propagation,
    start: Instant,
    error: Option<&Error>,
) {
    // A write conflict, most often with our own write: the next reconcile sees the new state, and no event is needed.
    if error.is_some_and(Error::is_conflict) {
        return;
    }
    // A binding that only lost its claim was not made by a policy.
    let Some(policy) = decided.claim.policy() else { return };
    let result = [("result", metrics::result(error.is_none()))];
    ctx.metrics.count("policy_apply_attempts_total", &result);
    ctx.metrics.observe_since("resource_apply_policy_duration_seconds", &result, start);
    if let Some(message) = error.and_then(|error| failure(decided, &error.to_string())) {
        let about = [seen.regarding.clone()];
        return ctx.record_event(about, COMPONENT, EventType::Warning, "ApplyPolicyFailed", &message);
    }
    let message = format!("Apply {} succeed", policy_text(&policy.key));
    let (api_version, kind) = (seen.regarding.api_version.as_str(), seen.regarding.kind.as_str());
    // A Pod is always one, which is an answer too.
    if decide::interpret::has_replicas(api_version, kind) || (api_version, kind) == ("v1", "Pod") {
        let message = "Get replicas of resource template successfully.";
        ctx.record_event(
            [seen.regarding.clone()],
            COMPONENT,
            EventType::Normal,
            "GetReplicasSucceed",
            message,
        );
    }
    ctx.record_event([seen.regarding.clone()], COMPONENT, EventType::Normal, "ApplyPolicySucceed", &message);
}

/// Why a policy could not be applied, in Karmada's words; none if there is no policy.
fn failure(decided: &Propagation, why: &str) -> Option<String> {
    Some(format!("Apply {} failed: {why}", policy_text(&decided.claim.policy()?.key)))
}

fn record_preemption(ctx: &Ctx, seen: &SeenTemplate, decided: &Propagation, error: Option<&Error>) {
    let ClaimReason::Preempted { by, from, .. } = &decided.claim.why().reason else { return };
    if error.is_some_and(Error::is_conflict) {
        return;
    }
    ctx.metrics.count("policy_preemption_total", &[("result", metrics::result(error.is_none()))]);
    let policy = |key: &PolicyKey| match key.namespace.as_str() {
        "" => format!("cluster propagation policy({})", key.name),
        namespace => format!("propagation policy({namespace}/{})", key.name),
    };
    let mut by = policy(by);
    by[..1].make_ascii_uppercase();
    let from = policy(from);
    let (event_type, reason, message) = match error {
        None => (EventType::Normal, "PreemptPolicySucceed", format!("{by} preempted {from} successfully")),
        Some(error) => {
            (EventType::Warning, "PreemptPolicyFailed", format!("{by} failed to preempt {from}: {error}"))
        }
    };
    ctx.record_event([seen.regarding.clone()], COMPONENT, event_type, reason, &message);
}

/// What a template evaluated like when it was decided about.
struct SeenTemplate {
    regarding: Regarding,
    resource_version: String,
    labels: std::collections::BTreeMap<String, String>,
    annotations: std::collections::BTreeMap<String, String>,
}

fn evaluate(ctx: &Ctx, key: &TemplateKey) -> Option<(Propagation, SeenTemplate)> {
    let snapshot = ctx.cache.snapshot();
    let propagation = snapshot.look(key, Interpreters::BUILT_IN)?;
    let template = snapshot.templates.get(key)?;
    let seen = SeenTemplate {
        regarding: Regarding::from(&**template),
        resource_version: template.resource_version.clone(),
        labels: template.labels.clone(),
        annotations: template.annotations.clone(),
    };
    Some((propagation, seen))
}

/// The labels and annotations that change; the resourceVersion makes the patch fail after a concurrent write.
fn marks_patch(seen: &SeenTemplate, marks: &decide::claim::record::Marks) -> Value {
    json!({
        "metadata": {
            "resourceVersion": seen.resource_version,
            "labels": difference(&seen.labels, &marks.labels),
            "annotations": difference(&seen.annotations, &marks.annotations),
        },
    })
}

fn difference(
    before: &std::collections::BTreeMap<String, String>,
    after: &std::collections::BTreeMap<String, String>,
) -> Map<String, Value> {
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
    gone.chain(changed.map(|(key, value)| (key.clone(), value.as_str().into()))).collect()
}
