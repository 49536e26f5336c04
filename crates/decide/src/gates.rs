//! Feature gates, and the other settings of the whole control plane that change decisions. The command line parses
//! them.

use serde::{Deserialize, Serialize};

use crate::skipped::SkippedResources;

/// Switches for the whole control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gates {
    /// `StaticPolicy`: no policy edit touches what is already propagated (S1 to S5).
    pub static_policy: bool,
    /// `PropagationPolicyPreemption`: `preemption: Always` acts (P1).
    pub preemption: bool,
    /// `PriorityBasedScheduling`: bindings carry a place in the scheduler's queue.
    pub schedule_priority: bool,
    /// `WorkloadAffinity`: bindings carry the groups that stay together or apart.
    pub workload_affinity: bool,
    /// `MultiplePodTemplatesScheduling`: bindings carry the parts of a workload.
    pub components: bool,
    /// `Failover`: `NoExecute` taints evict, and ClusterTaintPolicies act (C8).
    pub failover: bool,
    /// `PropagateDeps`: bindings propagate the dependencies of their templates.
    pub propagate_deps: bool,
    /// What no policy takes.
    #[serde(skip)]
    pub skipped: SkippedResources,
}

impl Default for Gates {
    /// Preemption is on, because the field's own default `Never` is its opt-in (P1), and so is what Karmada has on.
    fn default() -> Self {
        Gates {
            static_policy: false,
            preemption: true,
            schedule_priority: false,
            workload_affinity: false,
            components: false,
            failover: true,
            propagate_deps: true,
            skipped: SkippedResources::default(),
        }
    }
}

impl Gates {
    /// True when a policy may take templates from another one (P1, S5).
    pub fn may_preempt(&self) -> bool {
        self.preemption && !self.static_policy
    }
}
