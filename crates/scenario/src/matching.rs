//! Matches an object against a pattern: maps may have more entries, lists may not; null means that the field is absent.

use serde_json::Value;

/// What the pattern asks for and the object does not have, one line each; nothing if it matches.
pub fn differences(pattern: &Value, found: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", pattern, found, &mut lines);
    lines
}

fn compare(path: &str, pattern: &Value, found: &Value, lines: &mut Vec<String>) {
    match (pattern, found) {
        (Value::Null, Value::Null) => {}
        (Value::Object(fields), Value::Array(items)) => {
            for (name, pattern) in fields {
                compare(&format!("{path}[{name}]"), pattern, named(items, name), lines);
            }
        }
        // A condition in short: its status, or its status and reason.
        (Value::String(text), Value::Object(condition)) if condition.contains_key("status") => {
            let part = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            let short = format!("{}/{}", part("status"), part("reason"));
            if *text != part("status") && *text != short {
                lines.push(format!("{path} is {short}, not {text}"));
            }
        }
        (Value::Object(fields), Value::Object(_)) => {
            for (name, pattern) in fields {
                compare(&format!("{path}.{name}"), pattern, &found[name], lines);
            }
        }
        // A map that asks for nothing but absences is content with nothing.
        (Value::Object(fields), Value::Null) if fields.values().all(Value::is_null) => {}
        (Value::Array(patterns), Value::Array(items)) if patterns.len() == items.len() => {
            for (index, (pattern, item)) in patterns.iter().zip(items).enumerate() {
                compare(&format!("{path}[{index}]"), pattern, item, lines);
            }
        }
        (Value::String(text), Value::String(found)) if is_part(text, found) => {}
        (pattern, found) if pattern == found => {}
        (pattern, found) => lines.push(format!("{} is {found}, not {pattern}", shown(path))),
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "it" } else { path }
}

/// The item of a list that has this type or name.
fn named<'a>(items: &'a [Value], name: &str) -> &'a Value {
    let is = |item: &&Value| ["type", "name", "clusterName"].iter().any(|key| item[*key] == name);
    items.iter().find(is).unwrap_or(&Value::Null)
}

/// A text that begins with `~ ` asks for a part.
fn is_part(pattern: &str, found: &str) -> bool {
    pattern.strip_prefix("~ ").is_some_and(|part| found.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(pattern: Value, found: Value, expected: &[&str]) {
        assert_eq!(differences(&pattern, &found), expected, "{pattern} on {found}");
    }

    #[test]
    fn maps_may_have_more_and_lists_may_not() {
        check(json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), &[]);
        check(json!({ "a": { "b": 1 } }), json!({ "a": { "b": 2 } }), &[".a.b is 2, not 1"]);
        check(json!({ "a": [1] }), json!({ "a": [1, 2] }), &[".a is [1,2], not [1]"]);
        check(json!([{ "a": 1 }]), json!([{ "a": 1, "b": 2 }]), &[]);
        check(json!({ "a": null }), json!({}), &[]);
        check(json!({ "a": null }), json!({ "a": 1 }), &[".a is 1, not null"]);
        check(json!({ "a": { "b": null } }), json!({}), &[]);
        check(json!({ "a": 1 }), json!(null), &["it is null, not {\"a\":1}"]);
    }

    #[test]
    fn items_of_lists_are_found_by_their_name() {
        let containers =
            json!({ "containers": [{ "name": "a", "image": "x" }, { "name": "b", "image": "y" }] });
        check(json!({ "containers": { "b": { "image": "y" } } }), containers.clone(), &[]);
        check(
            json!({ "containers": { "c": { "image": "y" } } }),
            containers,
            &[".containers[c] is null, not {\"image\":\"y\"}"],
        );
        let conditions =
            json!({ "conditions": [{ "type": "Scheduled", "status": "False", "reason": "Why" }] });
        check(json!({ "conditions": { "Scheduled": "False" } }), conditions.clone(), &[]);
        check(json!({ "conditions": { "Scheduled": "False/Why" } }), conditions.clone(), &[]);
        check(
            json!({ "conditions": { "Scheduled": "True" } }),
            conditions.clone(),
            &[".conditions[Scheduled] is False/Why, not True"],
        );
        check(json!({ "conditions": { "Ready": null } }), conditions, &[]);
    }

    #[test]
    fn texts_can_be_asked_for_in_part() {
        check(json!("~ bc"), json!("abcd"), &[]);
        check(json!("~ x"), json!("abcd"), &["it is \"abcd\", not \"~ x\""]);
        check(json!("bc"), json!("abcd"), &["it is \"abcd\", not \"bc\""]);
    }
}
