//! Reports a delivery: as the Work's status, as events and as metrics. Writes to no member.

use api::work::{APPLIED, DISPATCHING, Health, ManifestStatus, WorkStatus};
use api::{Condition, ConditionStatus, Work, annotations, names};
use decide::conditions;
use decide::status::manifest_status;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::text;
use crate::ctx::Ctx;
use crate::events::{EventType, Regarding};
use crate::metrics;

const COMPONENT: &str = "execution-controller";
const STATUS_COMPONENT: &str = "work-status-controller";
const DONE: &str = "Manifest has been successfully applied";

/// How it went with one manifest.
pub enum Outcome {
    /// Nothing was written, because the Work is held. The member's object, if there is one.
    Held(Option<Value>),
    /// The member has it. The object now.
    Has(Value),
    /// The member has it because it was written just now.
    Written {
        /// The object now.
        object: Value,
        /// The object had been deleted in the member.
        recreating: bool,
        /// This state of the Work had not been written before.
        first: bool,
    },
    /// It could not be written.
    Failed {
        /// Why.
        why: String,
        /// The object had been deleted in the member.
        recreating: bool,
    },
}

/// Whether the member once had what the Work says now.
pub fn was_applied(work: &Work) -> bool {
    conditions::find(&work.status.conditions, APPLIED).is_some_and(|applied| {
        applied.status == ConditionStatus::True && applied.observed_generation == work.metadata.generation
    })
}

/// Whether the member received the object for the first time. A repair is reported immediately, or it would never be
/// while a client keeps undoing it.
pub fn is_first_delivery(outcomes: &[Outcome]) -> bool {
    let first =
        |outcome: &Outcome| matches!(outcome, Outcome::Written { first: true, recreating: false, .. });
    !outcomes.is_empty() && outcomes.iter().all(first)
}

/// Puts the outcomes into what becomes the Work's status.
pub fn report(work: &Work, status: &mut WorkStatus, outcomes: &[Outcome], now: Timestamp) {
    // A Work that is held keeps its last condition.
    if !outcomes.iter().any(|outcome| matches!(outcome, Outcome::Held(_))) {
        let mut condition = applied(work, outcomes);
        // The next leader reads here which generation of the Work the member has.
        condition.observed_generation = work.metadata.generation;
        conditions::set(&mut status.conditions, condition, now);
    }
    if conditions::status(&status.conditions, APPLIED) != Some(ConditionStatus::True) {
        return;
    }
    let objects = outcomes.iter().enumerate().filter_map(|(place, outcome)| match outcome {
        Outcome::Held(Some(object)) | Outcome::Has(object) | Outcome::Written { object, .. } => {
            let mut reported = manifest_status(object);
            reported.identifier.ordinal = i64::try_from(place).unwrap_or(i64::MAX);
            Some(reported)
        }
        Outcome::Held(None) | Outcome::Failed { .. } => None,
    });
    let statuses: Vec<_> = objects.collect();
    // A suspended object that was deleted in the member keeps its last known status.
    if !statuses.is_empty() {
        status.manifest_statuses = statuses;
    }
}

/// The `Applied` condition in Karmada's words, which distinguish a first delivery from one after a deletion.
fn applied(work: &Work, outcomes: &[Outcome]) -> Condition {
    let reported =
        |status, reason: &str, message: &str| conditions::condition(APPLIED, status, reason, message);
    let failures: Vec<&str> = outcomes.iter().filter_map(failure).collect();
    if !failures.is_empty() {
        let all = failures.join("; ");
        if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed { recreating: true, .. })) {
            return reported(ConditionStatus::False, "ReCreateFailed", &all);
        }
        let (total, done) = (outcomes.len(), outcomes.len() - failures.len());
        let message = format!("Failed to apply all manifests ({done}/{total}): {all}");
        return reported(ConditionStatus::False, "AppliedFailed", &message);
    }
    let before = conditions::find(&work.status.conditions, APPLIED);
    // What was said of another state of the Work says nothing of how the member came to this one.
    let of_this = |before: &&Condition| before.observed_generation == work.metadata.generation;
    let before = before.filter(|before| before.status == ConditionStatus::True).filter(of_this);
    let written = |outcome: &Outcome| matches!(outcome, Outcome::Written { .. });
    match before {
        // Without a write the condition stays as it was.
        Some(before) if !outcomes.iter().any(written) => before.clone(),
        _ if outcomes.iter().any(|one| matches!(one, Outcome::Written { recreating: true, .. })) => {
            reported(ConditionStatus::True, "ReCreateSuccessful", DONE)
        }
        _ => reported(ConditionStatus::True, "AppliedSuccessful", DONE),
    }
}

fn failure(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Failed { why, .. } => Some(why),
        _ => None,
    }
}

fn cluster(work: &Work) -> &str {
    names::cluster_of_execution_namespace(&work.metadata.namespace).unwrap_or_default()
}

