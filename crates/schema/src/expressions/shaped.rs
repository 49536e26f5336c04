//! The CEL type of the objects of a kind, for type checking of policies. Fields that the kind leaves open are
//! dynamic, so that a valid expression is never reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::{Field, Object, Type, UNBOUNDED};

use super::declared::escaped;
use crate::structural::{self, Schema, SchemaRef};

/// The type of the objects of a kind with this schema.
pub fn shaped(kind: &str, schema: &Schema) -> Type {
    let mut fields = fields(schema, &mut Vec::new());
    let field = |key: &str, kind: Type| (key.to_owned(), Field { key: key.to_owned(), kind });
    let common = [field("apiVersion", Type::TEXT), field("kind", Type::TEXT), field("metadata", Type::ANY)];
    for (key, field) in common {
        fields.entry(key).or_insert(field);
    }
    Type::Object(Arc::new(Object { name: kind.to_owned(), fields }))
}

fn fields(schema: &Schema, within: &mut Vec<u16>) -> BTreeMap<String, Field> {
    let mut fields = BTreeMap::new();
    for (key, property) in &schema.properties {
        if let Some(name) = escaped(key) {
            fields.insert(name, Field { key: key.to_string(), kind: referred(property, within) });
        }
    }
    fields
}

/// A definition inside of itself may be anything.
fn referred(schema: &SchemaRef, within: &mut Vec<u16>) -> Type {
    let SchemaRef::Builtin(index) = schema else { return typed(schema, within) };
    if within.contains(index) {
        return Type::ANY;
    }
    within.push(*index);
    let kind = typed(schema, within);
    within.pop();
    kind
}

fn typed(schema: &Schema, within: &mut Vec<u16>) -> Type {
    if schema.int_or_string {
        return Type::ANY;
    }
    match (schema.kind, &schema.values, &schema.items) {
        (structural::Type::Object, _, _) if !schema.properties.is_empty() => {
            Type::Object(Arc::new(Object { name: "object".to_owned(), fields: fields(schema, within) }))
        }
        (structural::Type::Object, Some(values), _) => Type::map(referred(values, within)),
        (structural::Type::Array, _, Some(items)) => Type::list(referred(items, within)),
        (structural::Type::String, _, _) => match schema.format.as_deref().unwrap_or_default() {
            "byte" => Type::Bytes(UNBOUNDED),
            "duration" => Type::Duration(UNBOUNDED),
            "date" | "date-time" => Type::Timestamp(UNBOUNDED),
            "quantity" => Type::ANY,
            _ => Type::TEXT,
        },
        (structural::Type::Boolean, _, _) => Type::Bool,
        (structural::Type::Number, _, _) => Type::Double,
        (structural::Type::Integer, _, _) => Type::Int,
        _ => Type::ANY,
    }
}
