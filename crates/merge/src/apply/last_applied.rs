//! The last-applied annotation of client-side apply: how `kubectl apply --server-side` takes its fields over, and how
//! it is kept up to date.

use serde_json::{Map, Value};

use super::check::{Duplicates, type_errors};
use super::compare::Comparison;
use super::owned::mentioned;
use super::set::PathSet;
use super::shape::Shape;

/// The manager that takes over from client-side apply.
pub(super) const KUBECTL: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The paths that client-side apply set last and that still have its values.
pub(super) fn still_as_applied(shape: Shape<'_>, live: &Value, api_version: &str) -> Option<PathSet> {
    let text = live["metadata"]["annotations"][ANNOTATION].as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last["apiVersion"] != api_version || type_errors(shape, &last, Duplicates::Refused).is_some() {
        return None;
    }
    let difference = Comparison::of_objects(shape, &last, live);
    let mut set = mentioned(shape, &last);
    for changed in [&difference.modified, &difference.added, &difference.removed] {
        set.subtract(changed);
    }
    Some(set)
}

/// Writes what was applied into the annotation of an object that has one.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    let Some(Value::Object(annotations)) =
        object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    else {
        return;
    };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    annotations.insert(ANNOTATION.to_owned(), Value::String(configuration(applied)));
    if size(annotations) > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}

fn size(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
}

/// The configuration as Go writes JSON: on one line that ends, with HTML characters escaped.
fn configuration(applied: &Value) -> String {
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) =
        applied.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    {
        annotations.remove(ANNOTATION);
    }
    let mut text = String::new();
    for character in applied.to_string().chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text.push('\n');
    text
}
