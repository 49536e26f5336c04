//! Unknown and duplicate fields of an object, for `fieldValidation`. Must not change the object, except for unknown
//! metadata fields, which are always dropped.

use serde_json::Value;

use super::{DEPTH_MAX, Schema, child, default};
use apimachinery::error::ApiError;
use apimachinery::gotext::quoted;

mod duplicate;
pub use duplicate::{Fault, duplicate_fields, faults_in_order};

/// Kubernetes stops counting here.
pub(super) const REPORTED_MAX: usize = 100;

/// The paths of the fields that the schema does not know, in the order of the document.
pub fn unknown_fields(value: &Value, schema: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, schema, "", &mut found, 0);
    found
}

fn collect(value: &Value, schema: &Schema, path: &str, found: &mut Vec<String>, depth: usize) {
    if schema.preserve_unknown || depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = child(path, name);
                match default::field_schema(schema, name) {
                    Some(schema) => collect(field, schema, &path, found, depth + 1),
                    None if found.len() < REPORTED_MAX && is_closed(schema) => found.push(path),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(element) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                collect(item, element, &format!("{path}[{index}]"), found, depth + 1);
            }
        }
        _ => {}
    }
}

/// A built-in definition that says nothing about its fields takes any, such as a RawExtension.
fn is_closed(schema: &Schema) -> bool {
    !schema.properties.is_empty()
}

/// Drops the fields that the schema does not know and answers with their paths.
pub fn drop_unknown(value: &mut Value, schema: &Schema) -> Vec<String> {
    let found = unknown_fields(value, schema);
    if !found.is_empty() {
        remove(value, schema, 0);
    }
    found
}

fn remove(value: &mut Value, schema: &Schema, depth: usize) {
    if schema.preserve_unknown || depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => fields.retain(|name, field| match default::field_schema(schema, name) {
            Some(schema) => {
                remove(field, schema, depth + 1);
                true
            }
            None => !is_closed(schema),
        }),
        Value::Array(items) => {
            let Some(element) = &schema.items else { return };
            items.iter_mut().for_each(|item| remove(item, element, depth + 1));
        }
        _ => {}
    }
}

/// The lines of a strict decoding: what `fieldValidation=Warn` sends as warnings, one by one.
pub fn strict_lines(duplicates: &[String], unknown: &[String]) -> Vec<String> {
    let duplicates = duplicates.iter().map(|path| format!("duplicate field {}", quoted(path)));
    let unknown = unknown.iter().map(|path| format!("unknown field {}", quoted(path)));
    duplicates.chain(unknown).take(REPORTED_MAX).collect()
}

/// The same for a JSON text that is decoded in one pass, as for built-in kinds: errors are in document order.
pub fn strict_lines_in_order(raw: &[u8], unknown: &[String]) -> Vec<String> {
    let line = |(fault, path): (Fault, String)| match fault {
        Fault::Duplicate => format!("duplicate field {}", quoted(&path)),
        Fault::Unknown => format!("unknown field {}", quoted(&path)),
    };
    let mut faults = faults_in_order(raw, unknown);
    let missed = unknown.iter().filter(|path| !faults.iter().any(|(_, other)| other == *path));
    let missed: Vec<_> = missed.map(|path| (Fault::Unknown, path.clone())).collect();
    faults.extend(missed);
    faults.into_iter().take(REPORTED_MAX).map(line).collect()
}

/// 400: what `fieldValidation=Strict` makes of those lines.
pub fn strict_error(kind: &str, version: &str, lines: &[String]) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
        lines.join(", ")
    ))
}
