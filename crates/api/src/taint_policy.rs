//! ClusterTaintPolicy: taints that follow a cluster's conditions.

use serde::{Deserialize, Serialize};

use crate::selector::Operator;
use crate::{ClusterAffinity, Object, is_default};

/// Sets and removes taints by the conditions of clusters.
pub type ClusterTaintPolicy = Object<ClusterTaintPolicySpec>;

/// Which clusters get which taints, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterTaintPolicySpec {
    /// The clusters; absent for all.
    #[serde(skip_serializing_if = "is_default")]
    pub target_clusters: Option<ClusterAffinity>,
    /// All must hold for the taints to be set; none means they never are.
    #[serde(skip_serializing_if = "is_default")]
    pub add_on_conditions: Vec<MatchCondition>,
    /// All must hold for the taints to be removed; none means they never are.
    #[serde(skip_serializing_if = "is_default")]
    pub remove_on_conditions: Vec<MatchCondition>,
    /// The taints.
    pub taints: Vec<PolicyTaint>,
}

/// What must hold for one condition of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MatchCondition {
    /// Which condition.
    pub condition_type: String,
    /// `In` or `NotIn`.
    pub operator: Operator,
    /// `True`, `False`, `Unknown`.
    pub status_values: Vec<String>,
}

/// A taint to set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicyTaint {
    /// What the taint is about.
    pub key: String,
    /// What it does.
    pub effect: String,
    /// Detail of the key.
    #[serde(skip_serializing_if = "is_default")]
    pub value: String,
}
