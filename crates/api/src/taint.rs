//! Taints of clusters and tolerations. Matching belongs to `decide`.

use serde::{Deserialize, Serialize};

use crate::{Time, is_default};

/// Effect: nothing new is scheduled.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// Effect: other clusters are tried first.
pub const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
/// Effect: what runs must leave.
pub const NO_EXECUTE: &str = "NoExecute";

/// Keeps workloads away from a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Taint {
    /// What the taint is about.
    pub key: String,
    /// Detail of the key.
    #[serde(skip_serializing_if = "is_default")]
    pub value: String,
    /// What it does, see [`NO_SCHEDULE`] and its neighbours.
    pub effect: String,
    /// When it was set; only kept for `NoExecute`.
    #[serde(skip_serializing_if = "is_default")]
    pub time_added: Option<Time>,
}

/// Lets a workload bear a taint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Toleration {
    /// Empty for every key.
    #[serde(skip_serializing_if = "is_default")]
    pub key: String,
    /// `Exists` or `Equal`; empty means `Equal`.
    #[serde(skip_serializing_if = "is_default")]
    pub operator: String,
    /// What `Equal` compares with.
    #[serde(skip_serializing_if = "is_default")]
    pub value: String,
    /// Empty for every effect.
    #[serde(skip_serializing_if = "is_default")]
    pub effect: String,
    /// How long a `NoExecute` taint is borne; absent for ever.
    #[serde(skip_serializing_if = "is_default")]
    pub toleration_seconds: Option<i64>,
}
