//! Reads and writes fields of untyped (JSON) objects. A missing field reads as empty.

use serde_json::{Map, Value};

/// The value behind a path of field names; `null` counts as missing.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, field| value.get(field)).filter(|value| !value.is_null())
}

/// A text, empty if it is missing.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number.
pub(crate) fn integer(object: &Value, path: &[&str]) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// A list, empty if it is missing.
pub(crate) fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The pairs of a map, none if it is missing.
pub(crate) fn pairs<'a>(
    object: &'a Value,
    path: &[&str],
) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    at(object, path).and_then(Value::as_object).into_iter().flatten()
}

/// The map behind a path, made where it is missing; none if something else is in the way.
pub(crate) fn map<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter()
        .try_fold(object, |value, field| {
            let next = value.as_object_mut()?.entry(*field).or_insert(Value::Null);
            if next.is_null() {
                *next = Value::Object(Map::new());
            }
            Some(next)
        })?
        .as_object_mut()
}

/// Sets a field, making the maps on the way; does nothing if something else is in the way.
pub(crate) fn put(object: &mut Value, path: &[&str], value: Value) {
    if let Some((last, before)) = path.split_last()
        && let Some(parent) = map(object, before)
    {
        parent.insert((*last).to_owned(), value);
    }
}

/// Removes a field if it is there.
pub(crate) fn remove(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, before) = path.split_last()?;
    let parent = before.iter().try_fold(object, |value, field| value.get_mut(field))?;
    parent.as_object_mut()?.remove(*last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_written_and_removed() {
        let mut object = json!({"a": {"b": 1, "n": null}, "list": [1], "text": "x"});
        assert_eq!(integer(&object, &["a", "b"]), Some(1));
        assert_eq!(at(&object, &["a", "n"]), None);
        assert_eq!((text(&object, &["text"]), text(&object, &["a"])), ("x", ""));
        assert_eq!(list(&object, &["list"]).len(), 1);
        put(&mut object, &["a", "n", "deep"], json!(2));
        put(&mut object, &["text", "no"], json!(2));
        assert_eq!(remove(&mut object, &["a", "b"]), Some(json!(1)));
        assert_eq!(remove(&mut object, &["no", "thing"]), None);
        assert_eq!(object, json!({"a": {"n": {"deep": 2}}, "list": [1], "text": "x"}));
    }
}
