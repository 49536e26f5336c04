//! Error messages of Kubernetes' unstructured converter for a value of the wrong type: strategic merge patches go
//! through it and not through a JSON decoder, and its messages contain no path.

use serde_json::Value;

use super::super::{Schema, Type};

/// What is wrong with a value that cannot become what the schema asks for.
pub(super) fn refusal(value: &Value, schema: &Schema) -> String {
    let found = go_kind(value);
    match (schema.kind, schema.format.as_deref()) {
        (Type::Array, _) => format!("cannot restore slice from {found}"),
        (Type::String, Some("byte")) => format!("cannot restore slice from {found}"),
        (Type::Object, _) if schema.properties.is_empty() => format!("cannot restore map from {found}"),
        (Type::Object, _) => format!("cannot restore struct from: {found}"),
        // Go converts a whole number to a text, which is a reason to refuse it in other words.
        (Type::String | Type::Any, _) if found == "int64" => String::from("cannot convert int64 to string"),
        (Type::Integer, _) if found == "float64" => {
            format!("cannot convert float64 to {}", super::go_integer(schema))
        }
        (kind, _) => format!("unrecognized type: {}", scalar(kind, schema)),
    }
}

/// Some types decode themselves from JSON, and then the decoder's words come out, again without a place.
pub(super) fn of_int_or_string(found: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type int32")
}

/// Bytes are decoded from JSON as well.
pub(super) fn of_bytes(fault: &str) -> String {
    format!("error decoding from json: {fault}")
}

fn scalar(kind: Type, schema: &Schema) -> &'static str {
    match kind {
        Type::Boolean => "bool",
        Type::Integer => super::go_integer(schema),
        Type::Number => "float64",
        _ => "string",
    }
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
