//! Checks that a schema is structural: every value has one place that says its type, and `allOf` and its kin only
//! narrow it. The caller bounds the depth.

use serde_json::{Value, json};

use super::{fields, flag, is_set, list, text};
use apimachinery::error::FieldError;
use schema::validate::pattern_fault;

/// The first thing that cannot be read as a structural schema at all.
pub(super) fn unsupported(schema: &Value) -> Option<String> {
    for (key, name) in [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ] {
        let empty = schema[key].as_object().is_some_and(|map| map.is_empty());
        if is_set(&schema[key]) && !empty {
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let fault = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Some(String::from(fault));
    }
    if !list(&schema["items"]).is_empty() {
        return Some(String::from("OpenAPIV3Schema 'items' must be a schema, but is an array"));
    }
    let single = ["not", "items", "additionalProperties"].into_iter().map(|key| &schema[key]);
    let several = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(&schema[key]));
    let properties = fields(&schema["properties"]).map(|(_, child)| child);
    single.chain(several).chain(properties).filter(|child| child.is_object()).find_map(unsupported)
}

/// Everything that keeps a schema from being structural, sorted by its text.
pub(super) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = invariants(schema, Level::Root, path);
    errors.extend(incomplete(schema, schema, path, path));
    errors.sort_by_cached_key(FieldError::to_string);
    errors
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

fn invariants(schema: &Value, level: Level, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if schema["type"] == "array" && schema["items"].is_null() {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    if schema["items"].is_object() {
        errors.extend(invariants(&schema["items"], Level::Item, &format!("{path}.items")));
    }
    for (name, child) in fields(&schema["properties"]) {
        errors.extend(invariants(child, Level::Field, &format!("{path}.properties[{name}]")));
    }
    let values = &schema["additionalProperties"];
    if !values.is_null() && level == Level::Root {
        let field = format!("{path}.additionalProperties");
        errors.push(FieldError::forbidden(field, "must not be used at the root"));
    }
    if values.is_object() {
        errors.extend(invariants(values, Level::Field, &format!("{path}.additionalProperties")));
    }
    if flag(&schema["x-kubernetes-int-or-string"]) {
        for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(&schema[key]) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(format!("{path}.{key}"), true, detail));
            }
        }
    }
    errors.extend(narrowing(schema, Exempt::of(schema), path));
    errors.extend(own_type(schema, level, path));
    errors.extend(metadata(schema, level, path));
    errors
}

fn own_type(schema: &Value, level: Level, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(&schema["type"]);
    let embedded = flag(&schema["x-kubernetes-embedded-resource"]);
    let preserve = flag(&schema["x-kubernetes-preserve-unknown-fields"]);
    let field = format!("{path}.type");
    match kind {
        "object" => {}
        "" if embedded => {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            errors.push(FieldError::required(field.as_str(), detail));
        }
        kind if embedded => {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            errors.push(FieldError::invalid(field.as_str(), kind, detail));
        }
        "" if !(preserve || flag(&schema["x-kubernetes-int-or-string"])) => {
            errors.push(FieldError::required(
                field.as_str(),
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            ));
        }
        _ => {}
    }
    if embedded && !schema["additionalProperties"].is_null() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), detail));
    }
    if level == Level::Root && !["", "object"].contains(&kind) {
        errors.push(FieldError::invalid(field, kind, "must be object at the root"));
    }
    if embedded && !preserve && fields(&schema["properties"]).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), detail));
    }
    errors
}

/// `apiVersion`, `kind` and `metadata` of a resource are what they always are.
fn metadata(schema: &Value, level: Level, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let properties = &schema["properties"];
    let is_resource = level == Level::Root || flag(&schema["x-kubernetes-embedded-resource"]);
    for name in ["kind", "apiVersion"] {
        let found = properties.get(name).map(|property| text(&property["type"]));
        if let Some(kind) = found.filter(|kind| is_resource && *kind != "string") {
            let field = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(field, kind, "must be string"));
        }
    }
    let Some(meta) = properties.get("metadata") else { return errors };
    let field = format!("{path}.properties[metadata]");
    if is_resource && meta["type"] != "object" {
        errors.push(FieldError::invalid(format!("{field}.type"), text(&meta["type"]), "must be object"));
    }
    if level == Level::Root && says_too_much(meta) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                      specified";
        errors.push(FieldError::forbidden(field, detail));
    }
    errors
}

