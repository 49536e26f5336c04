//! WorkloadRebalancer: triggers one rescheduling of the listed workloads.

use serde::{Deserialize, Serialize};

use crate::{Object, Time, is_default};

/// Asks for a fresh placement.
pub type WorkloadRebalancer = Object<WorkloadRebalancerSpec, WorkloadRebalancerStatus>;

/// Which workloads are placed anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadRebalancerSpec {
    /// The workloads.
    pub workloads: Vec<WorkloadReference>,
    /// When the finished rebalancer deletes itself; absent for never.
    #[serde(skip_serializing_if = "is_default")]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// A workload by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadReference {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
}

/// What became of a rebalancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadRebalancerStatus {
    /// Result per workload.
    #[serde(skip_serializing_if = "is_default")]
    pub observed_workloads: Vec<ObservedWorkload>,
    /// Generation the results belong to.
    #[serde(skip_serializing_if = "is_default")]
    pub observed_generation: i64,
    /// When every workload had a result.
    #[serde(skip_serializing_if = "is_default")]
    pub finish_time: Option<Time>,
}

/// What became of one workload; the schema leaves both words open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObservedWorkload {
    /// The workload.
    pub workload: WorkloadReference,
    /// [`SUCCESSFUL`], [`FAILED`] or nothing yet.
    #[serde(skip_serializing_if = "is_default")]
    pub result: String,
    /// Why it failed, for example [`REFERENCED_BINDING_NOT_FOUND`].
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
}

/// Result: a fresh placement was asked for.
pub const SUCCESSFUL: &str = "Successful";
/// Result: it could not be asked for.
pub const FAILED: &str = "Failed";
/// Reason: the workload has no binding.
pub const REFERENCED_BINDING_NOT_FOUND: &str = "ReferencedBindingNotFound";
