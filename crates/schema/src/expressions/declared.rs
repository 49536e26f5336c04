//! The type that a schema gives to values in expressions, with how large they can get in one request. What has no
//! type in its schema is not seen by expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::{Field, Object, Type};
use serde_json::Value;

/// The largest request.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// A type, and the fewest bytes that a value of it has in JSON.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The type of the value.
    pub kind: Type,
    /// The fewest bytes of its JSON.
    pub bytes_min: u64,
}

impl Declared {
    fn new(kind: Type, bytes_min: u64) -> Self {
        Self { kind, bytes_min }
    }

    /// How often such a value can stand in one request.
    pub fn count_max(&self) -> u64 {
        REQUEST_BYTES_MAX / (self.bytes_min + 1)
    }
}

/// The type of the values of a schema; a resource has apiVersion, kind and a name whatever its schema says.
/// The depth of the schema was bounded by the caller.
pub fn declared(schema: &Value, is_resource: bool) -> Option<Declared> {
    let most = |key: &str| schema[key].as_i64().map(|most| u64::try_from(most).unwrap_or(0));
    let longest = |otherwise: u64| most("maxLength").map_or(otherwise, |most| most.saturating_mul(4));
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(Declared::new(Type::Dyn(longest(REQUEST_BYTES_MAX - 2)), 1));
    }
    match schema["type"].as_str()? {
        "array" => {
            let element = declared(&schema["items"], is_embedded(&schema["items"]))?;
            let size = most("maxItems").unwrap_or((REQUEST_BYTES_MAX - 2) / (element.bytes_min + 1));
            Some(Declared::new(Type::List(Arc::new(element.kind), size), 2))
        }
        "object" if schema["additionalProperties"].is_object() && !is_resource => {
            let values = &schema["additionalProperties"];
            let value = declared(values, is_embedded(values))?;
            let size = most("maxProperties").unwrap_or((REQUEST_BYTES_MAX - 2) / (value.bytes_min + 6));
            Some(Declared::new(Type::Map(Arc::new(Type::String(0)), Arc::new(value.kind), size), 2))
        }
        "object" => Some(object(schema, is_resource)),
        "string" => Some(match schema["format"].as_str().unwrap_or_default() {
            "byte" => Declared::new(Type::Bytes(most("maxLength").unwrap_or(REQUEST_BYTES_MAX - 2)), 2),
            "duration" => Declared::new(Type::Duration(32), 3),
            "date" => Declared::new(Type::Timestamp(12), 12),
            "date-time" => Declared::new(Type::Timestamp(32), 21),
            _ => Declared::new(Type::String(longest(text_max(schema))), 2),
        }),
        "boolean" => Some(Declared::new(Type::Bool, 4)),
        "number" => Some(Declared::new(Type::Double, 1)),
        "integer" => Some(Declared::new(Type::Int, 1)),
        _ => None,
    }
}

/// Without a length of its own, text is as long as the longest of its values, or as a request.
fn text_max(schema: &Value) -> u64 {
    let values = schema["enum"].as_array().map(Vec::as_slice).unwrap_or_default();
    match values.iter().filter_map(Value::as_str).map(str::len).max() {
        Some(longest) => longest as u64,
        None => REQUEST_BYTES_MAX - 2,
    }
}

fn is_embedded(schema: &Value) -> bool {
    schema["x-kubernetes-embedded-resource"] == true
}

fn object(schema: &Value, is_resource: bool) -> Declared {
    let mut fields = BTreeMap::new();
    let mut bytes_min = 2;
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let Some(declared) = declared(property, is_embedded(property)) else { continue };
        if required.contains(&key.as_str()) && property["default"].is_null() {
            bytes_min += key.len() as u64 + declared.bytes_min + 4;
        }
        if let Some(name) = escaped(key) {
            fields.insert(name, Field { key: key.clone(), kind: declared.kind });
        }
    }
    if is_resource {
        for key in ["apiVersion", "kind"] {
            fields.insert(key.to_owned(), text_field(key));
        }
        let metadata = ["name", "generateName"].map(|key| (key.to_owned(), text_field(key)));
        let metadata = Object { name: "object.metadata".to_owned(), fields: metadata.into_iter().collect() };
        let field = Field { key: "metadata".to_owned(), kind: Type::Object(Arc::new(metadata)) };
        fields.insert("metadata".to_owned(), field);
    }
    Declared::new(Type::Object(Arc::new(Object { name: "object".to_owned(), fields })), bytes_min)
}

fn text_field(key: &str) -> Field {
    Field { key: key.to_owned(), kind: Type::String(REQUEST_BYTES_MAX - 2) }
}

/// The name of a field in expressions; none where it cannot be written as one.
pub(super) fn escaped(key: &str) -> Option<String> {
    if matches!(key, "true" | "false" | "null" | "in") || cel::RESERVED.contains(&key) {
        return Some(format!("__{key}__"));
    }
    let mut letters = key.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let goes_on = letters.all(|letter| letter.is_ascii_alphanumeric() || "_./-".contains(letter));
    let escaped = key.replace("__", "__underscores__");
    let escaped = escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__");
    (begins && goes_on).then_some(escaped)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_written_as_kubernetes_writes_them() {
        let check =
            |key: &str, expected: Option<&str>| assert_eq!(escaped(key).as_deref(), expected, "{key}");
        check("plain", Some("plain"));
        check("namespace", Some("__namespace__"));
        check("a-b.c/d", Some("a__dash__b__dot__c__slash__d"));
        check("a__b", Some("a__underscores__b"));
        check("1a", None);
        check("a b", None);
        check("", None);
    }

    #[test]
    fn sizes_come_from_the_schema_or_from_the_largest_request() {
        let check = |schema: Value, shown: &str, bytes_min: u64| {
            let declared = declared(&schema, false).expect("a type");
            let size = match &declared.kind {
                Type::String(size) | Type::List(_, size) | Type::Map(_, _, size) => size.to_string(),
                _ => String::new(),
            };
            assert_eq!(
                (format!("{} {size}", declared.kind), declared.bytes_min),
                (shown.to_owned(), bytes_min)
            );
        };
        check(json!({ "type": "string", "maxLength": 5 }), "string 20", 2);
        check(json!({ "type": "string", "enum": ["abc", "d"] }), "string 3", 2);
        check(json!({ "type": "string" }), "string 3145726", 2);
        check(json!({ "type": "array", "items": { "type": "integer" } }), "list(int) 1572863", 2);
        check(json!({ "type": "array", "maxItems": 4, "items": { "type": "string" } }), "list(string) 4", 2);
        let values = json!({ "type": "object", "additionalProperties": { "type": "boolean" } });
        check(values, "map(string, bool) 314572", 2);
        let object =
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
        check(object, "object ", 8);
        assert!(declared(&json!({ "x-kubernetes-preserve-unknown-fields": true }), false).is_none());
    }
}
