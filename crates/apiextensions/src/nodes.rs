//! Validates the OpenAPI schema of a definition node by node. Whether the whole is structural is checked in
//! `structural`.

use serde_json::Value;

use super::{defaults, fields, flag, is_set, list, structural, text, texts};
use apimachinery::error::FieldError;
use schema::Schema;

mod lists;
mod rules;

const DEPTH_MAX: usize = 100;
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const META_FIELDS: [&str; 3] = ["metadata", "kind", "apiVersion"];

/// Everything that is wrong with the schema of a version; `path` is that of its wrapper.
pub(super) fn check(schema: &Value, has_status: bool, path: &str) -> Vec<FieldError> {
    if !schema.is_object() {
        return Vec::new();
    }
    let path = format!("{path}.openAPIV3Schema");
    if depth(schema) > DEPTH_MAX {
        return vec![FieldError::invalid(path, "", "nested too deeply")];
    }
    let mut errors = if has_status { root_fields(schema, &path) } else { Vec::new() };
    if flag(&schema["nullable"]) {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = structural::unsupported(schema);
    if unsupported.is_none() {
        let faults = structural::check(schema, &path);
        errors.extend(match faults.is_empty() {
            // The root is a resource, as embedded ones are.
            true => {
                let root = Schema { embedded_resource: true, ..Schema::from_openapi(schema) };
                defaults::check(schema, &root, &path)
            }
            false => faults,
        });
    }
    errors.extend(node(schema, &path, &Context::default(), true));
    // CEL rules are checked only in a schema without other errors; with them, the errors of rules would be noise.
    if errors.is_empty() && unsupported.is_none() {
        errors.extend(super::rules::check(schema, &path));
    }
    // What cannot be read as a structural schema at all mostly has a better error by now.
    if errors.is_empty() {
        errors.extend(unsupported.map(|fault| FieldError::invalid(path, "", fault)));
    }
    errors
}

fn depth(value: &Value) -> usize {
    // Explicit, so that no depth can exhaust the stack.
    let mut deepest = 0;
    let mut waiting = vec![(value, 1)];
    while let Some((value, level)) = waiting.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Object(fields) => waiting.extend(fields.values().map(|field| (field, level + 1))),
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, level + 1))),
            _ => {}
        }
    }
    deepest
}

/// With a status subresource the schema of status is cut out of the root, so that the root may not tie the
/// two together.
fn root_fields(schema: &Value, path: &str) -> Vec<FieldError> {
    const FORBIDDEN: [&str; 16] = [
        "nullable",
        "default",
        "enum",
        "maxProperties",
        "minProperties",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "additionalProperties",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "patternProperties",
    ];
    let kind = text(&schema["type"]);
    if !["", "object"].contains(&kind) {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status \
                      subresource is enabled";
        return vec![FieldError::invalid(format!("{path}.type"), kind, detail)];
    }
    if !FORBIDDEN.iter().any(|key| is_set(&schema[*key])) {
        return Vec::new();
    }
    let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum \
                  MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items \
                  Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at \
                  the root of the schema if the status subresource is enabled";
    vec![FieldError::invalid(path, schema.clone(), detail)]
}

/// What the nodes above a node forbid it.
#[derive(Default, Clone)]
struct Context {
    no_defaults: Option<String>,
    inside_metadata: bool,
}

fn node(schema: &Value, path: &str, context: &Context, is_root: bool) -> Vec<FieldError> {
    if !schema.is_object() {
        return Vec::new();
    }
    let mut errors = words(schema, path, context);
    if flag(&schema["uniqueItems"]) {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), detail));
    }
    errors.extend(object_children(schema, path, context, is_root));
    errors.extend(node(&schema["not"], &format!("{path}.not"), context, false));
    for key in ["allOf", "oneOf", "anyOf"] {
        for (index, child) in list(&schema[key]).iter().enumerate() {
            errors.extend(node(child, &format!("{path}.{key}[{index}]"), context, false));
        }
    }
    errors.extend(node(&schema["items"], &format!("{path}.items"), context, false));
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let field = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(field, false, "must be true or undefined"));
    }
    errors.extend(lists::check(schema, path));
    errors.extend(rules::check(schema, path));
    errors
}

fn object_children(schema: &Value, path: &str, context: &Context, is_root: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let values = &schema["additionalProperties"];
    if !values.is_null() {
        let has_properties = fields(&schema["properties"]).next().is_some();
        if has_properties && *values != true {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), detail));
        }
        let mut context = context.clone();
        if context.inside_metadata {
            let reason = "inside additionalProperties applying to object metadata";
            context.no_defaults = Some(String::from(reason));
        }
        errors.extend(node(values, &format!("{path}.additionalProperties"), &context, false));
    }
    let is_resource = is_root || flag(&schema["x-kubernetes-embedded-resource"]);
    for (name, child) in fields(&schema["properties"]) {
        let mut context = context.clone();
        if is_resource && META_FIELDS.contains(&name.as_str()) {
            context.inside_metadata = true;
            if is_root {
                context.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        errors.extend(node(child, &format!("{path}.properties[{name}]"), &context, false));
    }
    errors
}

/// The words of OpenAPI that definitions may not use, or not here.
fn words(schema: &Value, path: &str, context: &Context) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(&schema["type"]);
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(format!("{path}.type"), kind, &TYPES));
    }
    if let Some(reason) = context.no_defaults.as_ref().filter(|_| !schema["default"].is_null()) {
        errors.push(FieldError::forbidden(format!("{path}.default"), format!("must not be set {reason}")));
    }
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let empty = schema[key].as_object().is_some_and(|map| map.is_empty()) && key != "dependencies";
        if is_set(&schema[key]) && !empty {
            errors.push(FieldError::forbidden(format!("{path}.{key}"), format!("{key} is not supported")));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(format!("{path}.type"), detail));
    }
    if !list(&schema["items"]).is_empty() {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{path}.items"), detail));
    }
    if context.inside_metadata && flag(&schema["x-kubernetes-embedded-resource"]) {
        let field = format!("{path}.x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(field, "must not be used inside of resource meta"));
    }
    errors
}
