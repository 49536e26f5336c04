//! Patches: JSON patch (RFC 6902), JSON merge patch (RFC 7386) and Kubernetes' strategic merge patch. Pure functions
//! from values to values; must not know about requests, storage or field owners.

use serde_json::{Map, Value};

use apimachinery::error::ApiError;
use apimachinery::gotext;

mod json;
mod strategic;

pub use json::json_patch;
pub use strategic::{strategic_merge, without_directives};

/// Deeper objects are refused: they could be written but never parsed again.
pub const NESTING_MAX: usize = 100;

/// The object under a JSON merge patch: objects are merged, `null` removes, everything else replaces.
pub fn merge_patch(object: &Value, patch: &Value) -> Result<Value, ApiError> {
    let Value::Object(fields) = patch else {
        return Err(undecodable("error decoding patch: ", patch, GO_MAP));
    };
    let mut merged = object.as_object().cloned().unwrap_or_default();
    merge_fields(&mut merged, fields);
    within_nesting(Value::Object(merged))
}

fn merge_fields(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match (target.get_mut(name), value) {
            (_, Value::Null) => {
                target.remove(name);
            }
            (Some(Value::Object(present)), Value::Object(wanted)) => merge_fields(present, wanted),
            _ => {
                target.insert(name.clone(), without_nulls(value));
            }
        }
    }
}

/// A copy in which no object field is null; elements of lists stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

fn within_nesting(object: Value) -> Result<Value, ApiError> {
    match depth(&object) > NESTING_MAX {
        true => Err(unprocessable()),
        false => Ok(object),
    }
}

/// Levels of nesting; a scalar has none.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

const GO_MAP: &str = "Go value of type map[string]interface {}";

/// 400: the patch is JSON and not a patch. kube-apiserver prints what its decoder said.
fn undecodable(prefix: &str, found: &Value, wanted: &str) -> ApiError {
    let kind = gotext::json_type(found);
    ApiError::bad_request(format!("{prefix}json: cannot unmarshal {kind} into {wanted}"))
}

/// 422: the patch is well formed and does not fit the object. kube-apiserver does not say why.
fn unprocessable() -> ApiError {
    let error = ApiError::unprocessable("the server rejected our request due to an error in our request");
    ApiError { details: Value::Object(Map::new()), ..error }
}

/// 500 without a reason: how kube-apiserver answers errors it has no class for.
pub fn unclassified(message: impl Into<String>) -> ApiError {
    ApiError {
        code: 500,
        reason: "",
        message: message.into(),
        details: Value::Null,
        retry_after_seconds: None,
        continuation: None,
    }
}

#[cfg(test)]
mod tests;
