//! Work: the manifests for one member, and the status it reports.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Condition, Object, Text, is_default};

/// A manifest on its way to one member.
pub type Work = Object<WorkSpec, WorkStatus>;

/// Condition: the member has the manifest.
pub const APPLIED: &str = "Applied";
/// Condition: nothing holds the manifest back.
pub const DISPATCHING: &str = "Dispatching";

/// What the member is to receive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkSpec {
    /// The manifests.
    #[serde(skip_serializing_if = "is_default")]
    pub workload: WorkloadTemplate,
    /// True holds the manifest back.
    #[serde(skip_serializing_if = "is_default")]
    pub suspend_dispatching: Option<bool>,
    /// True leaves the member's object when the Work is deleted.
    #[serde(skip_serializing_if = "is_default")]
    pub preserve_resources_on_deletion: Option<bool>,
}

/// Manifests; Karmada always writes exactly one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadTemplate {
    /// Whole objects.
    #[serde(skip_serializing_if = "is_default")]
    pub manifests: Vec<Value>,
}

/// What the member reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkStatus {
    /// [`APPLIED`] and [`DISPATCHING`].
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
    /// Status per manifest.
    #[serde(skip_serializing_if = "is_default")]
    pub manifest_statuses: Vec<ManifestStatus>,
}

/// The status of one manifest in the member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManifestStatus {
    /// Which manifest.
    pub identifier: ResourceIdentifier,
    /// The collected status as it is.
    #[serde(skip_serializing_if = "is_default")]
    pub status: Option<Text>,
    /// Whether it is healthy.
    #[serde(skip_serializing_if = "is_default")]
    pub health: Option<Health>,
    /// The member has not looked at the newest generation of the object, so that its status is about an older one.
    #[serde(skip_serializing_if = "is_default")]
    pub outdated: bool,
}

/// Names a manifest within a Work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceIdentifier {
    /// Its place in the list.
    pub ordinal: i64,
    /// API group.
    #[serde(skip_serializing_if = "is_default")]
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Always empty in Karmada, yet always written.
    pub resource: String,
    /// Empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Whether a resource in a member is healthy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Health {
    /// It is.
    Healthy,
    /// It is not.
    Unhealthy,
    /// The health is unknown.
    #[default]
    Unknown,
}
