//! What a step means for people: a condition, and events for what changed since the last one.

use api::rollout_progress::ROLLED_OUT;
use api::{Condition, RolloutPhase, RolloutProgress};

use crate::conditions;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Whether a person should look.
    pub warning: bool,
    /// For programs.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// The condition that says whether a rollout is through.
pub fn condition(progress: &RolloutProgress) -> Condition {
    let done = progress.phase == RolloutPhase::Succeeded;
    let superseded = match progress.supersedes.as_str() {
        "" => String::new(),
        earlier => format!("; it took the place of revision {earlier}, which was in flight"),
    };
    let message = format!("Revision {}: {}{superseded}.", progress.revision, progress.message);
    conditions::condition(ROLLED_OUT, done.into(), &progress.reason, &message)
}

/// What changed from one state of a rollout to the next.
pub fn news(before: Option<&RolloutProgress>, after: &RolloutProgress) -> Vec<News> {
    let normal = |reason, message| News { warning: false, reason, message };
    let warning = |reason, message| News { warning: true, reason, message };
    let revision = &after.revision;
    let same = before.filter(|before| before.revision == *revision);
    let mut found = Vec::new();
    if same.is_none() {
        if !after.supersedes.is_empty() {
            let message = format!("Revision {revision} supersedes {}", after.supersedes);
            found.push(normal("RolloutSuperseded", message));
        }
        found.push(normal("RolloutStarted", format!("Rollout of revision {revision} started")));
    }
    let was_stage = same.map_or("", |before| before.stage.as_str());
    if was_stage != after.stage {
        if !was_stage.is_empty() {
            found.push(normal("RolloutStagePassed", format!("Stage {was_stage} of {revision} passed")));
        }
        if !after.stage.is_empty() {
            found.push(normal("RolloutStageStarted", format!("Stage {} of {revision} started", after.stage)));
        }
    }
    let knew = |name: &str| {
        same.is_some_and(|before| before.failed_clusters.iter().any(|failure| failure.name == name))
    };
    for failure in after.failed_clusters.iter().filter(|failure| !knew(&failure.name)) {
        let message = format!("{} failed: {}", failure.name, failure.message);
        found.push(warning("RolloutClusterFailed", message));
    }
    if same.map(|before| (before.phase, &before.reason)) != Some((after.phase, &after.reason)) {
        let message = format!("Revision {revision}: {}", after.message);
        match after.phase {
            RolloutPhase::Paused => found.push(warning("RolloutPaused", message)),
            RolloutPhase::Failed => found.push(warning("RolloutFailed", message)),
            RolloutPhase::Succeeded => found.push(normal("RolloutSucceeded", message)),
            RolloutPhase::Pending | RolloutPhase::Progressing => {}
        }
    }
    found
}
