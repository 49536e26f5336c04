//! Defaulting of custom objects from their schema. Must not know built-in kinds: their defaults are code.

use serde_json::Value;

use super::{DEPTH_MAX, Schema};

/// Gives absent fields their defaults, at every depth; a null that may not be null counts as absent.
pub fn apply_defaults(value: &mut Value, schema: &Schema) {
    fill(value, schema, 0);
}

fn fill(value: &mut Value, schema: &Schema, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                let absent = match fields.get(&**name) {
                    None => true,
                    Some(field) => field.is_null() && !property.nullable,
                };
                if absent {
                    fields.insert(name.to_string(), default.clone());
                }
            }
            for (name, field) in fields {
                if let Some(property) = schema.properties.get(name.as_str()) {
                    fill(field, property, depth + 1);
                } else if let Some(values) = &schema.values {
                    fill_element(field, values, depth + 1);
                }
            }
        }
        Value::Array(items) => {
            let Some(element) = &schema.items else { return };
            items.iter_mut().for_each(|item| fill_element(item, element, depth + 1));
        }
        _ => {}
    }
}

fn fill_element(value: &mut Value, schema: &Schema, depth: usize) {
    if value.is_null() && !schema.nullable {
        *value = schema.default.clone().unwrap_or_default();
    }
    fill(value, schema, depth);
}

/// Removes the nulls of fields that may not be null and have no default.
pub fn prune_nulls(value: &mut Value, schema: &Schema) {
    sweep(value, Some(schema), 0);
}

fn sweep(value: &mut Value, schema: Option<&Schema>, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let child = schema.and_then(|schema| field_schema(schema, name));
            let unwanted = child.is_some_and(|child| !child.nullable && child.default.is_none());
            if field.is_null() && unwanted {
                return false;
            }
            sweep(field, child, depth + 1);
            true
        }),
        Value::Array(items) => {
            let element = schema.and_then(|schema| schema.items.as_deref());
            items.iter_mut().for_each(|item| sweep(item, element, depth + 1));
        }
        _ => {}
    }
}

/// The schema of a field of an object: its own, or that of all values.
pub fn field_schema<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    schema.properties.get(name).or(schema.values.as_ref()).map(|child| &**child)
}
