//! Failover behaviour: when and how a workload is evicted from a cluster where it fails. `decide` implements it.

use serde::{Deserialize, Serialize};

use crate::is_default;

/// What happens when a cluster or the application in it fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Failover {
    /// The application is unhealthy.
    #[serde(skip_serializing_if = "is_default")]
    pub application: Option<ApplicationFailover>,
    /// The cluster is tainted.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster: Option<ClusterFailover>,
}

/// What happens when the application is unhealthy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApplicationFailover {
    /// From when on it counts.
    pub decision_conditions: DecisionConditions,
    /// How the old copy goes; Gracefully unless said otherwise.
    #[serde(skip_serializing_if = "is_default")]
    pub purge_mode: Option<PurgeMode>,
    /// How long the old copy may stay.
    #[serde(skip_serializing_if = "is_default")]
    pub grace_period_seconds: Option<i32>,
    /// The last copy goes, too, where nothing else fits (M2); it stays unless this is true.
    #[serde(skip_serializing_if = "is_default")]
    pub evict_last_copy: Option<bool>,
    /// What the new copy inherits.
    #[serde(skip_serializing_if = "is_default")]
    pub state_preservation: Option<StatePreservation>,
}

/// From when on an unhealthy application has failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DecisionConditions {
    /// 300 unless said otherwise.
    #[serde(skip_serializing_if = "is_default")]
    pub toleration_seconds: Option<i32>,
}

/// What happens when the cluster is tainted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterFailover {
    /// How the old copy goes; Gracefully unless said otherwise.
    #[serde(skip_serializing_if = "is_default")]
    pub purge_mode: Option<PurgeMode>,
    /// The last copy goes, too, where nothing else fits (M2); it stays unless this is true.
    #[serde(skip_serializing_if = "is_default")]
    pub evict_last_copy: Option<bool>,
    /// What the new copy inherits.
    #[serde(skip_serializing_if = "is_default")]
    pub state_preservation: Option<StatePreservation>,
}

impl ApplicationFailover {
    /// Whether the last copy of a failing application goes although nothing replaces it.
    pub fn gives_up_last_copy(&self) -> bool {
        self.evict_last_copy == Some(true) || self.purge_mode.is_some_and(PurgeMode::is_direct)
    }
}

impl ClusterFailover {
    /// Whether the last copy in a cluster that has to be left goes although nothing replaces it.
    pub fn gives_up_last_copy(&self) -> bool {
        self.evict_last_copy == Some(true) || self.purge_mode.is_some_and(PurgeMode::is_direct)
    }
}

/// How the copy in a failed cluster goes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PurgeMode {
    /// At once.
    Directly,
    /// When the new copy is healthy, or the grace period is over.
    #[default]
    Gracefully,
    /// Only by hand.
    Never,
    /// Older word for `Directly`.
    Immediately,
    /// Older word for `Gracefully`.
    Graciously,
}

impl PurgeMode {
    /// True when the old copy goes before a new one comes.
    pub fn is_direct(self) -> bool {
        matches!(self, PurgeMode::Directly | PurgeMode::Immediately)
    }
}

/// What the new copy inherits from the old one's status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatePreservation {
    /// One value each.
    pub rules: Vec<StatePreservationRule>,
}

/// One value that the new copy gets as a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatePreservationRule {
    /// Key of the label.
    pub alias_label_name: String,
    /// Where in the status the value is.
    pub json_path: String,
}
