//! Placement: affinities, tolerations, spread constraints and replica scheduling. Scheduling belongs to `decide`.

use serde::{Deserialize, Serialize};

use crate::selector::Requirement;
use crate::{LabelSelector, Toleration, is_default};

/// Where and how a template is spread over clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Placement {
    /// The one group of candidate clusters; absent together with `clusterAffinities` for all.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_affinity: Option<ClusterAffinity>,
    /// Groups of candidates, tried in this order.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_affinities: Vec<ClusterAffinityTerm>,
    /// Taints the template bears.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_tolerations: Vec<Toleration>,
    /// How many clusters, regions, zones or providers.
    #[serde(skip_serializing_if = "is_default")]
    pub spread_constraints: Vec<SpreadConstraint>,
    /// How replicas are divided; absent means duplicated.
    #[serde(skip_serializing_if = "is_default")]
    pub replica_scheduling: Option<ReplicaScheduling>,
    /// Which workloads stay together or apart.
    #[serde(skip_serializing_if = "is_default")]
    pub workload_affinity: Option<WorkloadAffinity>,
}

/// Clusters that qualify: every part that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterAffinity {
    /// By label.
    #[serde(skip_serializing_if = "is_default")]
    pub label_selector: Option<LabelSelector>,
    /// By provider, region or zone.
    #[serde(skip_serializing_if = "is_default")]
    pub field_selector: Option<FieldSelector>,
    /// By name; empty for all.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_names: Vec<String>,
    /// Names that never qualify.
    #[serde(skip_serializing_if = "is_default", rename = "exclude")]
    pub exclude_clusters: Vec<String>,
}

/// Selects clusters by `provider`, `region` or `zone`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FieldSelector {
    /// Each requirement must hold.
    #[serde(skip_serializing_if = "is_default")]
    pub match_expressions: Vec<Requirement>,
}

/// A named group of candidate clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterAffinityTerm {
    /// Unique within the placement.
    pub affinity_name: String,
    /// The clusters.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
    /// Groups that take what this one cannot hold.
    #[serde(skip_serializing_if = "is_default")]
    pub overflow_affinities: Vec<OverflowAffinity>,
}

/// A named group that takes what its parent group cannot hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OverflowAffinity {
    /// Unique within the placement.
    pub affinity_name: String,
    /// The clusters.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
}

/// How many groups a template is spread over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// What makes a group.
    #[serde(skip_serializing_if = "is_default")]
    pub spread_by_field: Option<SpreadField>,
    /// A label that makes a group; Karmada accepts it and does nothing with it.
    #[serde(skip_serializing_if = "is_default")]
    pub spread_by_label: String,
    /// At most so many groups; 0 for no bound (C1).
    #[serde(skip_serializing_if = "is_default")]
    pub max_groups: i64,
    /// At least so many groups.
    #[serde(skip_serializing_if = "is_default")]
    pub min_groups: i64,
}

/// What makes a group of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpreadField {
    /// Each cluster is a group.
    Cluster,
    /// Clusters of one region.
    Region,
    /// Clusters of one zone.
    Zone,
    /// Clusters of one provider.
    Provider,
}

/// How replicas reach the chosen clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaScheduling {
    /// Divided unless said otherwise.
    #[serde(skip_serializing_if = "is_default")]
    pub replica_scheduling_type: Option<ReplicaSchedulingType>,
    /// By which rule they are divided.
    #[serde(skip_serializing_if = "is_default")]
    pub replica_division_preference: Option<ReplicaDivisionPreference>,
    /// Weights for the weighted rule.
    #[serde(skip_serializing_if = "is_default")]
    pub weight_preference: Option<WeightPreference>,
}

/// Whether each cluster gets all replicas or a share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReplicaSchedulingType {
    /// Each cluster gets all.
    Duplicated,
    /// Each cluster gets a share.
    #[default]
    Divided,
}

/// By which rule replicas are divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReplicaDivisionPreference {
    /// Into as few clusters as possible.
    Aggregated,
    /// By weight.
    #[default]
    Weighted,
}

/// Weights of clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WeightPreference {
    /// Fixed weights.
    #[serde(skip_serializing_if = "is_default")]
    pub static_weight_list: Vec<StaticWeight>,
    /// Weights that follow the clusters' capacity; wins over the fixed ones.
    #[serde(skip_serializing_if = "is_default")]
    pub dynamic_weight: Option<DynamicWeight>,
}

/// A fixed weight for a group of clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StaticWeight {
    /// The clusters.
    pub target_cluster: ClusterAffinity,
    /// Their weight, at least 1.
    pub weight: i64,
}

/// From what dynamic weights come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DynamicWeight {
    /// How many replicas still fit.
    AvailableReplicas,
}

/// Which workloads stay together or apart, by the value of a label of theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadAffinity {
    /// Together.
    #[serde(skip_serializing_if = "is_default")]
    pub affinity: Option<GroupByLabel>,
    /// Apart.
    #[serde(skip_serializing_if = "is_default")]
    pub anti_affinity: Option<GroupByLabel>,
}

/// Groups workloads by the value of one label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupByLabel {
    /// The label's key.
    pub group_by_label_key: String,
}
