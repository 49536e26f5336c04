//! The start check of controllers: other feature gates than those of the last start may move or delete what no user
//! asked for, and the budget bounds that as it bounds every other act (M4). Reads; starts nothing.

use controllers::gates::FeatureGates;
use controllers::rest::{Collection, Error, Rest};
use controllers::snapshot::{self, list_snapshot};
use decide::budget::{self, Budget, Effects, approval};
use decide::plan::{Plan, restarted};
use decide::snapshot::Interpreters;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::install::{GATES, NoteError, PUBLIC_NAMESPACE, note_path, published_gates};

/// On the note about the feature gates: why controllers that were started do not run.
const HELD_START: &str = "longshore.io/held-start";

/// A start that would do more than a budget allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldStart {
    /// What it would do, and what is allowed.
    pub why: String,
    /// What accepts it.
    pub digest: String,
    /// The gates of the last start that are not at their default.
    pub before: Vec<String>,
}

/// Why the start check failed.
#[derive(Debug, thiserror::Error)]
pub enum HeldError {
    /// Which gates there were is not known.
    #[error(transparent)]
    Gates(#[from] NoteError),
    /// What there is cannot be read.
    #[error(transparent)]
    Snapshot(#[from] snapshot::Error),
}

/// What starting with these switches would do beyond the budget; none where the switches are those of the last start,
/// where this is the first, or where it keeps to the budget.
pub async fn held_start(
    control: &Rest,
    feature_gates: &FeatureGates,
    budget: Budget,
    now: Timestamp,
) -> Result<Option<HeldStart>, HeldError> {
    let is_first = control.get::<Value>(&note_path()).await.map_err(NoteError::from)?.is_none();
    let before = published_gates(control).await?;
    if is_first || before == *feature_gates {
        return Ok(None);
    }
    let snapshot = list_snapshot(control, before.gates.clone(), now).await?.snapshot;
    let plan = restarted(&snapshot, feature_gates.gates.clone(), Interpreters::BUILT_IN);
    Ok(judged(&snapshot, &plan, budget).map(|(why, digest)| HeldStart {
        why,
        digest,
        before: before.changed(),
    }))
}

/// Why a restart with this plan has to wait, and what accepts it; none if it may go on.
pub fn judged(snapshot: &decide::Snapshot, plan: &Plan, budget: Budget) -> Option<(String, String)> {
    let excess = budget::excess(snapshot, plan, budget, |_| Effects::default())?;
    let why = format!("{excess}. {}", plan.totals);
    Some((why, approval(snapshot, plan, &budget::Subject::default())))
}

/// Publishes for clients that the controllers' start is held, or that it no longer is.
pub async fn publish_held_start(control: &Rest, held: Option<&HeldStart>) -> Result<(), Error> {
    let why = held.map(|held| held.why.as_str());
    let patch = json!({ "metadata": { "annotations": { HELD_START: why } } });
    control.merge(&note_path(), &patch).await?;
    match held {
        Some(held) => {
            control.create(&Collection::new("v1", "events", PUBLIC_NAMESPACE), &event(held)).await.map(drop)
        }
        None => Ok(()),
    }
}

fn event(held: &HeldStart) -> Value {
    let note =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": PUBLIC_NAMESPACE, "name": GATES });
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "generateName": "held-start-", "namespace": PUBLIC_NAMESPACE },
        "type": "Warning",
        "reason": "StartHeld",
        "message": format!("The controllers do not run, because with their feature gates {}", held.why),
        "involvedObject": note,
        "source": { "component": "longshore" },
    })
}

/// Why the controllers do not run; none if no start is held.
pub async fn published_held_start(control: &Rest) -> Result<Option<String>, Error> {
    let note: Option<Value> = control.get(&note_path()).await?;
    let why = note.as_ref().and_then(|note| note["metadata"]["annotations"][HELD_START].as_str());
    Ok(why.map(str::to_owned))
}
