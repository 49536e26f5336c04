//! ResourceBinding and ClusterResourceBinding: one template, the rules that apply to it, and the
//! clusters chosen for it. What Longshore adds to a binding is annotations, see [`crate::records`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::failover::{Failover, PurgeMode};
use crate::propagation::ConflictResolution;
use crate::quantity::ResourceList;
use crate::selector::NodeSelector;
use crate::suspension::SuspendClusters;
use crate::work::Health;
use crate::{
    BindingRollout, Condition, Object, Placement, RolloutProgress, Text, Time, Toleration, is_default,
};

/// A binding of either scope.
pub type Binding = Object<BindingSpec, BindingStatus>;
/// Binding of a namespaced template.
pub type ResourceBinding = Binding;
/// Binding of a template without namespace.
pub type ClusterResourceBinding = Binding;

/// Condition: clusters were chosen.
pub const SCHEDULED: &str = "Scheduled";
/// Condition: copies stay where they are, although they should leave, because nothing else fits (M2).
pub const LAST_COPY_KEPT: &str = "LastCopyKept";
/// Condition: every chosen cluster has the manifest.
pub const FULLY_APPLIED: &str = "FullyApplied";

/// What is to run where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BindingSpec {
    /// The template.
    pub resource: ObjectReference,
    /// Take along what the template needs.
    #[serde(skip_serializing_if = "is_default")]
    pub propagate_deps: bool,
    /// What one replica needs.
    #[serde(skip_serializing_if = "is_default")]
    pub replica_requirements: Option<ReplicaRequirements>,
    /// How many replicas in all.
    #[serde(skip_serializing_if = "is_default")]
    pub replicas: i32,
    /// Parts with replicas of their own.
    #[serde(skip_serializing_if = "is_default")]
    pub components: Vec<Component>,
    /// The chosen clusters.
    #[serde(skip_serializing_if = "is_default")]
    pub clusters: Vec<TargetCluster>,
    /// Where it may run; absent when only other bindings need it.
    #[serde(skip_serializing_if = "is_default")]
    pub placement: Option<Placement>,
    /// Clusters it is leaving.
    #[serde(skip_serializing_if = "is_default")]
    pub graceful_eviction_tasks: Vec<GracefulEvictionTask>,
    /// Bindings that need this one.
    #[serde(skip_serializing_if = "is_default")]
    pub required_by: Vec<BindingSnapshot>,
    /// Who schedules.
    #[serde(skip_serializing_if = "is_default")]
    pub scheduler_name: String,
    /// What happens when a cluster or the application fails.
    #[serde(skip_serializing_if = "is_default")]
    pub failover: Option<Failover>,
    /// What happens to an object that is already in a member.
    #[serde(skip_serializing_if = "is_default")]
    pub conflict_resolution: Option<ConflictResolution>,
    /// When a fresh placement was asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub reschedule_triggered_at: Option<Time>,
    /// What is held back.
    #[serde(skip_serializing_if = "is_default")]
    pub suspension: Option<BindingSuspension>,
    /// Members keep the objects when the template is deleted.
    #[serde(skip_serializing_if = "is_default")]
    pub preserve_resources_on_deletion: Option<bool>,
    /// Place in the scheduler's queue.
    #[serde(skip_serializing_if = "is_default")]
    pub schedule_priority: Option<BindingSchedulePriority>,
    /// Groups that stay together or apart.
    #[serde(skip_serializing_if = "is_default")]
    pub workload_affinity_groups: Option<WorkloadAffinityGroups>,
}

/// The template a binding is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObjectReference {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    #[serde(skip_serializing_if = "is_default")]
    pub uid: String,
    /// Version of the template that was last bound.
    #[serde(skip_serializing_if = "is_default")]
    pub resource_version: String,
}

/// What one replica needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaRequirements {
    /// On which nodes it can run.
    #[serde(skip_serializing_if = "is_default")]
    pub node_claim: Option<NodeClaim>,
    /// How much of each resource.
    #[serde(skip_serializing_if = "is_default")]
    pub resource_request: ResourceList,
    /// In which namespace; left out for components.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// With which priority class.
    #[serde(skip_serializing_if = "is_default")]
    pub priority_class_name: String,
}

/// On which nodes a replica can run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeClaim {
    /// Required node affinity.
    #[serde(skip_serializing_if = "is_default")]
    pub hard_node_affinity: Option<NodeSelector>,
    /// Required node labels.
    #[serde(skip_serializing_if = "is_default")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that it bears.
    #[serde(skip_serializing_if = "is_default")]
    pub tolerations: Vec<Toleration>,
}

