//! One resource as one version of it is served, whether it is built in or defined at run time.

use std::sync::Arc;

use serde_json::Value;
use store::Revision;
use tokio_util::sync::CancellationToken;

use super::{Computed, ComputedGroup, Converter, Definition};
use apiextensions::{CustomKind, CustomVersion};
use apimachinery::error::Subject;
use apimachinery::selector::SelectableFields;
use builtin::convert::Representation;
use schema::kinds::{self, Kind};
use schema::{self, Schema, SchemaRef};

/// One resource in one version.
#[derive(Debug)]
pub struct Resource {
    /// API group, empty for core.
    pub group: Box<str>,
    /// API version.
    pub version: Box<str>,
    /// The kind of its objects.
    pub kind: Box<str>,
    /// The kind of its lists.
    pub list_kind: Box<str>,
    /// The name in paths.
    pub plural: Box<str>,
    /// The name of one.
    pub singular: Box<str>,
    /// What people type instead.
    pub short_names: Vec<Box<str>>,
    /// The groups of kinds it is listed with, such as `all`.
    pub categories: Vec<Box<str>>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it, as discovery says it.
    pub verbs: Vec<Box<str>>,
    /// Its parts with paths of their own.
    pub subresources: Vec<Subresource>,
    /// The shape of its objects.
    pub schema: SchemaRef,
    /// The fields that field selectors may ask for.
    pub selectable: SelectableFields,
    /// Where its objects lie in the store; versions of one resource share it.
    pub table: Arc<str>,
    /// The apiVersion its objects are stored under.
    pub stored_api_version: Box<str>,
    /// How the stored representation differs from this version's.
    pub representation: Representation,
    /// The definition behind it, for kinds that are not built in.
    pub custom: Option<Arc<Definition>>,
    /// Computed when it is asked for.
    pub is_computed: bool,
    /// Cancelled when the resource is no longer served like this, which ends its watches.
    pub gone: CancellationToken,
}

/// A part of an object with a path of its own.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// The last segment of its path.
    pub name: Box<str>,
    /// Group of what it answers with.
    pub group: Box<str>,
    /// Version of what it answers with.
    pub version: Box<str>,
    /// Kind of what it answers with.
    pub kind: Box<str>,
    /// What can be done with it.
    pub verbs: Vec<Box<str>>,
}

impl Resource {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// How errors name an object of this resource.
    pub fn subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject { group: &self.group, resource: &self.plural, name }
    }

    /// How `Invalid` errors name an object of this resource: by kind.
    pub fn kind_subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject { group: &self.group, resource: &self.kind, name }
    }

    /// The key of an object in the resource's table.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        }
    }

    /// Whether objects of it are kept; reviews and what is computed are only answered.
    pub fn is_stored(&self) -> bool {
        self.has_verb("get") && !self.is_computed
    }

    /// Whether discovery says that this can be done with it.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| &**one == verb)
    }

    /// The version of the custom kind behind it, for kinds that are not built in.
    pub fn custom_version(&self) -> Option<(&CustomKind, &CustomVersion)> {
        let kind = &self.custom.as_ref()?.kind;
        Some((kind, kind.version(&self.version)?))
    }

    /// Whether it has this subresource.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|part| &*part.name == name)
    }

    /// Whether what is written now is shown as it is stored.
    pub fn serves_stored_bytes(&self) -> bool {
        self.representation == Representation::Stored
    }

    /// Whether what was written at this revision can be shown as it is stored.
    pub fn serves_as_stored(&self, revision: Revision) -> bool {
        self.serves_stored_bytes() && self.custom.as_ref().is_none_or(|custom| custom.since <= revision)
    }

    /// Whether these stored bytes are of the version that is stored now; an object with odd fields may say no.
    pub fn is_stored_version(&self, bytes: &[u8]) -> bool {
        let rest = bytes.strip_prefix(b"{\"apiVersion\":\"");
        rest.and_then(|rest| rest.strip_prefix(self.stored_api_version.as_bytes()))
            .is_some_and(|rest| rest.first() == Some(&b'"'))
    }

    /// The conversion webhook between its versions, if there is one.
    pub fn converter(&self) -> Option<&Converter> {
        self.custom.as_ref()?.converter.as_ref()
    }

    /// A stored object in this version, where no webhook is needed to convert it.
    pub fn serve(&self, mut object: Value) -> Value {
        self.representation.serve(&mut object);
        object["apiVersion"] = self.api_version().into();
        self.fit_to_schema(&mut object);
        object
    }

    /// Makes a custom object fit the schema of this version, which may be younger than the object.
    pub fn fit_to_schema(&self, object: &mut Value) {
        if self.custom.is_some() {
            schema::prune(object, &self.schema, true);
            schema::apply_defaults(object, &self.schema);
        }
    }

    /// An object of this version as it is stored.
    pub fn store(&self, mut object: Value) -> Value {
        if !self.serves_stored_bytes() {
            self.representation.store(&mut object);
            object["apiVersion"] = (&*self.stored_api_version).into();
        }
        object
    }
}

/// `apps/v1`, or `v1` for the core group.
pub fn group_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// The built-in resources.
pub fn builtin() -> impl Iterator<Item = Arc<Resource>> {
    kinds::all().iter().map(|kind| Arc::new(from_kind(kind)))
}

