//! The resource registry: the built-in kinds, and those that CustomResourceDefinitions add. A registry is an
//! immutable value; a change of a definition makes a new one.

use std::collections::BTreeMap;
use std::sync::Arc;

mod converter;
mod definition;
mod resource;
pub(crate) mod well_known;

pub(crate) use converter::Converter;
pub use definition::Definition;
pub(crate) use definition::{
    CLEANUP, DEFINITIONS, compile_definition, definition_condition, load_definitions,
};
pub use resource::{Resource, group_version};

/// Everything that is served, by group, version and plural name.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    groups: BTreeMap<Box<str>, Group>,
}

/// The versions of one group, the preferred one first.
#[derive(Debug, Clone, Default)]
pub struct Group {
    versions: Vec<Version>,
}

/// The resources of one group and version, by plural name.
#[derive(Debug, Clone)]
pub struct Version {
    /// The name, such as `v1`.
    pub name: Box<str>,
    /// The resources, by plural name.
    pub resources: BTreeMap<Box<str>, Arc<Resource>>,
}

/// One computed resource. All of them are namespaced; without a namespace they speak of the whole cluster.
#[derive(Debug, Clone, Copy)]
pub struct Computed {
    /// The name in paths.
    pub plural: &'static str,
    /// The name of one.
    pub singular: &'static str,
    /// The kind of the answers.
    pub kind: &'static str,
    /// `create`, `get` or both.
    pub verbs: &'static [&'static str],
}

/// A group of resources that are computed when they are asked for and never stored.
#[derive(Debug, Clone, Copy)]
pub struct ComputedGroup {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// What it serves.
    pub resources: &'static [Computed],
}

impl Group {
    /// The versions, the preferred one first.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }
}

impl Registry {
    /// The registry of the built-in kinds, these custom ones and what is computed.
    pub fn new<'a>(
        custom: impl IntoIterator<Item = &'a Arc<Definition>>,
        computed: Option<ComputedGroup>,
    ) -> Self {
        let mut registry = Self::default();
        resource::builtin().for_each(|resource| registry.add(resource));
        if let Some(group) = &computed {
            resource::computed(group).for_each(|resource| registry.add(resource));
        }
        for definition in custom {
            resource::custom(definition).for_each(|resource| registry.add(resource));
        }
        for group in registry.groups.values_mut() {
            group.versions.sort_by(|a, b| apimachinery::version_order::compare(&a.name, &b.name));
        }
        registry
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let group = self.groups.entry(resource.group.clone()).or_default();
        let position = group.versions.iter().position(|version| version.name == resource.version);
        let position = position.unwrap_or_else(|| {
            group.versions.push(Version { name: resource.version.clone(), resources: BTreeMap::new() });
            group.versions.len() - 1
        });
        group.versions[position].resources.insert(resource.plural.clone(), resource);
    }

    /// The groups by name; the core group's name is empty.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &Group)> {
        self.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// One group.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.get(name)
    }

    /// One version of a group.
    pub fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.groups.get(group)?.versions.iter().find(|candidate| &*candidate.name == version)
    }

    /// One resource.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.resources.get(plural)
    }

    /// The resource that serves an apiVersion and kind, as owner references name it.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = split_api_version(api_version);
        self.version(group, version)?.resources.values().find(|resource| &*resource.kind == kind)
    }

    /// Every resource in every version.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let versions = self.groups.values().flat_map(|group| &group.versions);
        versions.flat_map(|version| version.resources.values())
    }

    /// Every stored resource once, in its preferred version.
    pub fn stored(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let mut seen = std::collections::BTreeSet::new();
        self.all().filter(move |resource| resource.is_stored() && seen.insert(resource.table.clone()))
    }
}

/// Splits `apps/v1` into group and version; `v1` is core.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
