//! The definitions of built-in types. They are here, below the table of kinds, because a schema may refer to them by their
//! place in the committed file. One line of that file becomes a schema: References stay references, so definitions that hold
//! themselves end; a derived definition is its base with its siblings on top.

use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value};

use super::table::Table;
use super::{PatchStrategy, Schema, SchemaRef, Type};

/// The built-in definition at a place in the table; the empty schema for a place outside of it.
pub fn definition(index: u16) -> &'static Schema {
    static DECODED: LazyLock<Vec<OnceLock<Schema>>> =
        LazyLock::new(|| table().definitions().map(|_| OnceLock::new()).collect());
    static EMPTY: LazyLock<Schema> = LazyLock::new(Schema::default);
    match DECODED.get(usize::from(index)) {
        Some(place) => place.get_or_init(|| schema(name(index), source(index))),
        None => &EMPTY,
    }
}

/// The built-in definition of this name, such as `io.k8s.api.core.v1.PodSpec`.
pub fn definition_named(name: &str) -> Option<&'static Schema> {
    index_named(name).map(definition)
}

/// The place of the definition of this name.
pub fn index_named(name: &str) -> Option<u16> {
    table().index(name)
}

/// The name of the definition at a place; none for a derived one (a reference with something beside it).
pub fn name(index: u16) -> Option<&'static str> {
    table().name(index)
}

/// The definition at a place as OpenAPI writes it, with places instead of names in `$ref`.
pub fn source(index: u16) -> Value {
    let text = table().source(index).unwrap_or("{}");
    serde_json::from_str(text).expect("the committed table is tested to hold JSON")
}

/// The kinds of the committed file, in JSON.
pub(crate) fn kinds_source() -> &'static str {
    table().kinds()
}

/// How many definitions there are.
#[cfg(test)]
pub(crate) fn definitions_count() -> usize {
    table().definitions().count()
}

fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(include_bytes!("../../data/kinds.bin")));
    &TABLE
}

/// The schema of a definition, corrected where OpenAPI cannot say what the type accepts.
fn schema(name: Option<&str>, source: Value) -> Schema {
    let decoded = match (place(&source), source) {
        (Some(base), source) => derived(base, &source),
        (None, Value::Object(fields)) => node(fields),
        (None, _) => Schema::default(),
    };
    match name {
        Some(name) => special(name, decoded),
        None => decoded,
    }
}

fn node(mut fields: Map<String, Value>) -> Schema {
    let properties = fields.remove("properties");
    let items = fields.remove("items");
    let values = fields.remove("additionalProperties");
    let mut schema = Schema::from_openapi(&Value::Object(fields));
    if let Some(Value::Object(properties)) = properties {
        schema.properties =
            properties.into_iter().map(|(name, source)| (name.into_boxed_str(), child(source))).collect();
    }
    schema.items = items.map(child);
    schema.values = values.map(child);
    schema
}

fn child(source: Value) -> SchemaRef {
    match (place(&source), source) {
        (Some(index), _) => SchemaRef::Builtin(index),
        (None, Value::Object(fields)) => node(fields).into(),
        (None, _) => Schema::default().into(),
    }
}

fn place(source: &Value) -> Option<u16> {
    source["$ref"].as_u64().and_then(|index| u16::try_from(index).ok())
}

fn derived(base: u16, source: &Value) -> Schema {
    let siblings = Schema::from_openapi(source);
    let mut schema = definition(base).clone();
    schema.default = siblings.default.or(schema.default);
    if siblings.patch != PatchStrategy::default() {
        schema.patch = siblings.patch;
    }
    if let Some(map_type) = source["x-kubernetes-map-type"].as_str() {
        schema.atomic_map = map_type == "atomic";
    }
    schema
}

/// Types with a JSON form of their own: OpenAPI describes them loosely or not at all.
fn special(name: &str, schema: Schema) -> Schema {
    let kind_of = |kind| Schema { kind, rules: None, ..schema.clone() };
    match name.rsplit('.').next().unwrap_or_default() {
        "IntOrString" => Schema { int_or_string: true, ..kind_of(Type::Any) },
        "Quantity" => Schema { format: Some("quantity".into()), ..kind_of(Type::Any) },
        "RawExtension" | "FieldsV1" | "Patch" => Schema { preserve_unknown: true, ..kind_of(Type::Object) },
        "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            Schema { preserve_unknown: true, ..kind_of(Type::Any) }
        }
        _ => schema,
    }
}
