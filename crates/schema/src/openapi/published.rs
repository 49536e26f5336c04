//! The neutral description of a published kind, and how built-in kinds and CustomResourceDefinitions
//! fill it.

use serde_json::Value;

use crate::kinds::{self, Kind};

/// One kind in one version, as clients see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Published<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Version within the group.
    pub version: &'a str,
    /// The kind as objects name it.
    pub kind: &'a str,
    /// The kind of its lists, where it can be listed.
    pub list_kind: Option<&'a str>,
    /// The resource name in paths.
    pub plural: &'a str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with the resource, in the words of discovery.
    pub verbs: Vec<&'a str>,
    /// Its subresources.
    pub subresources: Vec<PublishedSubresource<'a>>,
    /// Where its schema is.
    pub schema: SchemaSource<'a>,
}

/// One subresource, as clients see it.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedSubresource<'a> {
    /// The last part of its path.
    pub name: &'a str,
    /// The group of the kind that it speaks.
    pub group: &'a str,
    /// The version of the kind that it speaks.
    pub version: &'a str,
    /// The kind that it speaks.
    pub kind: &'a str,
    /// What can be done with it.
    pub verbs: Vec<&'a str>,
    /// The built-in definition of its kind, unless that is the kind it belongs to.
    pub schema: Option<u16>,
}

/// Where the schema of a kind is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SchemaSource<'a> {
    /// In the table of built-in kinds.
    Builtin(u16),
    /// In a CustomResourceDefinition: its `openAPIV3Schema`, null where it has none.
    Custom(&'a Value),
}

impl<'a> From<&'a Kind> for Published<'a> {
    fn from(kind: &'a Kind) -> Self {
        let subresources = kind.subresources.iter().map(|sub| PublishedSubresource {
            name: sub.name,
            group: sub.group,
            version: sub.version,
            kind: sub.kind,
            verbs: sub.verbs.clone(),
            schema: sub.schema,
        });
        Self {
            group: kind.group,
            version: kind.version,
            kind: kind.kind,
            list_kind: kind.list_kind,
            plural: kind.plural,
            namespaced: kind.namespaced,
            verbs: kind.verbs.clone(),
            subresources: subresources.collect(),
            schema: kind.schema.map_or(SchemaSource::Custom(&Value::Null), SchemaSource::Builtin),
        }
    }
}

const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

impl<'a> Published<'a> {
    /// The served versions of a CustomResourceDefinition (v1) object.
    pub fn of_definition(definition: &'a Value) -> Vec<Self> {
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] == true);
        served.map(|version| Self::of_version(&definition["spec"], version)).collect()
    }

    fn of_version(spec: &'a Value, version: &'a Value) -> Self {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
        let name = text(&version["name"]);
        let own = |subresource| PublishedSubresource {
            name: subresource,
            group,
            version: name,
            kind,
            verbs: SUBRESOURCE_VERBS.to_vec(),
            schema: None,
        };
        let scale = || PublishedSubresource {
            group: "autoscaling",
            version: "v1",
            kind: "Scale",
            schema: kinds::index_named("io.k8s.api.autoscaling.v1.Scale"),
            ..own("scale")
        };
        let has = |subresource: &str| version["subresources"][subresource].is_object();
        Self {
            group,
            version: name,
            kind,
            list_kind: spec["names"]["listKind"].as_str(),
            plural: text(&spec["names"]["plural"]),
            namespaced: spec["scope"] == "Namespaced",
            verbs: CUSTOM_VERBS.to_vec(),
            subresources: [has("status").then(|| own("status")), has("scale").then(scale)]
                .into_iter()
                .flatten()
                .collect(),
            schema: SchemaSource::Custom(&version["schema"]["openAPIV3Schema"]),
        }
    }

    /// The name of its schema among the components of a document.
    pub(super) fn component(&self) -> String {
        match self.schema {
            SchemaSource::Builtin(index) => kinds::name(index).unwrap_or_default().to_owned(),
            SchemaSource::Custom(_) => {
                let group: Vec<&str> = self.group.rsplit('.').collect();
                format!("{}.{}.{}", group.join("."), self.version, self.kind)
            }
        }
    }

    /// The name of the schema of its lists; built-in lists are named like that, too.
    pub(super) fn list_component(&self) -> Option<String> {
        let list_kind = self.list_kind?;
        let component = self.component();
        let (package, _) = component.rsplit_once('.')?;
        Some(format!("{package}.{list_kind}"))
    }

    pub(super) fn is_custom(&self) -> bool {
        matches!(self.schema, SchemaSource::Custom(_))
    }
}
