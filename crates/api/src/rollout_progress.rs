//! What is recorded of a rollout on the binding that it is about: in its spec what may go where, in its status how far
//! it is. All that a restart needs (G12).

use serde::{Deserialize, Serialize};

use crate::{Time, is_default};

/// Condition of bindings and policies: what was changed last has reached every cluster.
pub const ROLLED_OUT: &str = "RolledOut";

/// Which clusters may have a revision now. Every field is always written: a merge patch keeps what it does not name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BindingRollout {
    /// The revision that is rolled out.
    pub revision: String,
    /// Clusters that may have it.
    pub current_clusters: Vec<String>,
    /// Clusters that keep what they have.
    pub suspended_clusters: Vec<String>,
    /// Clusters that the revision does not want and that keep their copy until it is complete (G9).
    pub leaving_clusters: Vec<String>,
}

/// How far a rollout is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutProgress {
    /// The revision.
    pub revision: String,
    /// Where it stands.
    pub phase: RolloutPhase,
    /// The stage it is in.
    #[serde(skip_serializing_if = "is_default")]
    pub stage: String,
    /// Why it stands there, for programs.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// Why it stands there, for people.
    #[serde(skip_serializing_if = "is_default")]
    pub message: String,
    /// When it began.
    #[serde(skip_serializing_if = "is_default")]
    pub started_at: Option<Time>,
    /// Clusters between delivery and gate.
    #[serde(skip_serializing_if = "is_default")]
    pub clusters: Vec<ClusterProgress>,
    /// Clusters that have passed.
    #[serde(skip_serializing_if = "is_default")]
    pub completed_clusters: Vec<String>,
    /// Clusters that have failed.
    #[serde(skip_serializing_if = "is_default")]
    pub failed_clusters: Vec<ClusterFailure>,
    /// Clusters that are not waited for.
    #[serde(skip_serializing_if = "is_default")]
    pub skipped_clusters: Vec<String>,
    /// Stages whose end a person has approved.
    #[serde(skip_serializing_if = "is_default")]
    pub approved_stages: Vec<String>,
    /// The revision in flight that this one took the place of (G7).
    #[serde(skip_serializing_if = "is_default")]
    pub supersedes: String,
    /// The request of a person that was answered last.
    #[serde(skip_serializing_if = "is_default")]
    pub answered: String,
}

/// A cluster between delivery and gate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterProgress {
    /// The cluster.
    pub name: String,
    /// When it could have the revision; absent while the cluster is suspended.
    #[serde(skip_serializing_if = "is_default")]
    pub started_at: Option<Time>,
    /// Since when the gate holds without interruption.
    #[serde(skip_serializing_if = "is_default")]
    pub gate_satisfied_since: Option<Time>,
    /// What it still has to show.
    #[serde(skip_serializing_if = "is_default")]
    pub waits_for: String,
}

/// A cluster that has failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterFailure {
    /// The cluster.
    pub name: String,
    /// Why.
    pub message: String,
}

/// Where a rollout stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RolloutPhase {
    /// No cluster has started.
    #[default]
    Pending,
    /// Clusters get the revision.
    Progressing,
    /// No further cluster starts until a person acts or there is another revision.
    Paused,
    /// Every cluster may have it.
    Succeeded,
    /// It was aborted, or ended although too many clusters failed.
    Failed,
}

impl RolloutPhase {
    /// Whether it is under way.
    pub fn is_in_flight(self) -> bool {
        matches!(self, RolloutPhase::Pending | RolloutPhase::Progressing | RolloutPhase::Paused)
    }
}