fn from_kind(kind: &Kind) -> Resource {
    // Two built-in kinds are served in two groups or versions and stored in one.
    let (table, stored_api_version, representation) = match (kind.group, kind.version, kind.kind) {
        ("events.k8s.io", "v1", "Event") => ("/events".to_owned(), "v1".to_owned(), Representation::NewEvent),
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => (
            "autoscaling/horizontalpodautoscalers".to_owned(),
            "autoscaling/v2".to_owned(),
            Representation::OldAutoscaler,
        ),
        (group, version, _) => {
            (format!("{group}/{}", kind.plural), group_version(group, version), Representation::Stored)
        }
    };
    Resource {
        group: kind.group.into(),
        version: kind.version.into(),
        kind: kind.kind.into(),
        list_kind: kind.list_kind.map_or_else(|| format!("{}List", kind.kind).into(), Box::from),
        plural: kind.plural.into(),
        singular: kind.singular.into(),
        short_names: boxed(&kind.short_names),
        categories: boxed(&kind.categories),
        namespaced: kind.namespaced,
        verbs: boxed(&kind.verbs),
        subresources: kind.subresources.iter().map(from_subresource).collect(),
        schema: kind.schema.map_or_else(|| Schema::default().into(), SchemaRef::Builtin),
        selectable: SelectableFields::builtin(kind.group, kind.kind),
        table: table.into(),
        stored_api_version: stored_api_version.into(),
        representation,
        custom: None,
        is_computed: false,
        gone: CancellationToken::new(),
    }
}

fn from_subresource(part: &kinds::Subresource) -> Subresource {
    Subresource {
        name: part.name.into(),
        group: part.group.into(),
        version: part.version.into(),
        kind: part.kind.into(),
        verbs: boxed(&part.verbs),
    }
}

fn boxed(texts: &[&str]) -> Vec<Box<str>> {
    texts.iter().map(|text| Box::from(*text)).collect()
}

/// The resources of a group that is computed.
pub fn computed(group: &ComputedGroup) -> impl Iterator<Item = Arc<Resource>> {
    group.resources.iter().map(|resource| Arc::new(from_computed(group, resource)))
}

fn from_computed(group: &ComputedGroup, computed: &Computed) -> Resource {
    Resource {
        group: group.group.into(),
        version: group.version.into(),
        kind: computed.kind.into(),
        list_kind: format!("{}List", computed.kind).into(),
        plural: computed.plural.into(),
        singular: computed.singular.into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: boxed(computed.verbs),
        subresources: Vec::new(),
        schema: Schema::default().into(),
        selectable: SelectableFields::custom(true, []),
        table: format!("{}/{}", group.group, computed.plural).into(),
        stored_api_version: group_version(group.group, group.version).into(),
        representation: Representation::Stored,
        custom: None,
        is_computed: true,
        gone: CancellationToken::new(),
    }
}

/// What can be done with every custom kind.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// The resources of a definition, one per served version.
pub fn custom(definition: &Arc<Definition>) -> impl Iterator<Item = Arc<Resource>> {
    let served = definition.kind.versions.iter().filter(|version| version.served);
    served.map(|version| Arc::new(from_version(definition, version)))
}

fn from_version(definition: &Arc<Definition>, version: &CustomVersion) -> Resource {
    let kind = &definition.kind;
    let texts = |list: &[String]| list.iter().map(|text| Box::from(text.as_str())).collect();
    let stored = kind.storage_version().unwrap_or(version);
    let representation =
        if stored.name == version.name { Representation::Stored } else { Representation::Custom };
    Resource {
        group: kind.group.as_str().into(),
        version: version.name.as_str().into(),
        kind: kind.names.kind.as_str().into(),
        list_kind: kind.names.list_kind.as_str().into(),
        plural: kind.names.plural.as_str().into(),
        singular: kind.names.singular.as_str().into(),
        short_names: texts(&kind.names.short_names),
        categories: texts(&kind.names.categories),
        namespaced: kind.namespaced,
        verbs: boxed(&CUSTOM_VERBS),
        subresources: custom_subresources(kind, version),
        schema: SchemaRef::Inline(version.schema.clone()),
        selectable: SelectableFields::custom(
            kind.namespaced,
            version.selectable_fields.iter().map(String::as_str),
        ),
        table: format!("{}/{}", kind.group, kind.names.plural).into(),
        stored_api_version: group_version(&kind.group, &stored.name).into(),
        representation,
        custom: Some(definition.clone()),
        is_computed: false,
        gone: CancellationToken::new(),
    }
}

fn custom_subresources(kind: &CustomKind, version: &CustomVersion) -> Vec<Subresource> {
    let part = |name: &str, group: &str, api: &str, kind: &str| Subresource {
        name: name.into(),
        group: group.into(),
        version: api.into(),
        kind: kind.into(),
        verbs: boxed(&SUBRESOURCE_VERBS),
    };
    let status = version.has_status.then(|| part("status", &kind.group, &version.name, &kind.names.kind));
    let scale = version.scale.is_some().then(|| part("scale", "autoscaling", "v1", "Scale"));
    status.into_iter().chain(scale).collect()
}
