//! Cluster: a member, how to reach it, what it offers. Scheduling belongs to `decide`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::quantity::{Quantity, ResourceList};
use crate::{Condition, Object, Taint, is_default};

/// A member cluster.
pub type Cluster = Object<ClusterSpec, ClusterStatus>;

/// Condition: the member answers and is healthy.
pub const READY: &str = "Ready";
/// Condition: Works are written to the member. False while it is left alone because it does not answer.
pub const DISPATCHING: &str = "Dispatching";
/// Condition: every API the member has is known.
pub const COMPLETE_API_ENABLEMENTS: &str = "CompleteAPIEnablements";

/// How a member is reached and what it is like.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Unique over time; the uid of the member's `kube-system` namespace.
    #[serde(skip_serializing_if = "is_default")]
    pub id: String,
    /// Who writes to the member.
    pub sync_mode: SyncMode,
    /// Where its API server is.
    #[serde(skip_serializing_if = "is_default")]
    pub api_endpoint: String,
    /// Credentials: `token` and `caBundle`.
    #[serde(skip_serializing_if = "is_default")]
    pub secret_ref: Option<SecretReference>,
    /// Credentials for impersonating users.
    #[serde(skip_serializing_if = "is_default")]
    pub impersonator_secret_ref: Option<SecretReference>,
    /// True does not check the member's certificate.
    #[serde(skip_serializing_if = "is_default", rename = "insecureSkipTLSVerification")]
    pub insecure_skip_tls_verification: bool,
    /// Proxy on the way to the member.
    #[serde(skip_serializing_if = "is_default", rename = "proxyURL")]
    pub proxy_url: String,
    /// Headers for the proxy.
    #[serde(skip_serializing_if = "is_default")]
    pub proxy_header: BTreeMap<String, String>,
    /// Whose cloud it is in.
    #[serde(skip_serializing_if = "is_default")]
    pub provider: String,
    /// In which region.
    #[serde(skip_serializing_if = "is_default")]
    pub region: String,
    /// Deprecated: its only zone.
    #[serde(skip_serializing_if = "is_default")]
    pub zone: String,
    /// In which zones.
    #[serde(skip_serializing_if = "is_default")]
    pub zones: Vec<String>,
    /// What keeps workloads away.
    #[serde(skip_serializing_if = "is_default")]
    pub taints: Vec<Taint>,
    /// Classes of nodes for estimating capacity.
    #[serde(skip_serializing_if = "is_default")]
    pub resource_models: Vec<ResourceModel>,
}

/// Who writes to a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SyncMode {
    /// The control plane.
    #[default]
    Push,
    /// An agent in the member.
    Pull,
}

/// A secret in the control plane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A class of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceModel {
    /// Higher classes have more.
    pub grade: u64,
    /// How much of each resource nodes of this class have.
    pub ranges: Vec<ResourceModelRange>,
}

/// How much of one resource nodes of a class have: from `min`, below `max`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceModelRange {
    /// The resource.
    pub name: String,
    /// At least.
    pub min: Quantity,
    /// Less than.
    pub max: Quantity,
}

/// What was observed of a member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Version of its API server.
    #[serde(skip_serializing_if = "is_default")]
    pub kubernetes_version: String,
    /// Which APIs it has, sorted.
    #[serde(skip_serializing_if = "is_default")]
    pub api_enablements: Vec<ApiEnablement>,
    /// [`READY`], [`COMPLETE_API_ENABLEMENTS`] and what others set.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
    /// How many nodes.
    #[serde(skip_serializing_if = "is_default")]
    pub node_summary: Option<NodeSummary>,
    /// How much capacity.
    #[serde(skip_serializing_if = "is_default")]
    pub resource_summary: Option<ResourceSummary>,
    /// What remedies ask for.
    #[serde(skip_serializing_if = "is_default")]
    pub remedy_actions: Vec<String>,
}

/// The kinds of one API group and version.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiEnablement {
    /// `group/version`.
    pub group_version: String,
    /// Its kinds.
    #[serde(skip_serializing_if = "is_default")]
    pub resources: Vec<ApiResource>,
}

/// One kind of an API.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiResource {
    /// Plural name.
    pub name: String,
    /// Kind.
    pub kind: String,
}

/// How many nodes a member has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSummary {
    /// In all.
    #[serde(skip_serializing_if = "is_default")]
    pub total_num: i32,
    /// Ready.
    #[serde(skip_serializing_if = "is_default")]
    pub ready_num: i32,
}

/// How much capacity a member has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSummary {
    /// In all.
    #[serde(skip_serializing_if = "is_default")]
    pub allocatable: ResourceList,
    /// Asked for by pods that are not yet on a node.
    #[serde(skip_serializing_if = "is_default")]
    pub allocating: ResourceList,
    /// Taken by pods that are.
    #[serde(skip_serializing_if = "is_default")]
    pub allocated: ResourceList,
    /// How many nodes of each class.
    #[serde(skip_serializing_if = "is_default")]
    pub allocatable_modelings: Vec<AllocatableModeling>,
}

/// How many nodes of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AllocatableModeling {
    /// The class.
    pub grade: u64,
    /// How many.
    pub count: i64,
}
