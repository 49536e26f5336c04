//! RolloutPolicy and ClusterRolloutPolicy (U7): suspend single templates, or let their changes spread in stages, without
//! touching the policy that propagates them.

use serde::{Deserialize, Serialize};

use crate::selector::ExcludeResourceSelector;
use crate::{Condition, Object, ResourceSelector, RolloutStrategy, Suspension, is_default};

/// Holds templates of its namespace back.
pub type RolloutPolicy = Object<RolloutSpec, RolloutStatus>;
/// Holds templates of all namespaces, and those without one, back.
pub type ClusterRolloutPolicy = RolloutPolicy;

/// What a rollout policy says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutSpec {
    /// The templates it is about.
    pub resource_selectors: Vec<ResourceSelector>,
    /// Templates it leaves out whatever the selectors say (B2).
    #[serde(skip_serializing_if = "is_default")]
    pub exclude_resource_selectors: Vec<ExcludeResourceSelector>,
    /// What is held back; absent means nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub suspension: Option<Suspension>,
    /// How a change of its templates spreads; goes before the strategy of the propagation policy (G13).
    #[serde(skip_serializing_if = "is_default")]
    pub rollout_strategy: Option<RolloutStrategy>,
}

/// What became of a rollout policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Generation of the policy the rest belongs to.
    #[serde(skip_serializing_if = "is_default")]
    pub observed_generation: i64,
    /// How many templates it holds back; absent until counted.
    #[serde(skip_serializing_if = "is_default")]
    pub suspended: Option<i32>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
}
