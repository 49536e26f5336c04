//! One path element: a field, a list element identified by its keys or its value, or an index. Knows the order of
//! path elements and how they are written in `fieldsV1` and in messages.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use serde_json::{Map, Value};

use apimachinery::gotext;

/// One step of a field path.
#[derive(Debug, Clone)]
pub(super) enum PathElement {
    /// A field of an object or map.
    Field(FieldName),
    /// The element of a keyed list with these values in its key fields, sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    /// The element of a set with this value.
    Item(Value),
    /// An element of a list by its place.
    Index(i64),
}

/// The name of a field, kept as `fieldsV1` writes it: most steps are fields, and most are only made to be
/// written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldName(Box<str>);

impl FieldName {
    /// The name as the object has it.
    pub fn as_str(&self) -> &str {
        &self.0["f:".len()..]
    }
}

impl PathElement {
    /// A field by name.
    pub fn field(name: &str) -> Self {
        Self::Field(FieldName(["f:", name].concat().into()))
    }

    /// As it is written in `fieldsV1`: `f:name`, `k:{"name":"a"}`, `v:"a"`, `i:0`.
    pub fn into_encoded(self) -> String {
        match self {
            Self::Field(name) => name.0.into(),
            Self::Key(fields) => {
                let mut text = String::from("k:{");
                for (index, (name, value)) in fields.iter().enumerate() {
                    text.push_str(if index == 0 { "" } else { "," });
                    let _ = write!(text, "{}:{value}", Value::from(&**name));
                }
                text.push('}');
                text
            }
            Self::Item(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads what `into_encoded` writes; nothing for kinds of a future version, which are left out.
    pub fn decode(text: &str) -> Result<Option<Self>, String> {
        let Some((kind, content)) = text.split_at_checked(2).filter(|(kind, _)| kind.ends_with(':')) else {
            return Err(format!("missing colon: {text}"));
        };
        let malformed = |error: &dyn fmt::Display| format!("{text}: {error}");
        Ok(Some(match kind {
            "f:" => Self::Field(FieldName(text.into())),
            "v:" => Self::Item(serde_json::from_str(content).map_err(|error| malformed(&error))?),
            "i:" => Self::Index(content.parse().map_err(|error| malformed(&error))?),
            "k:" => {
                let fields: Map<String, Value> =
                    serde_json::from_str(content).map_err(|error| malformed(&error))?;
                Self::Key(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
            }
            _ => return Ok(None),
        }))
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{}", name.as_str()),
            Self::Key(fields) => {
                let texts: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", printed(value))).collect();
                write!(formatter, "[{}]", texts.join(","))
            }
            Self::Item(value) => write!(formatter, "[={}]", printed(value)),
            Self::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => gotext::quoted(text),
        Value::Number(number) => gotext::number_text(number),
        other => other.to_string(),
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => compare_keys(left, right),
            (Self::Item(left), Self::Item(right)) => compare_values(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Item(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

fn compare_keys(left: &[(Box<str>, Value)], right: &[(Box<str>, Value)]) -> Ordering {
    for ((left_name, left_value), (right_name, right_value)) in left.iter().zip(right) {
        let order = left_name.cmp(right_name).then_with(|| compare_values(left_value, right_value));
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

/// A total order in which numbers compare by size, whole or not.
fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.as_f64().unwrap_or(f64::MAX).total_cmp(&right.as_f64().unwrap_or(f64::MAX)),
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(_) | Value::Object(_), Value::Array(_) | Value::Object(_)) => {
            left.to_string().cmp(&right.to_string())
        }
        _ => value_rank(left).cmp(&value_rank(right)),
    }
}

fn value_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) | Value::Object(_) => 3,
        Value::Null => 4,
    }
}

/// Equality in which `1` and `1.0` are the same number.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let pairs = || left.iter().zip(right);
            left.len() == right.len()
                && pairs().all(|((left_name, left), (right_name, right))| {
                    left_name == right_name && same(left, right)
                })
        }
        _ => left == right,
    }
}
