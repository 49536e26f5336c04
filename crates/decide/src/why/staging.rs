//! How a change spreads over the clusters of a template: which policy says so, how far it is, what each cluster waits
//! for and what would release it. Reads the record; decides nothing.

use std::fmt;

use api::records::StrategyRecord;
use api::{Binding, RolloutPhase, RolloutProgress};
use serde::{Deserialize, Serialize};

use crate::rollout::Stages;
use crate::snapshot::Snapshot;
use crate::works::targets;

/// The rollout of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Staging {
    /// The object whose strategy counts (G13).
    pub strategy_of: String,
    /// How far it is; `None` before the first step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<RolloutProgress>,
    /// Every chosen cluster, in the order of the stages.
    pub clusters: Vec<ClusterStaging>,
}

/// One cluster of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStaging {
    /// The cluster.
    pub name: String,
    /// Its stage.
    pub stage: String,
    /// Where it stands, and what it waits for.
    pub state: String,
}

/// The rollout of a binding; none where changes go everywhere at once.
pub(super) fn staging(snapshot: &Snapshot, binding: &Binding) -> Option<Staging> {
    let record = StrategyRecord::read(&binding.metadata)?;
    let stages = Stages::of(&record.staged);
    let progress = binding.status.rollout.clone();
    let mut clusters: Vec<(usize, ClusterStaging)> = targets(&binding.spec)
        .into_iter()
        .filter_map(|target| {
            let cluster = snapshot.clusters.iter().find(|one| one.metadata.name == target.name)?;
            let index = stages.stage_of(cluster);
            let stage = stages.stages.get(index).map(|stage| stage.name.clone()).unwrap_or_default();
            let state = state(progress.as_ref(), &target.name, &stage);
            Some((index, ClusterStaging { name: target.name, stage, state }))
        })
        .collect();
    clusters.sort_by(|one, other| (one.0, &one.1.name).cmp(&(other.0, &other.1.name)));
    let clusters = clusters.into_iter().map(|(_, cluster)| cluster).collect();
    Some(Staging { strategy_of: record.from, progress, clusters })
}

fn state(progress: Option<&RolloutProgress>, name: &str, stage: &str) -> String {
    let Some(progress) = progress else { return "waits for the rollout to start".to_owned() };
    let has = |names: &[String]| names.iter().any(|one| one == name);
    if has(&progress.completed_clusters) {
        return "has passed".to_owned();
    }
    if let Some(failure) = progress.failed_clusters.iter().find(|failure| failure.name == name) {
        return format!("has failed: {}", failure.message);
    }
    if has(&progress.skipped_clusters) {
        return "is not waited for".to_owned();
    }
    if let Some(one) = progress.clusters.iter().find(|one| one.name == name) {
        return format!("has it and waits for {}", one.waits_for);
    }
    match (progress.phase, progress.reason.as_str()) {
        (RolloutPhase::Succeeded, _) => "gets it at once, because the rollout is complete".to_owned(),
        (RolloutPhase::Failed, "Aborted") => {
            "keeps what it has, because the rollout was aborted; another change or a resume releases it"
                .to_owned()
        }
        (RolloutPhase::Failed, _) => "gets it at once, because the rollout is over".to_owned(),
        (RolloutPhase::Paused, "ApprovalRequired") => {
            format!("keeps what it has until stage {} is approved", progress.stage)
        }
        (RolloutPhase::Paused, _) => {
            "keeps what it has until the rollout is resumed or there is another change".to_owned()
        }
        (RolloutPhase::Pending | RolloutPhase::Progressing, _) if progress.stage == stage => {
            "keeps what it has until it is its turn in the stage".to_owned()
        }
        _ => format!("keeps what it has until stage {} has passed", progress.stage),
    }
}

/// One line for the rollout.
impl fmt::Display for Staging {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Changes spread in stages, by {}", self.strategy_of)?;
        match &self.progress {
            None => formatter.write_str("; nothing was rolled out yet"),
            Some(progress) => {
                let phase = format!("{:?}", progress.phase).to_lowercase();
                write!(formatter, "; revision {} is {phase}: {}", progress.revision, progress.message)
            }
        }
    }
}
