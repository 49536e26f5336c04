//! PropagationPolicy and ClusterPropagationPolicy: which templates are propagated where, and how policy changes are
//! activated. Defines the fields, not their effects.

use serde::{Deserialize, Serialize};

use crate::failover::Failover;
use crate::selector::ExcludeResourceSelector;
use crate::{Condition, Object, Placement, ResourceSelector, RolloutStrategy, Suspension, is_default};

/// A policy for the templates of its namespace.
pub type PropagationPolicy = Object<PropagationSpec, PolicyStatus>;
/// A policy for the templates of all namespaces, and for those without one.
pub type ClusterPropagationPolicy = PropagationPolicy;

/// The scheduler that handles bindings when a policy names none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// What a propagation policy says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PropagationSpec {
    /// The templates it is about.
    pub resource_selectors: Vec<ResourceSelector>,
    /// Templates it leaves out whatever the selectors say (B2).
    #[serde(skip_serializing_if = "is_default")]
    pub exclude_resource_selectors: Vec<ExcludeResourceSelector>,
    /// Deprecated; accepted and ignored.
    #[serde(skip_serializing_if = "is_default")]
    pub association: bool,
    /// Take along what the template needs.
    #[serde(skip_serializing_if = "is_default")]
    pub propagate_deps: bool,
    /// Where the templates run.
    #[serde(skip_serializing_if = "is_default")]
    pub placement: Placement,
    /// Rank among policies of the same scope; see [`PropagationSpec::priority`].
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Option<i32>,
    /// Whether it takes templates from others; see [`PropagationSpec::preemption`].
    #[serde(skip_serializing_if = "is_default")]
    pub preemption: Option<Preemption>,
    /// Override policies that must exist before it acts.
    #[serde(skip_serializing_if = "is_default")]
    pub dependent_overrides: Vec<String>,
    /// Who schedules.
    #[serde(skip_serializing_if = "is_default")]
    pub scheduler_name: String,
    /// What happens when a cluster or the application fails.
    #[serde(skip_serializing_if = "is_default")]
    pub failover: Option<Failover>,
    /// What happens to an object that is already in a member.
    #[serde(skip_serializing_if = "is_default")]
    pub conflict_resolution: Option<ConflictResolution>,
    /// When changes of this policy act; absent means at once.
    #[serde(skip_serializing_if = "is_default")]
    pub activation_preference: Option<ActivationPreference>,
    /// What is held back.
    #[serde(skip_serializing_if = "is_default")]
    pub suspension: Option<Suspension>,
    /// Members keep the objects when the template is deleted.
    #[serde(skip_serializing_if = "is_default")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// Where the bindings stand in the scheduler's queue.
    #[serde(skip_serializing_if = "is_default")]
    pub schedule_priority: Option<SchedulePriority>,
    /// How a change spreads over the clusters; absent means all at once.
    #[serde(skip_serializing_if = "is_default")]
    pub rollout_strategy: Option<RolloutStrategy>,
}

impl PropagationSpec {
    /// The explicit priority; none means 0.
    pub fn priority(&self) -> i32 {
        self.priority.unwrap_or(0)
    }

    /// The preemption in effect; none means `Never`.
    pub fn preemption(&self) -> Preemption {
        self.preemption.unwrap_or_default()
    }

    /// True when changes of this policy wait for the template to change.
    pub fn is_lazy(&self) -> bool {
        self.activation_preference == Some(ActivationPreference::Lazy)
    }
}

/// Whether a policy takes templates from other policies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Preemption {
    /// It does, by the rules P2 to P4.
    Always,
    /// It does not.
    #[default]
    Never,
}

/// What happens to an object that is already in a member and not ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConflictResolution {
    /// It is left alone and the conflict is reported.
    #[default]
    Abort,
    /// It is taken over.
    Overwrite,
}

/// When changes of a policy act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ActivationPreference {
    /// When the template changes next.
    Lazy,
}

/// Where bindings stand in the scheduler's queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SchedulePriority {
    /// Where the class is looked up; Karmada knows `KubePriorityClass` only.
    pub priority_class_source: PriorityClassSource,
    /// The class.
    pub priority_class_name: String,
}

/// Where a priority class is looked up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PriorityClassSource {
    /// Among Kubernetes' PriorityClasses.
    #[default]
    KubePriorityClass,
}

/// Condition of a policy: everything it claims follows it as it is now.
pub const IN_EFFECT: &str = "InEffect";
/// Condition of a policy: what it claims is written to members.
pub const DISPATCHING: &str = "Dispatching";

/// What became of a propagation policy; Longshore's addition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicyStatus {
    /// Generation of the policy the rest belongs to.
    #[serde(skip_serializing_if = "is_default")]
    pub observed_generation: i64,
    /// How its templates fare.
    #[serde(skip_serializing_if = "is_default")]
    pub templates: Option<TemplateCounts>,
    /// How the rollouts of its templates fare; absent where none has a strategy.
    #[serde(skip_serializing_if = "is_default")]
    pub rollout: Option<RolloutCounts>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
}

/// How the rollouts of a policy's templates fare; zeros are written, because they are news.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutCounts {
    /// Templates that change in stages.
    pub templates: i32,
    /// Of them, those that go through their stages.
    pub in_progress: i32,
    /// Those that wait for a person or another revision.
    pub paused: i32,
    /// Those that ended without success.
    pub failed: i32,
}

/// How the templates of a policy fare; zeros are written, because they are news.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateCounts {
    /// Claimed by this policy.
    pub claimed: i32,
    /// Claimed, and propagated as the policy says now.
    pub up_to_date: i32,
    /// Claimed, but still propagated by older rules until the template changes.
    pub pending_activation: i32,
    /// Claimed, and held back in at least one cluster.
    pub suspended: i32,
    /// Claimed by taking it from another policy.
    pub preempted_from: i32,
    /// Taken from this policy by another one.
    pub preempted_by: i32,
}
