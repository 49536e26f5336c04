//! OverridePolicy and ClusterOverridePolicy: per-cluster differences. Applying them belongs to `decide`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::selector::ExcludeResourceSelector;
use crate::{ClusterAffinity, Object, ResourceSelector, is_default};

/// How many overriders of one sort a rule may have.
pub const OVERRIDERS_MAX: usize = 1_000;
/// How many rules an override policy may have.
pub const OVERRIDE_RULES_MAX: usize = 200;

/// Overrides for the templates of its namespace.
pub type OverridePolicy = Object<OverrideSpec>;
/// Overrides for the templates of all namespaces, and for those without one.
pub type ClusterOverridePolicy = OverridePolicy;

/// What an override policy says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OverrideSpec {
    /// The templates it is about; empty for all.
    #[serde(skip_serializing_if = "is_default")]
    pub resource_selectors: Vec<ResourceSelector>,
    /// Templates it leaves out whatever the selectors say (B2).
    #[serde(skip_serializing_if = "is_default")]
    pub exclude_resource_selectors: Vec<ExcludeResourceSelector>,
    /// What changes where, in this order.
    #[serde(skip_serializing_if = "is_default")]
    pub override_rules: Vec<OverrideRule>,
    /// Deprecated: the clusters of a single rule.
    #[serde(skip_serializing_if = "is_default")]
    pub target_cluster: Option<ClusterAffinity>,
    /// Deprecated: the overriders of a single rule.
    #[serde(skip_serializing_if = "is_default")]
    pub overriders: Overriders,
}

/// What changes in a group of clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OverrideRule {
    /// The clusters; absent for all.
    #[serde(skip_serializing_if = "is_default")]
    pub target_cluster: Option<ClusterAffinity>,
    /// The changes.
    pub overriders: Overriders,
}

/// Changes to a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Overriders {
    /// Changes by JSON pointer.
    #[serde(skip_serializing_if = "is_default")]
    pub plaintext: Vec<PlaintextOverrider>,
    /// Changes of image names.
    #[serde(skip_serializing_if = "is_default")]
    pub image_overrider: Vec<ImageOverrider>,
    /// Changes of a container's command.
    #[serde(skip_serializing_if = "is_default")]
    pub command_overrider: Vec<CommandArgsOverrider>,
    /// Changes of a container's arguments.
    #[serde(skip_serializing_if = "is_default")]
    pub args_overrider: Vec<CommandArgsOverrider>,
    /// Changes of labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels_overrider: Vec<LabelAnnotationOverrider>,
    /// Changes of annotations.
    #[serde(skip_serializing_if = "is_default")]
    pub annotations_overrider: Vec<LabelAnnotationOverrider>,
    /// Changes inside a field that holds JSON or YAML text.
    #[serde(skip_serializing_if = "is_default")]
    pub field_overrider: Vec<FieldOverrider>,
}

/// What an overrider does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverriderOperator {
    /// Puts something there.
    #[default]
    Add,
    /// Takes something away.
    Remove,
    /// Puts something in another's place.
    Replace,
}

/// A change by JSON pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PlaintextOverrider {
    /// Where.
    pub path: String,
    /// What is done.
    pub operator: OverriderOperator,
    /// With what; `null` and absent are the same, as in Karmada.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub value: Value,
}

/// A change of one part of image names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ImageOverrider {
    /// Where the image name is; absent for every container.
    #[serde(skip_serializing_if = "is_default")]
    pub predicate: Option<ImagePredicate>,
    /// Which part.
    pub component: ImageComponent,
    /// What is done.
    pub operator: OverriderOperator,
    /// With what.
    #[serde(skip_serializing_if = "is_default")]
    pub value: String,
}

/// Where an image name is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ImagePredicate {
    /// JSON pointer to the image name.
    pub path: String,
}

/// A part of an image name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ImageComponent {
    /// Host and port.
    #[default]
    Registry,
    /// Path.
    Repository,
    /// Tag or digest.
    Tag,
}

/// A change of a container's command or arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CommandArgsOverrider {
    /// The container.
    pub container_name: String,
    /// What is done; `replace` is not among it.
    pub operator: OverriderOperator,
    /// The words.
    #[serde(skip_serializing_if = "is_default")]
    pub value: Vec<String>,
}

/// A change of labels or annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelAnnotationOverrider {
    /// What is done.
    pub operator: OverriderOperator,
    /// The pairs.
    pub value: BTreeMap<String, String>,
}

/// Changes inside a string field that holds JSON or YAML.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FieldOverrider {
    /// JSON pointer to the string field.
    pub field_path: String,
    /// Changes when it holds JSON.
    #[serde(skip_serializing_if = "is_default")]
    pub json: Vec<FieldPatch>,
    /// Changes when it holds YAML.
    #[serde(skip_serializing_if = "is_default")]
    pub yaml: Vec<FieldPatch>,
}

/// One change inside a field's document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FieldPatch {
    /// Where in the document.
    pub sub_path: String,
    /// What is done.
    pub operator: OverriderOperator,
    /// With what.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub value: Value,
}

/// What a Work remembers of a policy that changed its manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AppliedOverride {
    /// The override policy.
    pub policy_name: String,
    /// What it changed.
    pub overriders: Overriders,
}