/// A part of a workload with replicas of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Component {
    /// Unique within the workload.
    pub name: String,
    /// How many.
    pub replicas: i32,
    /// What one of them needs.
    #[serde(skip_serializing_if = "is_default")]
    pub replica_requirements: Option<ReplicaRequirements>,
}

/// A chosen cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TargetCluster {
    /// Its name.
    pub name: String,
    /// How many replicas it gets.
    #[serde(skip_serializing_if = "is_default")]
    pub replicas: i32,
}

/// A cluster the workload is leaving.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GracefulEvictionTask {
    /// The cluster.
    pub from_cluster: String,
    /// How the old copy goes.
    #[serde(skip_serializing_if = "is_default")]
    pub purge_mode: Option<PurgeMode>,
    /// How many replicas it had.
    #[serde(skip_serializing_if = "is_default")]
    pub replicas: Option<i32>,
    /// Why, for programs.
    pub reason: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "is_default")]
    pub message: String,
    /// Who asked for it.
    pub producer: String,
    /// How long the old copy may stay.
    #[serde(skip_serializing_if = "is_default")]
    pub grace_period_seconds: Option<i32>,
    /// True: the old copy goes only by hand.
    #[serde(skip_serializing_if = "is_default")]
    pub suppress_deletion: Option<bool>,
    /// Labels the new copy inherits.
    #[serde(skip_serializing_if = "is_default")]
    pub preserved_label_state: BTreeMap<String, String>,
    /// When it began.
    #[serde(skip_serializing_if = "is_default")]
    pub creation_timestamp: Option<Time>,
    /// Where the workload ran before.
    #[serde(skip_serializing_if = "is_default")]
    pub clusters_before_failover: Vec<String>,
}

/// A binding that needs this one, and where it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BindingSnapshot {
    /// Empty for cluster-scoped bindings.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Its chosen clusters.
    #[serde(skip_serializing_if = "is_default")]
    pub clusters: Vec<TargetCluster>,
}

/// What a binding holds back; canonical names only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BindingSuspension {
    /// True holds every cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub dispatching: Option<bool>,
    /// Holds the clusters it names.
    #[serde(skip_serializing_if = "is_default")]
    pub dispatching_on_clusters: Option<SuspendClusters>,
    /// True holds scheduling; set by others, never by a policy.
    #[serde(skip_serializing_if = "is_default")]
    pub scheduling: Option<bool>,
    /// Which clusters keep what they have while a change spreads in stages.
    #[serde(skip_serializing_if = "is_default")]
    pub rollout: Option<BindingRollout>,
}

/// Place in the scheduler's queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BindingSchedulePriority {
    /// Higher goes first.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: i32,
}

/// Groups that stay together or apart, each written `key=value`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadAffinityGroups {
    /// Together.
    #[serde(skip_serializing_if = "is_default")]
    pub affinity_group: String,
    /// Apart.
    #[serde(skip_serializing_if = "is_default")]
    pub anti_affinity_group: String,
}

/// What runs where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BindingStatus {
    /// Generation that was last scheduled.
    #[serde(skip_serializing_if = "is_default")]
    pub scheduler_observed_generation: i64,
    /// Affinity group in use; the JSON name is Karmada's.
    #[serde(skip_serializing_if = "is_default", rename = "schedulerObservingAffinityName")]
    pub scheduler_observed_affinity_name: String,
    /// When clusters were last chosen.
    #[serde(skip_serializing_if = "is_default")]
    pub last_scheduled_time: Option<Time>,
    /// [`SCHEDULED`], [`FULLY_APPLIED`], [`LAST_COPY_KEPT`] and [`crate::rollout_progress::ROLLED_OUT`].
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
    /// Status per cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub aggregated_status: Vec<AggregatedStatusItem>,
    /// How far the last change is; absent where changes do not spread in stages.
    #[serde(skip_serializing_if = "is_default")]
    pub rollout: Option<RolloutProgress>,
}

/// The status in one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AggregatedStatusItem {
    /// The cluster.
    pub cluster_name: String,
    /// The collected status as it is.
    #[serde(skip_serializing_if = "is_default")]
    pub status: Option<Text>,
    /// Whether the member has the manifest.
    #[serde(skip_serializing_if = "is_default")]
    pub applied: bool,
    /// Why it has not.
    #[serde(skip_serializing_if = "is_default")]
    pub applied_message: String,
    /// Whether it is healthy.
    #[serde(skip_serializing_if = "is_default")]
    pub health: Option<Health>,
}
