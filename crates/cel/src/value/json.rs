//! JSON as CEL values according to the declared type: a number is an `int` or a `double`, and a string may be a
//! timestamp, a duration or bytes.

use base64::Engine as _;
use serde_json::Value as Json;

use super::{List, Map, Text, Value};
use crate::time_text;
use crate::types::Type;

/// Nothing is known of what is inside of something of which nothing is known.
static ANY: Type = Type::ANY;

impl<'a> Value<'a> {
    /// A value of outside.
    pub fn of(json: &'a Json, kind: &'a Type) -> Self {
        match (json, kind) {
            (Json::Null, _) => Self::Null,
            (Json::Bool(value), _) => Self::Bool(*value),
            (Json::Number(number), Type::Double) => Self::Double(number.as_f64().unwrap_or_default()),
            (Json::Number(number), kind) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Self::Int(whole),
                (None, Some(float)) if matches!(kind, Type::Int) && float.fract() == 0.0 => {
                    Self::Int(float as i64)
                }
                (None, float) => Self::Double(float.unwrap_or_default()),
            },
            (Json::String(text), kind) => from_text(text, kind),
            (Json::Array(items), Type::List(element, _)) => Self::List(List::Json(items, element)),
            (Json::Array(items), _) => Self::List(List::Json(items, &ANY)),
            (Json::Object(fields), Type::Object(object)) => Self::Map(Map::Object(fields, object)),
            (Json::Object(fields), Type::Map(_, value, _)) => Self::Map(Map::Json(fields, value)),
            (Json::Object(fields), _) => Self::Map(Map::Json(fields, &ANY)),
        }
    }

    /// The value as JSON, as far as it is something that JSON knows.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(number) => Json::from(*number),
            Self::Uint(number) => Json::from(*number),
            Self::Double(number) => Json::from(*number),
            Self::String(text) => Json::from(&**text),
            _ => return None,
        })
    }
}

/// Text that does not have the form its type promises stays text.
fn from_text<'a>(text: &'a str, kind: &Type) -> Value<'a> {
    let read = match kind {
        Type::Timestamp(_) => {
            time_text::timestamp(text).or_else(|| time_text::date(text)).map(Value::Timestamp)
        }
        Type::Duration(_) => time_text::duration(text).map(Value::Duration),
        Type::Bytes(_) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok();
            bytes.map(|bytes| Value::Bytes(bytes.into()))
        }
        _ => None,
    };
    read.unwrap_or(Value::String(Text::Borrowed(text)))
}
