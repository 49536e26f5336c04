//! Does a value fit its structural schema? Answers with the field errors, in the order and the words that
//! kube-apiserver gives for custom resources. Must not know where the schema came from.

use serde_json::Value;

use crate::error::FieldError;
use crate::schema::Schema;

mod embedded;
mod formats;
mod lists;
mod outcome;
mod pattern;
mod scalar;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use formats::is_known as is_known_format;
pub(crate) use pattern::fault as pattern_fault;

/// Values and schemas nest no deeper than this; the JSON reader stops earlier.
pub(crate) const DEPTH_MAX: usize = 150;

/// Everything that is wrong with a value: its schema, the resources embedded in it, its list types.
/// `path` goes before every field and is empty at the root of an object.
pub fn validate(value: &Value, schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut errors = validate_schema(value, None, schema, path);
    errors.extend(validate_embedded(value, schema, path));
    errors.extend(validate_lists(value, schema, path));
    errors
}

/// Everything that is wrong with a new value of an object that was stored before. What was wrong already
/// and did not change is let through.
pub fn validate_update(value: &Value, old: &Value, schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut errors = validate_schema(value, Some(old), schema, path);
    errors.extend(validate_embedded(value, schema, path));
    if validate_lists(old, schema, path).is_empty() {
        errors.extend(validate_lists(value, schema, path));
    }
    errors
}

/// Only the OpenAPI rules: types, enums, bounds, patterns, formats and their combinations.
pub fn validate_schema(value: &Value, old: Option<&Value>, schema: &Schema, path: &str) -> Vec<FieldError> {
    let outcome = walk::check(value, old, schema, "", 0);
    outcome.failures.into_iter().map(|failure| failure.at(path)).collect()
}

/// Only `x-kubernetes-embedded-resource`: apiVersion, kind and metadata of resources inside the value.
pub fn validate_embedded(value: &Value, schema: &Schema, path: &str) -> Vec<FieldError> {
    embedded::check(value, schema, path, 0)
}

/// Only `x-kubernetes-list-type`: the elements of sets and maps differ.
pub fn validate_lists(value: &Value, schema: &Schema, path: &str) -> Vec<FieldError> {
    lists::check(value, schema, path, 0)
}

/// The path of a field of the object at `path`.
pub(crate) fn child(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}
