//! `x-kubernetes-map-type`, `x-kubernetes-list-type` and `x-kubernetes-list-map-keys` of one node.

use serde_json::Value;

use super::{flag, list, text, texts};
use apimachinery::error::FieldError;

/// What is wrong with the merge types of a node.
pub(super) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let map_type = schema["x-kubernetes-map-type"].as_str();
    let list_type = schema["x-kubernetes-list-type"].as_str();
    if map_type.is_some() {
        errors.extend(wrong_type(schema, "object", "x-kubernetes-map-type", path));
    }
    if let Some(other) = map_type.filter(|kind| !["atomic", "granular"].contains(kind)) {
        let field = format!("{path}.x-kubernetes-map-type");
        errors.push(FieldError::not_supported(field, other, &["atomic", "granular"]));
    }
    if list_type.is_some() && schema["type"] != "array" {
        errors.extend(wrong_type(schema, "array", "x-kubernetes-list-type", path));
    } else if list_type == Some("set") {
        errors.extend(set_items(&schema["items"], path));
    }
    if let Some(other) = list_type.filter(|kind| !["atomic", "set", "map"].contains(kind)) {
        let field = format!("{path}.x-kubernetes-list-type");
        errors.push(FieldError::not_supported(field, other, &["atomic", "set", "map"]));
    }
    if !list(&schema["x-kubernetes-list-map-keys"]).is_empty() && list_type != Some("map") {
        let field = format!("{path}.x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(field, detail),
            Some(kind) => FieldError::invalid(field, kind, detail),
        });
    }
    if list_type == Some("map") {
        errors.extend(map_items(schema, path));
    }
    if let Some(kind @ ("set" | "map")) = list_type
        && schema["items"].is_object()
    {
        errors.extend(keyed_items(schema, kind, path));
    }
    errors
}

fn wrong_type(schema: &Value, wanted: &str, because: &str, path: &str) -> Option<FieldError> {
    let detail = format!("must be {wanted} if {because} is specified");
    match text(&schema["type"]) {
        kind if kind == wanted => None,
        "" => Some(FieldError::required(format!("{path}.type"), detail)),
        kind => Some(FieldError::invalid(format!("{path}.type"), kind, detail)),
    }
}

/// The elements of a set are compared as a whole, so that they must be merged as a whole.
fn set_items(items: &Value, path: &str) -> Option<FieldError> {
    let list_type = items["x-kubernetes-list-type"].as_str();
    let key = match text(&items["type"]) {
        "array" if list_type.is_some_and(|kind| kind != "atomic") => "x-kubernetes-list-type",
        "object" if items["x-kubernetes-map-type"] != "atomic" => "x-kubernetes-map-type",
        _ => return None,
    };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    Some(FieldError::invalid(format!("{path}.items.{key}"), items["x-kubernetes-list-type"].clone(), detail))
}

fn map_items(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let keys = &schema["x-kubernetes-list-map-keys"];
    let items = &schema["items"];
    let keys_path = format!("{path}.x-kubernetes-list-map-keys");
    if list(keys).is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(keys_path.as_str(), detail));
    }
    if items.is_null() {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{path}.items"), detail));
    } else if items.is_array() {
        let detail = "must only have a single schema if x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.items"), items.clone(), detail));
    } else if items["type"] != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.items.type"), text(&items["type"]), detail));
    } else {
        let all: Vec<&str> = texts(keys).collect();
        for (index, key) in all.iter().enumerate() {
            match text(&items["properties"][*key]["type"]) {
                _ if items["properties"].get(*key).is_none() => {
                    let detail = "entries must all be names of item properties";
                    errors.push(FieldError::invalid(keys_path.as_str(), keys.clone(), detail));
                }
                "array" | "object" => {
                    let field = format!("{path}.items.properties[{key}].type");
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    errors.push(FieldError::invalid(field, text(&items["type"]), detail));
                }
                _ => {}
            }
            if all[..index].contains(key) {
                let detail = "must not contain duplicate entries";
                errors.push(FieldError::invalid(keys_path.as_str(), keys.clone(), detail));
            }
        }
    }
    errors
}

/// The keys that identify list elements must always be set: required or defaulted, and not nullable.
fn keyed_items(schema: &Value, list_type: &str, path: &str) -> Vec<FieldError> {
    let items = &schema["items"];
    let mut errors = Vec::new();
    if flag(&items["nullable"]) {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), detail));
    }
    if list_type != "map" {
        return errors;
    }
    for key in texts(&schema["x-kubernetes-list-map-keys"]) {
        let Some(property) = items["properties"].get(key) else { continue };
        let path = format!("{path}.items.properties[{key}]");
        if property["default"].is_null() && !texts(&items["required"]).any(|name| name == key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                          required property";
            errors.push(FieldError::required(format!("{path}.default"), detail));
        }
        if flag(&property["nullable"]) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{path}.nullable"), detail));
        }
    }
    errors
}
