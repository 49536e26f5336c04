//! The `fieldsV1` of the manager that creates an object, written in one walk. Equal to comparing with an empty
//! object, without the sets in between, because creation is the most frequent write.

use serde_json::{Map, Value};

use super::compare::is_empty;
use super::element::same;
use super::set::PathSet;
use super::shape::{Form, Shape};

/// What the creator of the object owns; `reset` is left out.
pub(super) fn fields_of_creator(shape: Shape<'_>, object: &Value, reset: &PathSet) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields_beside(shape, fields, true, Some(reset)),
        _ => Map::new(),
    }
}

/// The fields of an object; `exists` says whether the object stands for an empty one before.
fn fields_beside(
    shape: Shape<'_>,
    fields: &Map<String, Value>,
    exists: bool,
    reset: Option<&PathSet>,
) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in fields {
        let reset = reset.and_then(|reset| reset.at_field(name));
        let Some(value) = shape.stored(name, Some(value)) else { continue };
        if shape.is_unownable(name) || reset.is_some_and(|reset| reset.member) {
            continue;
        }
        let field = shape.field(name);
        let before = if exists { shape.absent(name) } else { None };
        let content = match before {
            None => Some(new_value(field, value)),
            Some(before) => replaced_value(field, before, value, reset.map(|reset| &reset.below)),
        };
        if let Some(content) = content {
            out.insert(["f:", name].concat(), Value::Object(content));
        }
    }
    out
}

/// A value where there was none: it, and all that is in it.
fn new_value(shape: Shape<'_>, value: &Value) -> Map<String, Value> {
    let mut content = match value {
        Value::Object(fields) if shape.form(value) == Some(Form::Map) => {
            fields_beside(shape, fields, false, None)
        }
        Value::Array(items) if shape.form(value) == Some(Form::List) => new_elements(shape, items),
        _ => return Map::new(),
    };
    if !content.is_empty() {
        content.insert(String::from("."), Value::Object(Map::new()));
    }
    content
}

/// Elements that stand twice are owned, and nothing in them.
fn new_elements(shape: Shape<'_>, items: &[Value]) -> Map<String, Value> {
    let mut out = Map::new();
    for item in items {
        let Ok(identity) = shape.identity(item) else { continue };
        let key = identity.into_encoded();
        let content = match out.contains_key(&key) {
            true => Map::new(),
            false => new_value(shape.element(), item),
        };
        out.insert(key, Value::Object(content));
    }
    out
}

/// A value where there was one that stands for nothing; itself only where it is whole and differs.
fn replaced_value(
    shape: Shape<'_>,
    before: &Value,
    value: &Value,
    reset: Option<&PathSet>,
) -> Option<Map<String, Value>> {
    let content = match value {
        _ if is_empty(Some(value)) && is_empty(Some(before)) => None,
        Value::Object(fields) if shape.form(value) == Some(Form::Map) => {
            Some(fields_beside(shape, fields, before.is_object(), reset))
        }
        Value::Array(items) if shape.form(value) == Some(Form::List) => Some(new_elements(shape, items)),
        _ => None,
    };
    match content {
        Some(content) => (!content.is_empty()).then_some(content),
        None => (!same(before, value)).then(Map::new),
    }
}
