//! Plans each step with `decide::plan` and compares the plan with what then happened, which is read from the objects
//! and not asked of `decide` again. Knows neither files nor expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::Cluster;
use controllers::rest::Rest;
use controllers::snapshot::{list_snapshot, works};
use decide::Snapshot;
use decide::plan::{ClusterPlan, Plan, plan};
use decide::snapshot::{Change, Interpreters};
use serde_json::Value;

use crate::api_client::Answer;
use crate::error::PlayError;
use crate::reference::Reference;
use crate::simulated::Simulated;
use crate::step::Action;

mod observed;

use observed::Observed;

/// What is said about each template, one sentence each.
type Statements = BTreeMap<String, BTreeSet<String>>;

/// What a step is about to do, according to the plan.
pub struct PlanCheck {
    planned: Statements,
    before: Observed,
}

impl PlanCheck {
    /// Plans a step, of which the server says what it would make of it.
    pub async fn of(
        simulated: &Simulated,
        action: &Action,
        rehearsed: &[Answer],
        deleted: &[Value],
    ) -> Result<Option<Self>, PlayError> {
        let changes = changes(action, rehearsed, deleted);
        let (snapshot, before) = look(simulated).await?;
        if changes.iter().any(|change| joins(&snapshot, change) || is_going(change))
            || deleted.iter().any(is_kept)
        {
            return Ok(None);
        }
        let plan = plan(&snapshot, &changes, Interpreters::BUILT_IN)
            .map_err(|error| PlayError(error.to_string()))?;
        Ok(Some(Self { planned: said(&plan), before }))
    }

    /// Where the plan and what happened differ, one line each.
    pub async fn differences(&self, simulated: &Simulated) -> Result<Vec<String>, PlayError> {
        let (_, after) = look(simulated).await?;
        let happened = observed::happened(&self.before, &after);
        let names: BTreeSet<&String> = self.planned.keys().chain(happened.keys()).collect();
        let none = BTreeSet::new();
        let mut lines = Vec::new();
        for name in names {
            let planned = self.planned.get(name).unwrap_or(&none);
            let happened = happened.get(name).unwrap_or(&none);
            let line = |what: &str, said: &String| format!("{name}: {what}: {said}");
            let (waited, waits) = (self.before.waiting(name), after.waiting(name));
            // In which order stages come is in the plan; when each of them comes is decided by what clusters show.
            let comes_later = |said: &&String| is_about(said, &waits) || is_about(said, &waited);
            let missing = planned.difference(happened).filter(|said| !comes_later(said));
            lines.extend(missing.map(|said| line("planned, but did not happen", said)));
            let unforeseen = happened.difference(planned).filter(|said| !is_about(said, &waited));
            lines.extend(unforeseen.map(|said| line("happened, but was not planned", said)));
        }
        Ok(lines)
    }
}

/// Whether a statement is about one of these clusters.
fn is_about(said: &str, clusters: &BTreeSet<String>) -> bool {
    said.split_once(": ").is_some_and(|(cluster, _)| clusters.contains(cluster))
}

async fn look(simulated: &Simulated) -> Result<(Snapshot, Observed), PlayError> {
    let ctx = simulated.ctx();
    let control: Rest = simulated.rest();
    let trouble = |error: controllers::snapshot::Error| PlayError(format!("take a snapshot: {error}"));
    let read =
        list_snapshot(&control, ctx.feature_gates.gates.clone(), (ctx.now)()).await.map_err(trouble)?;
    let works = works(&control).await.map_err(trouble)?;
    let observed = Observed::of(&read.snapshot, &works);
    Ok((read.snapshot, observed))
}

/// Whether a change joins a cluster: which kinds it serves is known only after it has reported its API enablements.
fn joins(snapshot: &Snapshot, change: &Change) -> bool {
    let Change::Put(object) = change else { return false };
    let known = |cluster: &Cluster| object["metadata"]["name"] == cluster.metadata.name.as_str();
    object["kind"] == "Cluster" && !snapshot.clusters.iter().any(known)
}

/// Whether the finalizer of another component keeps an object: when it is removed cannot be planned.
fn is_kept(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.filter_map(Value::as_str).any(|one| !one.contains("karmada.io/"))
}

/// What is on its way out may be gone by the change.
fn is_going(change: &Change) -> bool {
    matches!(change, Change::Put(object) if !object["metadata"]["deletionTimestamp"].is_null())
}

/// What the server would accept of it.
fn changes(action: &Action, rehearsed: &[Answer], deleted: &[Value]) -> Vec<Change> {
    match action {
        Action::Delete(_) => rehearsed
            .iter()
            .zip(deleted)
            .filter(|(answer, _)| answer.done)
            .map(|(_, object)| delete(object))
            .collect(),
        _ => rehearsed
            .iter()
            .filter(|answer| answer.done)
            .map(|answer| Change::Put(Arc::new(answer.body.clone())))
            .collect(),
    }
}

fn delete(object: &Value) -> Change {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    Change::Delete {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    }
}

fn said(plan: &Plan) -> Statements {
    let mut statements = Statements::new();
    for (key, plan) in &plan.templates {
        let claim = plan.claim.iter().map(ToString::to_string);
        // In which order it happens cannot be seen when everything rests.
        let clusters = plan.clusters.iter().map(|(cluster, change)| {
            format!("{cluster}: {}", ClusterPlan::of(change.action, change.suspended))
        });
        let waits = plan.held.iter().map(|_| observed::WAITS.to_owned());
        statements.insert(key.clone(), claim.chain(clusters).chain(waits).collect());
    }
    statements
}

/// The objects that a step deletes, as they are before.
pub async fn deleted(
    api_client: &crate::api_client::ApiClient,
    references: &[Reference],
) -> Result<Vec<Value>, PlayError> {
    let mut objects = Vec::new();
    for reference in references {
        objects.push(api_client.get(reference).await?.unwrap_or_default());
    }
    Ok(objects)
}
