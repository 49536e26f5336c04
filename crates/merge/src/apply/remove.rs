//! Removes fields and list elements from an object.

use serde_json::{Map, Value};

use super::set::PathSet;
use super::shape::{Form, Shape};

/// The value without what is at and below the paths; null where nothing is left of it.
pub(super) fn without(shape: Shape<'_>, value: &Value, paths: &PathSet) -> Value {
    match (shape.form(value), value) {
        (Some(Form::Map), Value::Object(fields)) => without_fields(shape, fields, paths),
        (Some(Form::List), Value::Array(items)) => without_elements(shape, items, paths),
        _ => value.clone(),
    }
}

fn without_fields(shape: Shape<'_>, fields: &Map<String, Value>, paths: &PathSet) -> Value {
    let mut kept = Map::new();
    for (name, value) in fields {
        let value = match paths.at_field(name) {
            None => value.clone(),
            Some(node) if node.member => continue,
            Some(node) => without(shape.field(name), value, &node.below),
        };
        kept.insert(name.clone(), value);
    }
    match kept.is_empty() {
        true => Value::Null,
        false => Value::Object(kept),
    }
}

fn without_elements(shape: Shape<'_>, items: &[Value], paths: &PathSet) -> Value {
    let mut kept = Vec::with_capacity(items.len());
    for item in items {
        let node = shape.identity(item).ok().and_then(|identity| paths.at(&identity));
        match node {
            None => kept.push(item.clone()),
            Some(node) if node.member => {}
            Some(node) => kept.push(without(shape.element(), item, &node.below)),
        }
    }
    match kept.is_empty() {
        true => Value::Null,
        false => Value::Array(kept),
    }
}

/// Drops fields that are null, except inside values that are owned whole.
pub(super) fn drop_nulls(shape: Shape<'_>, value: &mut Value) {
    match (shape.form(value), value) {
        (Some(Form::Map), Value::Object(fields)) => {
            fields.retain(|name, value| !value.is_null() || shape.keeps_null(name));
            for (name, value) in fields {
                drop_nulls(shape.field(name), value);
            }
        }
        (Some(Form::List), Value::Array(items)) => {
            for item in items {
                drop_nulls(shape.element(), item);
            }
        }
        _ => {}
    }
}
