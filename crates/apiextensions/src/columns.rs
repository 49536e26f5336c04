//! JSONPaths of a version: printer columns, the scale subresource, selectable fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{list, text};
use apimachinery::error::FieldError;

const SELECTABLE_MAX: usize = 8;

/// `additionalPrinterColumns`.
pub(super) fn columns(columns: &Value, path: &str) -> Vec<FieldError> {
    let all = list(columns).iter().enumerate();
    all.flat_map(|(index, column)| one_column(column, &format!("{path}[{index}]"))).collect()
}

fn one_column(column: &Value, path: &str) -> Vec<FieldError> {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let mut errors = Vec::new();
    if text(&column["name"]).is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let one_of_types = format!("must be one of {}", TYPES.join(","));
    match text(&column["type"]) {
        "" => errors.push(FieldError::required(format!("{path}.type"), one_of_types)),
        kind if TYPES.contains(&kind) => {}
        kind => errors.push(FieldError::invalid(format!("{path}.type"), kind, one_of_types)),
    }
    let format = text(&column["format"]);
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(format!("{path}.format"), format, detail));
    }
    // The field is `jsonPath`; kube-apiserver prints the name it had in the first version of this API.
    let path = format!("{path}.JSONPath");
    match text(&column["jsonPath"]) {
        "" => errors.push(FieldError::required(path, "")),
        route => errors.extend(simple_path(route, &path)),
    }
    errors
}

fn simple_path(route: &str, path: &str) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!route.starts_with('.')).then(|| FieldError::invalid(path, route, detail))
}

/// `subresources`.
pub(super) fn subresources(subresources: &Value, path: &str) -> Vec<FieldError> {
    let scale = &subresources["scale"];
    if !scale.is_object() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (key, under) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let field = format!("{path}.scale.{key}");
        match text(&scale[key]) {
            "" => errors.push(FieldError::required(field, "")),
            route => errors.extend(simple_path(route, &field).or_else(|| {
                let wrong = !route.starts_with(&format!("{under}."));
                wrong.then(|| {
                    FieldError::invalid(field, route, format!("should be a json path under {under}"))
                })
            })),
        }
    }
    let route = text(&scale["labelSelectorPath"]);
    if !route.is_empty() {
        let field = format!("{path}.scale.labelSelectorPath");
        errors.extend(simple_path(route, &field).or_else(|| {
            let wrong = !(route.starts_with(".spec.") || route.starts_with(".status."));
            let detail = "should be a json path under either .spec or .status";
            wrong.then(|| FieldError::invalid(field, route, detail))
        }));
    }
    errors
}

/// `selectableFields`: each points at a string, boolean or integer of the schema.
pub(super) fn selectable(fields: &Value, schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, field) in list(fields).iter().enumerate() {
        let at = format!("{path}[{index}].jsonPath");
        let route = text(&field["jsonPath"]);
        if route.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let target = match find(route, schema) {
            Ok(target) => target,
            Err(fault) => {
                errors.push(FieldError::invalid(at, route, format!("is an invalid path: {fault}")));
                continue;
            }
        };
        if route.split('.').nth(1) == Some("metadata") {
            errors.push(FieldError::invalid(at.as_str(), route, "must not point to fields in metadata"));
        }
        if !["string", "boolean", "integer"].contains(&text(&target["type"])) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and \
                          strings with formats are allowed.";
            errors.push(FieldError::invalid(at.as_str(), route, detail));
        }
        if !seen.insert(route) {
            errors.push(FieldError::duplicate(at, route));
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_MAX));
    }
    errors
}

/// The schema at the end of a path such as `.spec.color`.
fn find<'a>(route: &str, schema: &'a Value) -> Result<&'a Value, String> {
    if route.contains('[') {
        return Err(String::from("array notation is not allowed"));
    }
    let Some(rest) = route.strip_prefix('.') else {
        let first = route.split('.').next().unwrap_or_default();
        return Err(format!("expected [ or . but got: {first}"));
    };
    if rest.is_empty() || rest.ends_with('.') {
        return Err(String::from("unexpected end of JSON path"));
    }
    rest.split('.').try_fold(schema, |node, name| {
        let property = node["properties"].get(name);
        let values = Some(&node["additionalProperties"]).filter(|values| values.is_object());
        let found = if node["properties"].is_object() { property } else { values };
        found.ok_or_else(|| String::from("does not refer to a valid field"))
    })
}
