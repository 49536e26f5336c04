//! The walk through value and schema side by side, in the order Kubernetes checks them: type, combinations,
//! strings, numbers, lists, enums, objects.

use serde_json::{Map, Value};

use super::outcome::{Failure, Outcome};
use super::{formats, scalar};
use crate::structural::{DEPTH_MAX, ListType, Rules, Schema, Type};
use apimachinery::error::FieldErrorKind;
use apimachinery::gotext::quoted;

/// Checks one value. `old` is the stored value where it is known; failures of unchanged values pass.
pub(super) fn check(
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    path: &str,
    depth: usize,
) -> Outcome {
    let mut outcome = check_value(value, old, schema, path, depth);
    if !outcome.is_valid() && old == Some(value) {
        outcome.failures.clear();
    }
    outcome
}

fn check_value(value: &Value, old: Option<&Value>, schema: &Schema, path: &str, depth: usize) -> Outcome {
    let mut outcome = Outcome::default();
    if depth > DEPTH_MAX {
        outcome.fail(Failure::new(FieldErrorKind::Invalid, path, "", String::from("nested too deeply")));
        return outcome;
    }
    let format = schema.format.as_deref().filter(|name| formats::is_known(name));
    if value.is_null() {
        outcome.merge(check_type(value, schema, format, path));
        outcome.merge(scalar::enumeration(value, schema.rules.as_deref(), path));
        return outcome;
    }
    let mut step = |part: Outcome| {
        outcome.merge(part);
        outcome.matches += 1;
    };
    if !type_names(schema).is_empty() || format.is_some() {
        step(check_type(value, schema, format, path));
    }
    step(combinations(value, old, schema.rules.as_deref(), path, depth));
    match value {
        Value::String(text) => {
            step(scalar::string(text, schema.rules.as_deref(), path));
            if let Some(format) = format {
                step(scalar::format(text, format, path));
            }
        }
        Value::Number(_) => step(scalar::number(value, schema.rules.as_deref(), path)),
        Value::Array(items) => step(list(items, old, schema, path, depth)),
        _ => {}
    }
    step(scalar::enumeration(value, schema.rules.as_deref(), path));
    if let Value::Object(fields) = value {
        step(object(fields, old, schema, path, depth));
    }
    outcome.matches += 1;
    outcome
}

/// The types a schema allows, as Kubernetes names them.
fn type_names(schema: &Schema) -> &'static [&'static str] {
    match schema.kind {
        _ if schema.int_or_string => &["integer", "string"],
        Type::Any => &[],
        Type::Object => &["object"],
        Type::Array => &["array"],
        Type::String => &["string"],
        Type::Integer => &["integer"],
        Type::Number => &["number"],
        Type::Boolean => &["boolean"],
    }
}

/// The type of a value and the format Go would give it.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(_) if value.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn check_type(value: &Value, schema: &Schema, format: Option<&str>, path: &str) -> Outcome {
    let allowed = type_names(schema);
    let (found, found_format) = type_of(value);
    let fits = allowed.contains(&found)
        || (found == "number" && allowed.contains(&"integer") && scalar::is_whole(value))
        || (found == "integer" && allowed.contains(&"number"));
    let wrong = |wanted: &str, found: &str| {
        let sentence = format!("{path} in body must be of type {wanted}: {}", quoted(found));
        let mut outcome = Outcome::default();
        outcome.fail(Failure::new(FieldErrorKind::TypeInvalid, path, found, sentence));
        outcome
    };
    let passed = Outcome { matches: 1, ..Outcome::default() };
    if value.is_null() {
        return match allowed.is_empty() || schema.nullable {
            true => passed,
            false => wrong(&allowed.join(","), found),
        };
    }
    let numeric = allowed.contains(&"number") || allowed.contains(&"integer");
    match format {
        // A format is more specific than a type: for a value that is neither string nor list the error names the
        // format; strings and lists are left to the format check itself.
        Some(format) if !(value.is_string() || value.is_array() || fits) => wrong(format, found_format),
        Some(_) if !numeric && (value.is_string() || value.is_array()) => passed,
        _ if fits => passed,
        _ => wrong(&allowed.join(","), found),
    }
}

fn combinations(
    value: &Value,
    old: Option<&Value>,
    rules: Option<&Rules>,
    path: &str,
    depth: usize,
) -> Outcome {
    let mut outcome = Outcome { matches: 1, ..Outcome::default() };
    let Some(rules) = rules else { return outcome };
    let each = |schemas: &[Schema]| -> Vec<Outcome> {
        schemas.iter().map(|schema| check_value(value, old, schema, path, depth + 1)).collect()
    };
    if !rules.any_of.is_empty() {
        any_of(&mut outcome, each(&rules.any_of), path);
    }
    if !rules.one_of.is_empty() {
        one_of(&mut outcome, each(&rules.one_of), path);
    }
    if !rules.all_of.is_empty() {
        all_of(&mut outcome, each(&rules.all_of), path);
    }
    if let Some(schema) = &rules.not
        && check_value(value, old, schema, path, depth + 1).is_valid()
    {
        outcome.fail(Failure::nowhere(format!("{} must not validate the schema (not)", quoted(path))));
    }
    outcome
}

