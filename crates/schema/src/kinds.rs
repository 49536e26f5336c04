//! The table of built-in kinds, generated from Kubernetes' published discovery and OpenAPI documents:
//! what exists, by which names, with which verbs and shape. Must not know how a kind behaves.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::structural::builtin::kinds_source;
pub use crate::structural::builtin::{definition, definition_named, index_named, name, source};
pub use crate::structural::table::inflate;

/// One built-in kind in one version.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Version within the group.
    pub version: &'static str,
    /// The kind as objects name it.
    pub kind: &'static str,
    /// The kind of its lists, where it can be listed.
    pub list_kind: Option<&'static str>,
    /// The resource name in paths.
    pub plural: &'static str,
    /// The resource name for one object.
    pub singular: &'static str,
    /// Short names, such as `po`.
    pub short_names: Vec<&'static str>,
    /// Categories, such as `all`.
    pub categories: Vec<&'static str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with the resource, in the words of discovery.
    pub verbs: Vec<&'static str>,
    /// Its subresources, by name.
    pub subresources: Vec<Subresource>,
    /// The place of its definition, for [`definition`].
    pub schema: Option<u16>,
}

/// One subresource of a built-in kind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Subresource {
    /// The last part of its path, such as `status`.
    pub name: &'static str,
    /// The group of the kind that it speaks.
    pub group: &'static str,
    /// The version of the kind that it speaks.
    pub version: &'static str,
    /// The kind that it speaks, such as `Scale`.
    pub kind: &'static str,
    /// What can be done with it.
    pub verbs: Vec<&'static str>,
    /// The place of the definition of the kind that it speaks; none for options of connections.
    pub schema: Option<u16>,
}

/// Every built-in kind: the core group first, then groups in the order of discovery, the preferred
/// version of a group first.
pub fn all() -> &'static [Kind] {
    static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
        serde_json::from_str(kinds_source()).expect("the committed table is tested to hold kinds")
    });
    &KINDS
}

/// The built-in kind of this group, version and kind.
pub fn find(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    all().iter().find(|one| one.group == group && one.version == version && one.kind == kind)
}

#[cfg(test)]
mod tests;
