//! `x-kubernetes-list-type`: uniqueness of the elements of a set, and of the keys of a map's elements. Only the
//! second occurrence of a duplicate is reported.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::structural::{DEPTH_MAX, ListType, Schema, child};
use apimachinery::error::FieldError;

/// Checks the lists in a value, at any depth.
pub(super) fn check(value: &Value, schema: &Schema, path: &str, depth: usize) -> Vec<FieldError> {
    if depth > DEPTH_MAX {
        return Vec::new();
    }
    match value {
        Value::Object(fields) => object(fields, schema, path, depth),
        Value::Array(items) => list(items, schema, path, depth),
        _ => Vec::new(),
    }
}

fn object(fields: &Map<String, Value>, schema: &Schema, path: &str, depth: usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, field) in fields {
        if let Some(property) = schema.properties.get(name.as_str()) {
            errors.extend(check(field, property, &child(path, name), depth + 1));
        } else if let Some(values) = &schema.values {
            errors.extend(check(field, values, &format!("{path}[{name}]"), depth + 1));
        }
    }
    errors
}

fn list(items: &[Value], schema: &Schema, path: &str, depth: usize) -> Vec<FieldError> {
    let mut errors = match &schema.list {
        ListType::Atomic => Vec::new(),
        ListType::Set => duplicates(items.iter().cloned(), path),
        ListType::Map(keys) => map_keys(items, keys, path),
    };
    if let Some(element) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            errors.extend(check(item, element, &format!("{path}[{index}]"), depth + 1));
        }
    }
    errors
}

fn map_keys(items: &[Value], keys: &[Box<str>], path: &str) -> Vec<FieldError> {
    let foreign = |item: &&Value| !(item.is_object() || item.is_null());
    if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| foreign(item)) {
        let detail = "must be an object for an array of list-type map";
        return vec![FieldError::invalid(format!("{path}[{index}]"), item.clone(), detail)];
    }
    let key_of = |item: &Value| {
        let present = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
        Value::Object(present.collect())
    };
    duplicates(items.iter().map(key_of), path)
}

fn duplicates(items: impl Iterator<Item = Value>, path: &str) -> Vec<FieldError> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut errors = Vec::new();
    for (index, item) in items.enumerate() {
        let times = seen.entry(item.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), item));
        }
    }
    errors
}
