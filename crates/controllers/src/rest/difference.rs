//! Computes the JSON merge patch that turns one value into another.

use serde_json::{Map, Value};

/// What has to be merged into `before` to make it `after`: what is gone becomes null, what is the same is left out.
pub fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return after.clone() };
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = new.iter().filter_map(|(key, value)| match old.get(key) {
        Some(same) if same == value => None,
        Some(other) => Some((key.clone(), difference(other, value))),
        None => Some((key.clone(), value.clone())),
    });
    Value::Object(gone.chain(changed).collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, expected: Value) {
        assert_eq!(difference(&before, &after), expected, "{before} to {after}");
    }

    #[test]
    fn what_is_gone_is_removed() {
        check(json!({ "a": 1, "b": 2 }), json!({ "b": 3 }), json!({ "a": null, "b": 3 }));
        check(json!({ "a": { "b": 1, "c": 2 } }), json!({ "a": { "c": 2 } }), json!({ "a": { "b": null } }));
        check(json!({ "a": [1] }), json!({ "a": [] }), json!({ "a": [] }));
        check(json!({ "a": 1 }), json!({ "a": 1 }), json!({}));
        check(Value::Null, json!({ "a": 1 }), json!({ "a": 1 }));
    }
}
