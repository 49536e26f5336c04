//! A compiled CustomResourceDefinition: names, and per version the schema and subresources.

use std::sync::Arc;

use serde_json::Value;

use super::rules::Rules;
use super::{ScalePaths, flag, list, text, texts};
use apimachinery::version_order;
use schema::object_meta;
use schema::{Schema, SchemaRef, Type, prune};

/// A kind that a CustomResourceDefinition describes.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomKind {
    /// API group.
    pub group: String,
    /// What it is called.
    pub names: Names,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// In the order of the definition.
    pub versions: Vec<CustomVersion>,
}

/// What a kind and its resource are called.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    /// The resource in paths.
    pub plural: String,
    /// One of them, for kubectl.
    pub singular: String,
    /// The kind.
    pub kind: String,
    /// The kind of a list.
    pub list_kind: String,
    /// Abbreviations for kubectl.
    pub short_names: Vec<String>,
    /// Groups such as `all`.
    pub categories: Vec<String>,
}

/// One version of a custom kind.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomVersion {
    /// Such as `v1alpha1`.
    pub name: String,
    /// Whether it can be asked for.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// The warning that every request for a deprecated version gets.
    pub deprecation: Option<String>,
    /// The schema of whole objects, with apiVersion, kind and metadata.
    pub schema: Arc<Schema>,
    /// Whether `/status` is served.
    pub has_status: bool,
    /// How `/scale` is served, if it is.
    pub scale: Option<ScalePaths>,
    /// Paths such as `.spec.color` that field selectors may name.
    pub selectable_fields: Vec<String>,
    /// The rules (`x-kubernetes-validations`) of its schema.
    pub rules: Option<Rules>,
}

/// Why a definition describes no kind. One that was validated always does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The definition lacks a field that every definition has.
    #[error("CustomResourceDefinition without {0}")]
    Missing(&'static str),
}

/// The kind that a definition describes. Accepted names go before wanted ones.
pub fn compile(crd: &Value) -> Result<CustomKind, CompileError> {
    let spec = &crd["spec"];
    let accepted = &crd["status"]["acceptedNames"];
    let names = if text(&accepted["kind"]).is_empty() { &spec["names"] } else { accepted };
    for (field, value) in [
        ("spec.group", &spec["group"]),
        ("spec.names.plural", &names["plural"]),
        ("spec.names.kind", &names["kind"]),
        ("spec.versions", &spec["versions"][0]["name"]),
    ] {
        if text(value).is_empty() {
            return Err(CompileError::Missing(field));
        }
    }
    Ok(CustomKind {
        group: text(&spec["group"]).to_owned(),
        names: compile_names(names),
        namespaced: spec["scope"] == "Namespaced",
        versions: list(&spec["versions"]).iter().map(|version| compile_version(version, spec)).collect(),
    })
}

impl CustomKind {
    /// The version of a name.
    pub fn version(&self, name: &str) -> Option<&CustomVersion> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version objects are stored in.
    pub fn storage_version(&self) -> Option<&CustomVersion> {
        self.versions.iter().find(|version| version.storage)
    }
}

fn compile_names(names: &Value) -> Names {
    let own = |key: &str| text(&names[key]).to_owned();
    Names {
        plural: own("plural"),
        singular: own("singular"),
        kind: own("kind"),
        list_kind: own("listKind"),
        short_names: texts(&names["shortNames"]).map(str::to_owned).collect(),
        categories: texts(&names["categories"]).map(str::to_owned).collect(),
    }
}

fn compile_version(version: &Value, spec: &Value) -> CustomVersion {
    let subresources = &version["subresources"];
    CustomVersion {
        name: text(&version["name"]).to_owned(),
        served: flag(&version["served"]),
        storage: flag(&version["storage"]),
        deprecation: flag(&version["deprecated"]).then(|| deprecation(version, spec)),
        schema: Arc::new(whole_object(&version["schema"]["openAPIV3Schema"])),
        has_status: subresources["status"].is_object(),
        scale: ScalePaths::of_subresource(&subresources["scale"]),
        selectable_fields: list(&version["selectableFields"])
            .iter()
            .map(|field| text(&field["jsonPath"]).to_owned())
            .collect(),
        rules: Rules::compile(&version["schema"]["openAPIV3Schema"]),
    }
}

/// Without words of its own, a deprecated version names the newest version that is not.
fn deprecation(version: &Value, spec: &Value) -> String {
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return warning.to_owned();
    }
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let name = text(&version["name"]);
    let newer = list(&spec["versions"])
        .iter()
        .filter(|other| flag(&other["served"]) && !flag(&other["deprecated"]))
        .map(|other| text(&other["name"]))
        .filter(|other| version_order::compare(other, name).is_lt())
        .min_by(|one, other| version_order::compare(one, other));
    let advice = newer.map(|newer| format!("; use {group}/{newer} {kind}")).unwrap_or_default();
    format!("{group}/{name} {kind} is deprecated{advice}")
}

/// The schema of a whole object: what the definition says, and what every object has.
fn whole_object(source: &Value) -> Schema {
    let mut schema = Schema::from_openapi(source);
    prune_defaults(&mut schema, 0);
    let text = || SchemaRef::from(Schema { kind: Type::String, ..Schema::default() });
    for name in ["apiVersion", "kind"] {
        schema.properties.entry(Box::from(name)).or_insert_with(text);
    }
    let own = schema.properties.remove("metadata");
    schema.properties.insert(Box::from("metadata"), metadata_schema(own.as_deref()));
    schema
}

/// A definition may narrow the name and generateName of its objects and nothing else of their metadata.
fn metadata_schema(own: Option<&Schema>) -> SchemaRef {
    let narrowed = own.filter(|own| !own.properties.is_empty());
    let Some(own) = narrowed else { return SchemaRef::Inline(Arc::clone(object_meta())) };
    let mut schema = Schema::clone(object_meta());
    for name in ["name", "generateName"] {
        if let Some(property) = own.properties.get(name) {
            schema.properties.insert(Box::from(name), property.clone());
        }
    }
    schema.into()
}

/// Defaults hold nothing that the schema does not know, so that defaulting needs no second pruning.
fn prune_defaults(schema: &mut Schema, depth: usize) {
    if depth > schema::validate::DEPTH_MAX {
        return;
    }
    if let Some(mut default) = schema.default.take() {
        prune(&mut default, schema, schema.embedded_resource);
        schema.default = Some(default);
    }
    let children = schema.properties.values_mut().chain(&mut schema.items).chain(&mut schema.values);
    for child in children {
        if let SchemaRef::Inline(child) = child {
            prune_defaults(Arc::make_mut(child), depth + 1);
        }
    }
}
