//! The rollout strategy of a policy: how a change spreads over clusters and templates. Defines the fields; `decide`
//! evaluates them.

use serde::{Deserialize, Serialize};

use crate::{ClusterAffinity, ConditionStatus, LabelSelector, is_default};

/// How a change spreads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// All at once, or in stages.
    #[serde(rename = "type")]
    pub kind: RolloutStrategyType,
    /// The stages; only for [`RolloutStrategyType::Staged`].
    #[serde(skip_serializing_if = "is_default")]
    pub staged: Option<StagedRollout>,
}

impl RolloutStrategy {
    /// The stages, if there are any to go through (G1).
    pub fn staged(&self) -> Option<StagedRollout> {
        match self.kind {
            RolloutStrategyType::AllAtOnce => None,
            RolloutStrategyType::Staged => Some(self.staged.clone().unwrap_or_default()),
        }
    }
}

/// The kinds of strategies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RolloutStrategyType {
    /// Every cluster gets a change at once.
    #[default]
    AllAtOnce,
    /// A change goes through stages.
    Staged,
}

/// The stages of a rollout, and what has to be shown between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StagedRollout {
    /// The stages in order; clusters that none of them selects come last.
    #[serde(skip_serializing_if = "is_default")]
    pub stages: Vec<RolloutStage>,
    /// What every cluster has to show.
    #[serde(skip_serializing_if = "is_default")]
    pub gate: RolloutGate,
    /// How long a cluster may take, from the delivery on.
    #[serde(skip_serializing_if = "is_default")]
    pub timeout: String,
    /// How many clusters may fail before `onFailure` acts.
    #[serde(skip_serializing_if = "is_default")]
    pub max_failures: i32,
    /// What happens then.
    #[serde(skip_serializing_if = "is_default")]
    pub on_failure: Option<OnFailure>,
    /// Waves over the templates of the policy.
    #[serde(skip_serializing_if = "is_default")]
    pub templates: Option<RolloutTemplates>,
}

/// Clusters that get a change together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutStage {
    /// Unique in the strategy.
    pub name: String,
    /// Its clusters; absent means all that no earlier stage selects.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// How many of them may be between delivery and gate.
    #[serde(skip_serializing_if = "is_default")]
    pub max_concurrency: Option<IntOrPercent>,
    /// What has to be shown besides the strategy's own gate.
    #[serde(skip_serializing_if = "is_default")]
    pub gate: RolloutGate,
}

/// What has to be shown before a change goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutGate {
    /// Whether health is asked for; absent means that it is.
    #[serde(skip_serializing_if = "is_default")]
    pub require_healthy: Option<bool>,
    /// Conditions that the delivered object must have.
    #[serde(skip_serializing_if = "is_default")]
    pub required_conditions: Vec<RequiredCondition>,
    /// How long all that must hold without interruption.
    #[serde(skip_serializing_if = "is_default")]
    pub min_success_time: String,
    /// Whether a person has to approve the end of each stage.
    #[serde(skip_serializing_if = "is_default")]
    pub approval: Option<bool>,
}

/// A condition that an object must have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RequiredCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its status.
    pub status: ConditionStatus,
}

/// What happens when too many clusters fail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OnFailure {
    /// What to do.
    pub action: FailureAction,
}

/// What to do when too many clusters fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FailureAction {
    /// Clusters that have not started keep what they have.
    #[default]
    Pause,
    /// It goes on.
    Continue,
    /// Clusters follow the last complete revision again.
    Rollback,
}

/// Waves over the templates of one policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutTemplates {
    /// Templates that go before the others.
    #[serde(skip_serializing_if = "is_default")]
    pub first: Option<FirstTemplates>,
    /// How many templates may be in a rollout at once.
    #[serde(skip_serializing_if = "is_default")]
    pub max_in_progress: Option<IntOrPercent>,
    /// How many templates may fail.
    #[serde(skip_serializing_if = "is_default")]
    pub max_failures: i32,
}

/// Templates that go before the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FirstTemplates {
    /// Their labels.
    #[serde(skip_serializing_if = "is_default")]
    pub label_selector: Option<LabelSelector>,
}

/// A number, or a share of all of them such as `50%`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrPercent {
    /// So many.
    Int(i64),
    /// Such a share.
    Text(String),
}

impl IntOrPercent {
    /// The share in percent; none for a number, or where the text is none.
    pub fn percent(&self) -> Option<u32> {
        match self {
            IntOrPercent::Int(_) => None,
            IntOrPercent::Text(text) => text.strip_suffix('%')?.parse().ok(),
        }
    }
}
