//! Ratcheting and prefixes; the rules themselves are checked against recorded answers with the custom kinds.

use serde_json::{Value, json};

use super::*;

/// Everything that is wrong with a value: its schema, the resources embedded in it, its list types.
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

#[track_caller]
fn check(schema: Value, value: Value, old: Option<Value>, path: &str, expected: &[&str]) {
    let schema = Schema::from_openapi(&schema);
    let errors = match old {
        Some(old) => validate_update(&value, &old, &schema, path),
        None => validate(&value, &schema, path),
    };
    assert_eq!(errors.iter().map(FieldError::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn a_prefix_goes_before_fields_but_not_into_sentences() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["m"] });
    check(
        schema,
        json!({ "n": "x" }),
        None,
        "status",
        &[
            "status.n: Invalid value: \"string\": n in body must be of type integer: \"string\"",
            "status.m: Required value",
        ],
    );
    check(
        json!({ "not": {} }),
        json!(1),
        None,
        "status",
        &["status: Invalid value: \"\": \"\" must not validate the schema (not)"],
    );
    check(
        json!({ "type": "object" }),
        json!(1),
        None,
        "",
        &["<nil>: Invalid value: \"integer\":  in body must be of type object: \"integer\""],
    );
}

#[test]
fn only_changed_values_are_held_to_new_rules() {
    let schema = || {
        json!({ "type": "object", "properties": {
        "a": { "type": "string", "maxLength": 1 },
        "b": { "type": "string" },
        "map": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": { "type": "object", "properties": { "k": { "type": "string" }, "v": { "type": "integer", "maximum": 1 } } } },
        "list": { "type": "array", "items": { "type": "integer", "maximum": 1 } },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
    } })
    };
    let old = json!({ "a": "long", "map": [{ "k": "x", "v": 5 }], "list": [5], "set": ["s", "s"] });
    let change = |key: &str, value: Value| {
        let mut new = old.clone();
        new[key] = value;
        new
    };
    check(schema(), change("b", json!("new")), Some(old.clone()), "", &[]);
    check(
        schema(),
        change("a", json!("other")),
        Some(old.clone()),
        "",
        &["a: Too long: may not be more than 1 byte"],
    );
    check(
        schema(),
        change("map", json!([{ "k": "y", "v": 1 }, { "k": "x", "v": 5 }])),
        Some(old.clone()),
        "",
        &[],
    );
    check(
        schema(),
        change("list", json!([5, 1])),
        Some(old.clone()),
        "",
        &["list[0]: Invalid value: 5: list[0] in body should be less than or equal to 1"],
    );
    check(schema(), change("set", json!(["t", "t"])), Some(old.clone()), "", &[]);
    check(schema(), json!({ "set": ["t", "t"] }), Some(json!({})), "", &["set[1]: Duplicate value: \"t\""]);
}
