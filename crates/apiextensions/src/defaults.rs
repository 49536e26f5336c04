//! Validates the defaults of a schema against the schema itself.

use serde_json::Value;

use super::fields;
use apimachinery::error::FieldError;
use schema::validate::{validate_embedded, validate_schema};
use schema::{Schema, prune};

/// What is wrong with the defaults of a structural schema; `source` and `schema` are the same node.
pub(super) fn check(source: &Value, schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut errors = schema.default.as_ref().map(|default| one(default, schema, path)).unwrap_or_default();
    // Defaults below additionalProperties apply to values that exist, and are not followed.
    if let Some(items) = &schema.items {
        errors.extend(check(&source["items"], items, &format!("{path}.items")));
    }
    for (name, child) in fields(&source["properties"]) {
        if let Some(property) = schema.properties.get(name.as_str()) {
            errors.extend(check(child, property, &format!("{path}.properties[{name}]")));
        }
    }
    errors
}

fn one(default: &Value, schema: &Schema, path: &str) -> Vec<FieldError> {
    let path = format!("{path}.default");
    let mut errors = Vec::new();
    let mut pruned = default.clone();
    prune(&mut pruned, schema, schema.embedded_resource);
    if pruned != *default {
        let detail = "must not have unknown fields";
        errors.push(FieldError::invalid(path.as_str(), default.clone(), detail));
    }
    let embedded = validate_embedded(default, schema, &path);
    errors.extend(match embedded.is_empty() {
        true => validate_schema(default, None, schema, &path),
        false => embedded,
    });
    errors
}
