//! Validates a value against its structural schema. Returns field errors in the order and the words of kube-apiserver
//! for custom resources. Must not know where the schema came from.

use serde_json::Value;

use crate::structural::Schema;
pub use crate::structural::{DEPTH_MAX, child};
use apimachinery::error::FieldError;

mod embedded;
mod formats;
mod lists;
mod outcome;
mod pattern;
mod scalar;
#[cfg(test)]
pub mod tests;
mod walk;

pub use formats::holds as format_holds;
pub use formats::is_known as is_known_format;
pub use pattern::{compiled as compiled_pattern, fault as pattern_fault};

/// Only the OpenAPI rules: types, enums, bounds, patterns, formats and their combinations. `path` goes
/// before every field and is empty at the root of an object.
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
