//! What a step means for people: a condition, and what changed since the last one, for events.

use api::rollout_progress::ROLLED_OUT;
use api::{Condition, RolloutPhase, RolloutProgress};

use crate::conditions;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// What.
    pub what: Happened,
    /// The same for people.
    pub message: String,
}

/// What happened to a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It took the place of one in flight.
    Superseded,
    /// It started.
    Started,
    /// A stage has passed.
    StagePassed,
    /// A stage began.
    StageStarted,
    /// A cluster failed.
    ClusterFailed,
    /// It waits for a person or another revision.
    Paused,
    /// It ended without success.
    Failed,
    /// It is through.
    Succeeded,
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
    let revision = &after.revision;
    let same = before.filter(|before| before.revision == *revision);
    let mut found = Vec::new();
    if same.is_none() {
        if !after.supersedes.is_empty() {
            let message = format!("Revision {revision} supersedes {}", after.supersedes);
            found.push(News { what: Happened::Superseded, message });
        }
        found.push(News {
            what: Happened::Started,
            message: format!("Rollout of revision {revision} started"),
        });
    }
    let was_stage = same.map_or("", |before| before.stage.as_str());
    if was_stage != after.stage {
        if !was_stage.is_empty() {
            found.push(News {
                what: Happened::StagePassed,
                message: format!("Stage {was_stage} of {revision} passed"),
            });
        }
        if !after.stage.is_empty() {
            found.push(News {
                what: Happened::StageStarted,
                message: format!("Stage {} of {revision} started", after.stage),
            });
        }
    }
    let knew = |name: &str| {
        same.is_some_and(|before| before.failed_clusters.iter().any(|failure| failure.name == name))
    };
    for failure in after.failed_clusters.iter().filter(|failure| !knew(&failure.name)) {
        let message = format!("{} failed: {}", failure.name, failure.message);
        found.push(News { what: Happened::ClusterFailed, message });
    }
    if same.map(|before| (before.phase, &before.reason)) != Some((after.phase, &after.reason)) {
        let message = format!("Revision {revision}: {}", after.message);
        let what = match after.phase {
            RolloutPhase::Paused => Some(Happened::Paused),
            RolloutPhase::Failed => Some(Happened::Failed),
            RolloutPhase::Succeeded => Some(Happened::Succeeded),
            RolloutPhase::Pending | RolloutPhase::Progressing => None,
        };
        found.extend(what.map(|what| News { what, message }));
    }
    found
}
