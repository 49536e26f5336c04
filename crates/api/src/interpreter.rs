//! ResourceInterpreterCustomization: Lua scripts that interpret a kind. Running them is done elsewhere.

use serde::{Deserialize, Serialize};

use crate::{LabelSelector, Object, is_default};

/// Explains one kind by scripts.
pub type ResourceInterpreterCustomization = Object<ResourceInterpreterSpec>;

/// Which kind is explained how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceInterpreterSpec {
    /// The kind.
    pub target: CustomizationTarget,
    /// The scripts.
    pub customizations: CustomizationRules,
}

/// A kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CustomizationTarget {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

/// The scripts, one per question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CustomizationRules {
    /// What a member's object keeps.
    #[serde(skip_serializing_if = "is_default")]
    pub retention: Option<LuaRule>,
    /// How many replicas, and what each needs.
    #[serde(skip_serializing_if = "is_default")]
    pub replica_resource: Option<LuaRule>,
    /// Which components, and what each needs.
    #[serde(skip_serializing_if = "is_default")]
    pub component_resource: Option<LuaRule>,
    /// How another number of replicas is written.
    #[serde(skip_serializing_if = "is_default")]
    pub replica_revision: Option<LuaRule>,
    /// Which part of the status is collected.
    #[serde(skip_serializing_if = "is_default")]
    pub status_reflection: Option<LuaRule>,
    /// How the members' statuses become one.
    #[serde(skip_serializing_if = "is_default")]
    pub status_aggregation: Option<LuaRule>,
    /// Whether it is healthy.
    #[serde(skip_serializing_if = "is_default")]
    pub health_interpretation: Option<LuaRule>,
    /// What else it needs.
    #[serde(skip_serializing_if = "is_default")]
    pub dependency_interpretation: Option<LuaRule>,
}

/// One script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LuaRule {
    /// Its text.
    pub lua_script: String,
}

/// Something a template needs, by name or by label.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DependentObjectReference {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Empty when a selector says which.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// Absent when a name says which.
    #[serde(skip_serializing_if = "is_default")]
    pub label_selector: Option<LabelSelector>,
}