/// Records the writes to the member and their duration; they happened, whether or not the status write succeeds.
pub fn record_writes(ctx: &Ctx, work: &Work, outcomes: &[Outcome], start: Instant) {
    let failed = outcomes.iter().any(|outcome| failure(outcome).is_some());
    let written: Vec<&Value> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Written { object, .. } => Some(object),
            _ => None,
        })
        .collect();
    if failed || !written.is_empty() {
        let result = [("result", metrics::result(!failed))];
        ctx.metrics.observe_since("work_sync_workload_duration_seconds", &result, start);
    }
    let cluster = cluster(work);
    for object in &written {
        let message =
            format!("Successfully applied resource({}) to cluster {cluster}", namespaced_name(object));
        ctx.record_event(template(object), COMPONENT, EventType::Normal, "SyncSucceed", &message);
    }
    if !failed && !written.is_empty() {
        let api::ObjectMeta { namespace, name, .. } = &work.metadata;
        let message = format!("Sync work({namespace}/{name}) to cluster({cluster}) successful.");
        ctx.record_event([Regarding::from(work)], COMPONENT, EventType::Normal, "SyncSucceed", &message);
    }
}

/// Records events for what changed in the Work's status.
pub fn record_status_changes(ctx: &Ctx, work: &Work, after: &WorkStatus) {
    let before = &work.status;
    let find = |status: &WorkStatus, kind: &str| conditions::find(&status.conditions, kind).cloned();
    let about = || Regarding::from(work);
    if let Some(is) = find(after, DISPATCHING)
        && find(before, DISPATCHING).map(|was| was.status) != Some(is.status)
    {
        ctx.record_event([about()], COMPONENT, EventType::Normal, "WorkDispatching", &is.message);
    }
    let failed = find(after, APPLIED).filter(|applied| applied.status == ConditionStatus::False);
    if let Some(failed) = failed
        && find(before, APPLIED).is_none_or(|was| was.message != failed.message)
    {
        let (cluster, why) = (cluster(work), &failed.message);
        let api::ObjectMeta { namespace, name, .. } = &work.metadata;
        let message = format!("Failed to sync work({namespace}/{name}) to cluster({cluster}), err: {why}");
        ctx.record_event([about()], COMPONENT, EventType::Warning, "SyncFailed", &message);
        for manifest in &work.spec.workload.manifests {
            let place = namespaced_name(manifest);
            let message =
                format!("Failed to create or update resource({place}) in member cluster({cluster}): {why}");
            ctx.record_event(template(manifest), COMPONENT, EventType::Warning, "SyncFailed", &message);
        }
    }
    let was = |reported: &ManifestStatus| {
        before.manifest_statuses.iter().find(|was| was.identifier == reported.identifier)
    };
    for reported in &after.manifest_statuses {
        record_manifest_changes(ctx, work, was(reported), reported);
    }
}

fn record_manifest_changes(ctx: &Ctx, work: &Work, was: Option<&ManifestStatus>, is: &ManifestStatus) {
    let place = &is.identifier;
    let object = format!("{}/{}/{}", place.kind, place.namespace, place.name);
    let record = |reason: &'static str, message: String| {
        ctx.record_event([Regarding::from(work)], STATUS_COMPONENT, EventType::Normal, reason, &message);
    };
    if was.is_none_or(|was| was.status != is.status) {
        record("ReflectStatusSucceed", format!("Reflect status for object({object}) succeed."));
    }
    if was.is_none_or(|was| was.health != is.health) {
        let health = if is.health == Some(Health::Healthy) { "healthy" } else { "unhealthy" };
        record("InterpretHealthSucceed", format!("Interpret health of object({object}) as {health}."));
    }
}

fn namespaced_name(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{}/{}", text(metadata, "namespace"), text(metadata, "name"))
}

/// The template of a manifest; none if it does not say.
fn template(manifest: &Value) -> Option<Regarding> {
    let uid = manifest["metadata"]["annotations"][annotations::TEMPLATE_UID].as_str()?;
    Some(Regarding {
        api_version: text(manifest, "apiVersion").to_owned(),
        kind: text(manifest, "kind").to_owned(),
        namespace: text(&manifest["metadata"], "namespace").to_owned(),
        name: text(&manifest["metadata"], "name").to_owned(),
        uid: uid.to_owned(),
    })
}

/// Numbers about one object in one member.
pub struct Counted<'a> {
    /// The member.
    pub cluster: &'a str,
    /// What was written there.
    pub manifest: &'a Value,
}

impl Counted<'_> {
    /// Counts an attempt to write, given the object before and, if that went well, after.
    pub fn applied(&self, ctx: &Ctx, before: Option<&Value>, recreating: bool, after: Option<&Value>) {
        let operation = match (before, after) {
            (None, _) => {
                let recreate = if recreating { "true" } else { "false" };
                return self.count(
                    ctx,
                    "create_resource_to_cluster",
                    after.is_some(),
                    ("recreate", recreate),
                );
            }
            (_, None) => "none",
            (Some(before), Some(after)) if super::revision(before) == super::revision(after) => "unchanged",
            _ => "updated",
        };
        self.count(ctx, "update_resource_to_cluster", after.is_some(), ("operationResult", operation));
    }

    /// Counts an attempt to delete.
    pub fn deleted(&self, ctx: &Ctx, done: bool) {
        ctx.metrics.count("delete_resource_from_cluster", &self.labels(done));
    }

    fn labels(&self, done: bool) -> [(&'static str, &str); 4] {
        let (api_version, kind) = (text(self.manifest, "apiVersion"), text(self.manifest, "kind"));
        let result = metrics::result(done);
        [("result", result), ("apiversion", api_version), ("kind", kind), ("member_cluster", self.cluster)]
    }

    fn count(&self, ctx: &Ctx, name: &'static str, done: bool, more: (&'static str, &str)) {
        let [result, api_version, kind, cluster] = self.labels(done);
        ctx.metrics.count(name, &[result, api_version, kind, cluster, more]);
    }
}
