//! How a delivery went, as the Work's status and as news for users. Writes to no member.

use api::work::{APPLIED, DISPATCHING};
use api::{ConditionStatus, Work, annotations};
use decide::conditions;
use decide::status::manifest_status;
use jiff::Timestamp;
use serde_json::Value;

use crate::ctx::Ctx;
use crate::events::{Regarding, Tone};

const COMPONENT: &str = "execution-controller";

/// How it went with one manifest.
pub enum Outcome {
    /// Nothing was written, because the Work is held. The member's object, if there is one.
    Held(Option<Value>),
    /// The member has it. The object now.
    Has(Value),
    /// The member has it because it was written just now.
    Written(Value),
    /// It could not be written, and why.
    Failed(String),
}

/// Puts the outcomes into the Work's status.
pub fn report(work: &mut Work, outcomes: &[Outcome], now: Timestamp) {
    let failures: Vec<&str> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Failed(why) => Some(why.as_str()),
            _ => None,
        })
        .collect();
    // What is held keeps its last word.
    if !outcomes.iter().any(|outcome| matches!(outcome, Outcome::Held(_))) {
        let total = outcomes.len();
        let mut condition = match failures.is_empty() {
            true => conditions::condition(
                APPLIED,
                ConditionStatus::True,
                "AppliedSuccessful",
                "Manifest has been successfully applied",
            ),
            false => conditions::condition(
                APPLIED,
                ConditionStatus::False,
                "AppliedFailed",
                &format!(
                    "Failed to apply all manifests ({}/{total}): {}",
                    total - failures.len(),
                    failures.join("; ")
                ),
            ),
        };
        // Whoever takes over reads here which state of the Work the member has.
        condition.observed_generation = work.metadata.generation;
        conditions::set(&mut work.status.conditions, condition, now);
    }
    if conditions::status(&work.status.conditions, APPLIED) != Some(ConditionStatus::True) {
        return;
    }
    let objects = outcomes.iter().enumerate().filter_map(|(place, outcome)| match outcome {
        Outcome::Held(Some(object)) | Outcome::Has(object) | Outcome::Written(object) => {
            let mut status = manifest_status(object);
            status.identifier.ordinal = i64::try_from(place).unwrap_or(i64::MAX);
            Some(status)
        }
        Outcome::Held(None) | Outcome::Failed(_) => None,
    });
    let statuses: Vec<_> = objects.collect();
    // A held object that somebody deleted leaves the last that was known of it.
    if !statuses.is_empty() {
        work.status.manifest_statuses = statuses;
    }
}

/// Tells users about a delivery: what changed, and what was written.
pub fn tell(ctx: &Ctx, before: &Work, after: &Work, outcomes: &[Outcome]) {
    let find = |work: &Work, kind: &str| conditions::find(&work.status.conditions, kind).cloned();
    if let Some(is) = find(after, DISPATCHING)
        && find(before, DISPATCHING).map(|was| was.status) != Some(is.status)
    {
        ctx.tell([Regarding::from(after)], COMPONENT, Tone::Normal, "WorkDispatching", &is.message);
    }
    let applied = find(after, APPLIED);
    let failure = applied.as_ref().filter(|applied| applied.status == ConditionStatus::False);
    let (tone, reason, message) = match failure {
        Some(failure) if find(before, APPLIED).is_none_or(|was| was.message != failure.message) => {
            (Tone::Warning, "SyncFailed", failure.message.clone())
        }
        None if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Written(_))) => {
            let cluster = api::names::cluster_of_execution_namespace(&after.metadata.namespace);
            let message = format!("Successfully applied resource to cluster {}", cluster.unwrap_or_default());
            (Tone::Normal, "SyncSucceed", message)
        }
        _ => return,
    };
    let templates = after.spec.workload.manifests.iter().filter_map(template);
    ctx.tell(templates.chain([Regarding::from(after)]), COMPONENT, tone, reason, &message);
}

/// The template of a manifest; none if it does not say.
fn template(manifest: &Value) -> Option<Regarding> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let uid = manifest["metadata"]["annotations"][annotations::TEMPLATE_UID].as_str()?;
    Some(Regarding {
        api_version: text("/apiVersion").to_owned(),
        kind: text("/kind").to_owned(),
        namespace: text("/metadata/namespace").to_owned(),
        name: text("/metadata/name").to_owned(),
        uid: uid.to_owned(),
    })
}