fn any_of(outcome: &mut Outcome, results: Vec<Outcome>, path: &str) {
    if results.iter().all(|result| !result.is_valid()) {
        let sentence = format!("{} must validate at least one schema (anyOf)", quoted(path));
        outcome.fail(Failure::nowhere(sentence));
        return best(results).into_iter().for_each(|result| outcome.merge(result));
    }
    let first = results.into_iter().find(Outcome::is_valid);
    first.into_iter().for_each(|result| outcome.merge(result));
}

fn one_of(outcome: &mut Outcome, results: Vec<Outcome>, path: &str) {
    let valid = results.iter().filter(|result| result.is_valid()).count();
    let note = match valid {
        0 => String::from("Found none valid"),
        1 => {
            let first = results.into_iter().find(Outcome::is_valid);
            return first.into_iter().for_each(|result| outcome.merge(result));
        }
        many => format!("Found {many} valid alternatives"),
    };
    let sentence = format!("{} must validate one and only one schema (oneOf). {note}", quoted(path));
    outcome.fail(Failure::nowhere(sentence));
    if valid == 0 {
        best(results).into_iter().for_each(|result| outcome.merge(result));
    }
}

fn all_of(outcome: &mut Outcome, results: Vec<Outcome>, path: &str) {
    let wanted = results.len();
    let valid = results.iter().filter(|result| result.is_valid()).count();
    results.into_iter().for_each(|result| outcome.merge(result));
    if valid < wanted {
        let note = if valid == 0 { ". None validated" } else { "" };
        let sentence = format!("{} must validate all the schemas (allOf){note}", quoted(path));
        outcome.fail(Failure::nowhere(sentence));
    }
}

/// The alternative that matched most; the first of equals.
fn best(results: Vec<Outcome>) -> Option<Outcome> {
    results.into_iter().reduce(|best, next| if next.matches > best.matches { next } else { best })
}

fn list(items: &[Value], old: Option<&Value>, schema: &Schema, path: &str, depth: usize) -> Outcome {
    let mut outcome = Outcome { matches: 1, ..Outcome::default() };
    if let Some(element) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let old = old.and_then(|old| old_item(old, item, &schema.list));
            outcome.merge(check(item, old, element, &format!("{path}[{index}]"), depth + 1));
        }
    }
    if let Some(rules) = &schema.rules {
        scalar::list_bounds(items, rules, path).into_iter().for_each(|failure| outcome.fail(failure));
    }
    outcome
}

/// The stored element that a new one stands for: only map lists tell.
fn old_item<'a>(old: &'a Value, item: &Value, list: &ListType) -> Option<&'a Value> {
    let ListType::Map(keys) = list else { return None };
    old.as_array()?.iter().find(|known| keys.iter().all(|key| known.get(&**key) == item.get(&**key)))
}

fn object(
    fields: &Map<String, Value>,
    old: Option<&Value>,
    schema: &Schema,
    path: &str,
    depth: usize,
) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(rules) = &schema.rules {
        scalar::object_bounds(fields, rules, path).into_iter().for_each(|failure| outcome.fail(failure));
    }
    // An atomic map is one value; kind and apiVersion are converted before they are compared.
    let converted = |name: &str| path.is_empty() && (name == "kind" || name == "apiVersion");
    let old_field = |name: &str| match schema.atomic_map || converted(name) {
        true => None,
        false => old.and_then(|old| old.get(name)),
    };
    if let Some(values) = &schema.values {
        for (name, field) in fields.iter().filter(|(name, _)| !schema.properties.contains_key(name.as_str()))
        {
            outcome.merge(check(field, old_field(name), values, &format!("{path}.{name}"), depth + 1));
        }
    }
    for (name, property) in &schema.properties {
        if let Some(field) = fields.get(&**name) {
            outcome.merge(check(field, old_field(name), property, &super::child(path, name), depth + 1));
        }
    }
    for name in schema.required.iter().filter(|name| !fields.contains_key(&***name)) {
        let path = format!("{path}.{name}");
        let sentence = format!("{path} in body is required");
        outcome.fail(Failure::new(FieldErrorKind::Required, &path, Value::Null, sentence).with_detail(""));
    }
    outcome
}