fn says_too_much(metadata: &Value) -> bool {
    let only_names =
        fields(&metadata["properties"]).all(|(name, _)| name == "name" || name == "generateName");
    let others =
        fields(metadata).filter(|(key, _)| !["type", "default", "properties"].contains(&key.as_str()));
    !only_names || others.filter(|(key, _)| key.as_str() != "externalDocs").any(|(_, value)| is_set(value))
}

/// The places where `x-kubernetes-int-or-string` may name its two types.
#[derive(Clone, Copy, PartialEq)]
enum Exempt {
    Nothing,
    AnyOf,
    AnyOfInFirstAllOf,
}

impl Exempt {
    fn of(schema: &Value) -> Self {
        let pair = json!([{ "type": "integer" }, { "type": "string" }]);
        match schema {
            _ if schema["anyOf"] == pair => Self::AnyOf,
            _ if schema["allOf"][0]["anyOf"] == pair => Self::AnyOfInFirstAllOf,
            _ => Self::Nothing,
        }
    }
}

fn narrowing(schema: &Value, exempt: Exempt, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["anyOf", "allOf", "oneOf"] {
        if key == "anyOf" && exempt == Exempt::AnyOf {
            continue;
        }
        for (index, child) in list(&schema[key]).iter().enumerate() {
            let inner = match key == "allOf" && index == 0 && exempt == Exempt::AnyOfInFirstAllOf {
                true => Exempt::AnyOf,
                false => Exempt::Nothing,
            };
            errors.extend(nested(child, inner, &format!("{path}.{key}[{index}]")));
        }
    }
    if schema["not"].is_object() {
        errors.extend(nested(&schema["not"], Exempt::Nothing, &format!("{path}.not")));
    }
    let source = text(&schema["pattern"]);
    if let Some(fault) = Some(source).filter(|source| !source.is_empty()).and_then(pattern_fault) {
        let detail = format!("must be a valid regular expression, but isn't: {fault}");
        errors.push(FieldError::invalid(format!("{path}.pattern"), source, detail));
    }
    errors
}

/// A schema under `allOf` and its kin: it may narrow values, not describe them.
fn nested(schema: &Value, exempt: Exempt, path: &str) -> Vec<FieldError> {
    const FORBIDDEN: [(&str, &str); 13] = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    let mut errors = narrowing(schema, exempt, path);
    if schema["items"].is_object() {
        errors.extend(nested(&schema["items"], Exempt::Nothing, &format!("{path}.items")));
    }
    for (name, child) in fields(&schema["properties"]) {
        errors.extend(nested(child, Exempt::Nothing, &format!("{path}.properties[{name}]")));
    }
    let said = FORBIDDEN.iter().filter(|(key, _)| match *key {
        "default" => !schema["default"].is_null(),
        key => is_set(&schema[key]),
    });
    errors.extend(said.map(|(key, detail)| FieldError::forbidden(format!("{path}.{key}"), *detail)));
    if schema["properties"].get("metadata").is_some() {
        let field = format!("{path}.properties[metadata]");
        errors.push(FieldError::forbidden(field, "must not be specified in a nested context"));
    }
    errors
}

/// What is narrowed under the root must be described outside.
fn incomplete(narrow: &Value, schema: &Value, path: &str, narrow_path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut below = |child: &Value, at: String| errors.extend(undescribed(child, Some(schema), path, &at));
    if narrow["not"].is_object() {
        below(&narrow["not"], format!("{narrow_path}.not"));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, child) in list(&narrow[key]).iter().enumerate() {
            below(child, format!("{narrow_path}.{key}[{index}]"));
        }
    }
    errors
}

fn undescribed(narrow: &Value, schema: Option<&Value>, path: &str, narrow_path: &str) -> Vec<FieldError> {
    let Some(schema) = schema else {
        return vec![FieldError::required(path, format!("because it is defined in {narrow_path}"))];
    };
    let mut errors = incomplete(narrow, schema, path, narrow_path);
    if narrow["items"].is_object() {
        let items = Some(&schema["items"]).filter(|items| items.is_object());
        let path = format!("{path}.items");
        errors.extend(undescribed(&narrow["items"], items, &path, &format!("{narrow_path}.items")));
    }
    for (name, child) in fields(&narrow["properties"]) {
        let path = format!("{path}.properties[{name}]");
        let narrow_path = format!("{narrow_path}.properties[{name}]");
        errors.extend(undescribed(child, schema["properties"].get(name), &path, &narrow_path));
    }
    errors
}
