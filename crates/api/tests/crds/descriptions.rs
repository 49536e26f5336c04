//! What `kubectl explain` says: every field of every kind, at every depth, with its values and its default.

use serde_json::Value;

use super::schemas;

/// What clients may write into the annotations of one object; `kubectl apply` writes the whole object there.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Every field of every version of every kind, by its path; the kind itself is the first.
fn fields() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (kind, version, schema) in schemas(&api::crd::crds()) {
        walk(&format!("{kind} {version} "), schema, &mut found);
    }
    found
}

fn walk(path: &str, field: Value, found: &mut Vec<(String, Value)>) {
    let (inner, inside) = held(&field, path.to_owned());
    let children = inner["properties"].as_object().cloned().unwrap_or_default();
    found.push((path.to_owned(), field));
    for (name, child) in children {
        walk(&format!("{inside}.{name}"), child, found);
    }
}

/// What a list or a map holds, and its path: it is not a field, but its fields are.
fn held(field: &Value, path: String) -> (&Value, String) {
    match (field.get("items"), field.get("additionalProperties")) {
        (Some(item), _) => held(item, format!("{path}[]")),
        (_, Some(value)) => held(value, format!("{path}{{}}")),
        _ => (field, path),
    }
}

fn description(field: &Value) -> &str {
    field["description"].as_str().unwrap_or_default()
}

/// API servers refuse a definition that describes metadata, and describe it themselves.
fn is_metadata(path: &str) -> bool {
    path.ends_with(" .metadata")
}

#[test]
fn every_field_is_described() {
    let fields = fields();
    assert!(fields.len() > 900, "{} fields", fields.len());
    let silent: Vec<&str> = fields
        .iter()
        .filter(|(path, field)| !is_metadata(path) && description(field).is_empty())
        .map(|(path, _)| path.as_str())
        .collect();
    assert!(silent.is_empty(), "without a description:\n{}", silent.join("\n"));
}

#[test]
fn a_description_names_every_value_and_the_default() {
    let mut wrong = Vec::new();
    for (path, field) in fields() {
        let about = description(&field);
        for value in field["enum"].as_array().into_iter().flatten() {
            let word = format!("`{}`", value.as_str().expect("enums are words"));
            if !about.contains(&word) {
                wrong.push(format!("{path} does not name the value {word}: {about}"));
            }
        }
        let default = field.get("default").map(|default| default.to_string().replace('"', ""));
        if let Some(default) = default.filter(|default| !about.contains(default.as_str())) {
            wrong.push(format!("{path} does not name the default {default}: {about}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn descriptions_are_plain_sentences() {
    let vague = ["somebody", "nobody", "whoever", "anybody"];
    let mut wrong = Vec::new();
    for (path, field) in fields().iter().filter(|(path, _)| !is_metadata(path)) {
        let about = description(field);
        let begins =
            about.starts_with(|first: char| first.is_uppercase() || first == '`' || first.is_numeric());
        let quotes = about.matches('`').count().is_multiple_of(2);
        let said = about.to_lowercase();
        if !begins || !about.ends_with('.') || !quotes || about.contains("  ") || about.contains('\n') {
            wrong.push(format!("{path}: {about:?}"));
        }
        if vague.iter().any(|word| said.contains(word)) {
            wrong.push(format!("{path} names no actor: {about:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_definition_with_its_descriptions_can_be_applied_by_kubectl() {
    for definition in api::crd::crds() {
        let size = definition.to_string().len();
        let name = &definition["metadata"]["name"];
        assert!(size < ANNOTATIONS_MAX, "{name} has {size} bytes, which do not fit into an annotation");
    }
}
