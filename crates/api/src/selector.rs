//! Selectors: by label, by field, by reference. Matching belongs to `decide`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::is_default;

/// How many selectors, or exclusions, a policy may have: each of them is judged with every template that is meant.
pub const SELECTORS_MAX: usize = 1_000;

/// Selects by labels; an empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Each pair must be there.
    #[serde(skip_serializing_if = "is_default")]
    pub match_labels: BTreeMap<String, String>,
    /// Each requirement must hold.
    #[serde(skip_serializing_if = "is_default")]
    pub match_expressions: Vec<Requirement>,
}

/// What must hold for the value behind one key: a label, or a field of a cluster or node.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Requirement {
    /// The label or field.
    pub key: String,
    /// How the value is compared.
    pub operator: Operator,
    /// With what it is compared.
    #[serde(skip_serializing_if = "is_default")]
    pub values: Vec<String>,
}

/// How a requirement compares; the schema does not list the words, so unknown ones must survive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// The value is one of those listed.
    In,
    /// The value is none of those listed, or absent.
    NotIn,
    /// The key is there.
    Exists,
    /// The key is not there.
    DoesNotExist,
    /// The value is a greater integer; node selectors only.
    Gt,
    /// The value is a smaller integer; node selectors only.
    Lt,
    /// A word that means nothing here.
    #[serde(untagged)]
    Other(String),
}

impl Default for Operator {
    fn default() -> Self {
        Operator::Other(String::new())
    }
}

/// Selects nodes: one of the terms must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelector {
    /// Alternatives.
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// One alternative of a node selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    #[serde(skip_serializing_if = "is_default")]
    pub match_expressions: Vec<Requirement>,
    /// Requirements on fields.
    #[serde(skip_serializing_if = "is_default")]
    pub match_fields: Vec<Requirement>,
}

/// Which templates a policy is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSelector {
    /// `group/version` of the template.
    pub api_version: String,
    /// Kind of the template.
    pub kind: String,
    /// Empty for all; in cluster-scoped policies a comma-separated list of names and `prefix*` (B1).
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Empty for all.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// Absent for all.
    #[serde(skip_serializing_if = "is_default")]
    pub label_selector: Option<LabelSelector>,
    /// What this selector leaves out (B2).
    #[serde(skip_serializing_if = "is_default")]
    pub exclude: Option<Exclude>,
}

/// What one selector leaves out of its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Exclude {
    /// Names and `prefix*`, comma-separated (B1).
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Empty for all.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// Absent for all.
    #[serde(skip_serializing_if = "is_default")]
    pub label_selector: Option<LabelSelector>,
}

/// What a whole policy leaves out, whatever its selectors say (B2).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExcludeResourceSelector {
    /// `group/version` of the template.
    pub api_version: String,
    /// Kind of the template.
    pub kind: String,
    /// Names and `prefix*`, comma-separated (B1).
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    /// Empty for all.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// Absent for all.
    #[serde(skip_serializing_if = "is_default")]
    pub label_selector: Option<LabelSelector>,
}
