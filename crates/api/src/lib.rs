//! The API types: kinds, fields, labels and names. Holds no behaviour beyond parsing and naming.
//!
//! JSON follows Karmada's: camelCase, and a field with its zero value is omitted exactly where Go's `omitempty` omits
//! it. Missing required fields read as their zero value, as they do in Go; rejecting them is the schema's task (see
//! [`crd`]).

pub mod annotations;
pub mod binding;
pub mod cluster;
pub mod crd;
pub mod failover;
pub mod finalizers;
pub mod interpreter;
pub mod kinds;
pub mod labels;
pub mod meta;
pub mod names;
pub mod override_policy;
pub mod placement;
pub mod propagation;
pub mod quantity;
pub mod rebalancer;
pub mod records;
pub mod rollout;
pub mod rollout_progress;
pub mod rollout_strategy;
pub mod selector;
pub mod suspension;
pub mod taint;
pub mod taint_policy;
pub mod time;
pub mod work;

pub use binding::{Binding, BindingSpec, BindingStatus, ClusterResourceBinding, ResourceBinding};
pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use interpreter::{ResourceInterpreterCustomization, ResourceInterpreterSpec};
pub use kinds::{Kind, Scope};
pub use meta::{Condition, ConditionStatus, Object, ObjectMeta, OwnerReference, Text, Unread};
pub use override_policy::{ClusterOverridePolicy, OverridePolicy, OverrideSpec};
pub use placement::{ClusterAffinity, Placement};
pub use propagation::{ClusterPropagationPolicy, PolicyStatus, PropagationPolicy, PropagationSpec};
pub use quantity::Quantity;
pub use rebalancer::{WorkloadRebalancer, WorkloadRebalancerSpec, WorkloadRebalancerStatus};
pub use rollout::{ClusterRolloutPolicy, RolloutPolicy, RolloutSpec, RolloutStatus};
pub use rollout_progress::{BindingRollout, RolloutPhase, RolloutProgress};
pub use rollout_strategy::{RolloutStrategy, StagedRollout};
pub use selector::{LabelSelector, ResourceSelector};
pub use suspension::Suspension;
pub use taint::{Taint, Toleration};
pub use taint_policy::{ClusterTaintPolicy, ClusterTaintPolicySpec};
pub use time::Time;
pub use work::{Work, WorkSpec, WorkStatus};

/// True for what Go's `omitempty` would leave out, and for structs of which nothing is set.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
