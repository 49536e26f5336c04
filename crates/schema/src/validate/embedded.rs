//! `x-kubernetes-embedded-resource`: the value must have the apiVersion, kind and metadata of a Kubernetes object.

use serde_json::{Map, Value};

use crate::structural::{DEPTH_MAX, Schema, child};
use apimachinery::error::FieldError;
use apimachinery::metadata;
use apimachinery::names::{self, NameRule};

/// Checks the resources embedded in a value, at any depth; the value itself counts if its schema says so.
pub(super) fn check(value: &Value, schema: &Schema, path: &str, depth: usize) -> Vec<FieldError> {
    if depth > DEPTH_MAX {
        return Vec::new();
    }
    let mut errors = Vec::new();
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                errors.extend(resource(fields, path));
            }
            for (name, field) in fields {
                if let Some(property) = schema.properties.get(name.as_str()) {
                    errors.extend(check(field, property, &child(path, name), depth + 1));
                } else if let Some(values) = &schema.values {
                    errors.extend(check(field, values, &format!("{path}[{name}]"), depth + 1));
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(element) = &schema.items {
                    errors.extend(check(item, element, &format!("{path}[{index}]"), depth + 1));
                }
            }
        }
        _ => {}
    }
    errors
}

fn resource(fields: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = ["apiVersion", "kind"]
        .iter()
        .filter(|name| !fields.contains_key(**name))
        .map(|name| FieldError::required(child(path, name), ""))
        .collect();
    for name in ["apiVersion", "kind"] {
        let Some(value) = fields.get(name) else { continue };
        let fault = match value.as_str() {
            None => Some(String::from("must be a string")),
            Some("") => Some(String::from("must not be empty")),
            Some(text) if name == "kind" => kind_fault(text),
            Some(text) => api_version_fault(text),
        };
        errors.extend(fault.map(|fault| FieldError::invalid(child(path, name), value.clone(), fault)));
    }
    if let Some(metadata @ Value::Object(_)) = fields.get("metadata") {
        errors.extend(embedded_metadata(metadata, &child(path, "metadata")));
    }
    errors
}

/// What keeps a text from being a kind.
fn kind_fault(text: &str) -> Option<String> {
    let faults = names::dns_1035_label(&text.to_lowercase());
    let list = faults.join(",");
    (!faults.is_empty()).then(|| format!("may have mixed case, but should otherwise match: {list}"))
}

fn api_version_fault(text: &str) -> Option<String> {
    (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
}

/// The name may be missing: a template gets its name later.
fn embedded_metadata(metadata: &Value, path: &str) -> Vec<FieldError> {
    let namespaced = metadata["namespace"].as_str().is_some_and(|name| !name.is_empty());
    let named = metadata["name"].as_str().is_some_and(|name| !name.is_empty());
    let mut metadata = metadata.clone();
    if !named && let Some(fields) = metadata.as_object_mut() {
        fields.insert(String::from("name"), "fakename".into());
    }
    metadata::validate_create(&metadata, namespaced, NameRule::PathSegment, path)
}
