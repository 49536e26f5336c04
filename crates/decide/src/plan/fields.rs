//! The fields that an update changes: a short list of paths with their values before and after. Never contains values
//! of Secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many fields are listed for one template.
pub(super) const FIELDS_MAX: usize = 20;
/// How many characters of a value are kept.
const VALUE_MAX: usize = 60;
/// How deep a manifest may nest; API servers take far less.
const DEPTH_MAX: usize = 100;
/// Where kubectl writes a copy of what was applied: it repeats the fields.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A field that an update changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FieldChange {
    /// The field, such as `spec.template.spec.containers[web].image`.
    pub path: String,
    /// Its value before, as JSON, shortened; absent if it is new, or if it is part of a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its value after; absent if it is removed, or if it is part of a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The fields that differ between the manifests of one cluster before and after.
pub(super) fn fields(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut search = Search::default();
    let none = Vec::new();
    let (before, after) = (before.as_array().unwrap_or(&none), after.as_array().unwrap_or(&none));
    for (was, is) in before.iter().zip(after) {
        search.is_secret =
            [was, is].into_iter().any(|one| one["kind"] == "Secret" && one["apiVersion"] == "v1");
        search.value("", Some(was), Some(is), 0);
    }
    search.found
}

#[derive(Default)]
struct Search {
    found: Vec<FieldChange>,
    is_secret: bool,
}

impl Search {
    fn value(&mut self, path: &str, was: Option<&Value>, is: Option<&Value>, depth: usize) {
        if was == is || self.found.len() >= FIELDS_MAX {
            return;
        }
        // Values that were read before are hidden and those of a change are not, so keys cannot be compared.
        if self.is_secret && matches!(path, "data" | "stringData") {
            return self.add(path, was, is);
        }
        match (was, is) {
            (Some(Value::Object(was)), Some(Value::Object(is))) if depth < DEPTH_MAX => {
                self.object(path, was, is, depth);
            }
            (Some(Value::Array(was)), Some(Value::Array(is))) if depth < DEPTH_MAX => {
                self.array(path, was, is, depth);
            }
            (was, is) => self.add(path, was, is),
        }
    }

    fn object(&mut self, path: &str, was: &Map<String, Value>, is: &Map<String, Value>, depth: usize) {
        let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        for key in keys.into_iter().filter(|key| *key != LAST_APPLIED) {
            let path = match (path, key.contains(['.', '/'])) {
                ("", _) => key.clone(),
                (path, true) => format!("{path}[{key}]"),
                (path, false) => format!("{path}.{key}"),
            };
            self.value(&path, was.get(key), is.get(key), depth + 1);
        }
    }

    /// Items with names are compared by name, others by their place if as many are there.
    fn array(&mut self, path: &str, was: &[Value], is: &[Value], depth: usize) {
        if let Some((was, is)) = by_name(was).zip(by_name(is)) {
            let names: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
            for name in names {
                let path = format!("{path}[{name}]");
                self.value(&path, was.get(name).copied(), is.get(name).copied(), depth + 1);
            }
        } else if was.len() == is.len() {
            for (place, (was, is)) in was.iter().zip(is).enumerate() {
                self.value(&format!("{path}[{place}]"), Some(was), Some(is), depth + 1);
            }
        } else {
            self.add(path, Some(&Value::Array(was.to_vec())), Some(&Value::Array(is.to_vec())));
        }
    }

    fn add(&mut self, path: &str, was: Option<&Value>, is: Option<&Value>) {
        let shown = |value: Option<&Value>| value.filter(|_| !self.is_secret).map(shortened);
        let change = FieldChange { path: path.to_owned(), from: shown(was), to: shown(is) };
        self.found.push(change);
    }
}

fn by_name(items: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let named: Option<BTreeMap<&str, &Value>> =
        items.iter().map(|item| Some((item.get("name")?.as_str()?, item))).collect();
    // Two of one name cannot be told apart.
    named.filter(|named| named.len() == items.len())
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_MAX) {
        None => text,
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, from, to } = self;
        match (from, to) {
            (Some(from), Some(to)) => write!(formatter, "{path}: {from} → {to}"),
            (None, Some(to)) => write!(formatter, "{path}: added {to}"),
            (Some(from), None) => write!(formatter, "{path}: removed {from}"),
            (None, None) => write!(formatter, "{path}: changed (hidden)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(was: Value, is: Value, expected: &[&str]) {
        let found: Vec<String> =
            fields(&json!([was]), &json!([is])).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn fields_are_found_by_name_and_by_place() {
        let pod = |image: &str, args: Value| json!({ "spec": { "containers": [{ "name": "log", "image": "log" }, { "name": "web", "image": image, "args": args }] } });
        check(pod("web:1", json!(["a"])), pod("web:1", json!(["a"])), &[]);
        check(
            pod("web:1", json!(["a"])),
            pod("web:2", json!(["b"])),
            &[
                r#"spec.containers[web].args[0]: "a" → "b""#,
                r#"spec.containers[web].image: "web:1" → "web:2""#,
            ],
        );
        check(
            pod("web:1", json!(["a"])),
            pod("web:1", json!(["a", "b"])),
            &[r#"spec.containers[web].args: ["a"] → ["a","b"]"#],
        );
    }

    #[test]
    fn what_is_added_or_removed_is_told_and_long_values_are_shortened() {
        check(
            json!({ "metadata": { "labels": { "a": "1", "example.com/b": "2" } } }),
            json!({ "metadata": { "labels": { "c": "3" } } }),
            &[
                r#"metadata.labels.a: removed "1""#,
                r#"metadata.labels.c: added "3""#,
                r#"metadata.labels[example.com/b]: removed "2""#,
            ],
        );
        let long = "x".repeat(100);
        let shown = format!("data.k: \"1\" → \"{}… (102 characters)", "x".repeat(59));
        check(json!({ "data": { "k": "1" } }), json!({ "data": { "k": long } }), &[&shown]);
    }

    #[test]
    fn values_of_secrets_are_not_told() {
        let secret = |value: &str| {
            let annotations = json!({ LAST_APPLIED: value, "note": value });
            json!({ "apiVersion": "v1", "kind": "Secret", "data": { "k": value }, "metadata": { "annotations": annotations } })
        };
        check(
            secret("hunter2"),
            secret("horse"),
            &["data: changed (hidden)", "metadata.annotations.note: changed (hidden)"],
        );
    }
}
