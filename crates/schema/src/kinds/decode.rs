//! Turns one line of the table into a schema. References stay references, so definitions that hold
//! themselves end; a derived definition is its base with its siblings on top.

use serde_json::{Map, Value};

use super::definition;
use crate::structural::{PatchStrategy, Schema, SchemaRef, Type};

/// The schema of a definition, corrected where OpenAPI cannot say what the type accepts.
pub(super) fn schema(name: Option<&str>, source: Value) -> Schema {
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
