//! Run-time values of expressions. Input values are borrowed, and nothing of them is copied before it is needed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::authorizer::{self, AccessCheck, Decision};
use crate::types::{Object, Type};

mod compare;
mod json;

/// A value.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// A span of time in nanoseconds.
    Duration(i64),
    /// A moment.
    Timestamp(jiff::Timestamp),
    /// Elements in order.
    List(List<'a>),
    /// Values under keys.
    Map(Map<'a>),
    /// A type, by its name.
    Type(&'static str),
    /// A value that may be missing.
    Optional(Option<Rc<Value<'a>>>),
    /// A quantity, in billionths.
    Quantity(i128),
    /// The parts of a URL.
    Url(Rc<Url>),
    /// An address.
    Ip(IpAddr),
    /// A range of addresses.
    Cidr(IpAddr, u8),
    /// A version: major, minor, patch, and what comes after.
    Semver(Rc<Semver>),
    /// One of the formats of Kubernetes, by name.
    Format(&'static str),
    /// A permission check.
    AccessCheck(Rc<AccessCheck>),
    /// The decision of a permission check.
    Decision(Rc<Decision>),
}

/// Text of outside, of the expression, or made while evaluating.
#[derive(Debug, Clone)]
pub enum Text<'a> {
    /// It lies elsewhere.
    Borrowed(&'a str),
    /// It was made.
    Owned(Rc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

/// A list.
#[derive(Debug, Clone)]
pub enum List<'a> {
    /// Of outside, with the type of its elements.
    Json(&'a [Json], &'a Type),
    /// Made while evaluating.
    Made(Rc<Vec<Value<'a>>>),
}

/// A map or an object.
#[derive(Debug, Clone)]
pub enum Map<'a> {
    /// An object of outside, with what is known of its fields.
    Object(&'a serde_json::Map<String, Json>, &'a Object),
    /// A map of outside, with the type of its values.
    Json(&'a serde_json::Map<String, Json>, &'a Type),
    /// Made while evaluating.
    Made(Rc<BTreeMap<Key, Value<'a>>>),
}

/// A key of a map.
#[derive(Debug, Clone)]
pub enum Key {
    /// `true` or `false`.
    Bool(bool),
    /// A signed number; equal to the same unsigned one.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// Text.
    String(Rc<str>),
}

impl Key {
    fn rank(&self) -> (u8, i128, &str) {
        match self {
            Self::Bool(value) => (0, i128::from(*value), ""),
            Self::Int(number) => (1, i128::from(*number), ""),
            Self::Uint(number) => (1, i128::from(*number), ""),
            Self::String(text) => (2, 0, text),
        }
    }

    /// The value that can be a key, if it can.
    pub(crate) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(number) => Self::Int(*number),
            Value::Uint(number) => Self::Uint(*number),
            Value::Double(number) if number.fract() == 0.0 && number.abs() < 9.0e18 => {
                Self::Int(*number as i64)
            }
            Value::String(text) => Self::String(Rc::from(&**text)),
            _ => return None,
        })
    }

    pub(crate) fn value<'a>(&self) -> Value<'a> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(number) => Value::Int(*number),
            Self::Uint(number) => Value::Uint(*number),
            Self::String(text) => Value::String(Text::Owned(text.clone())),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The parts of a URL that expressions ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) query: String,
}

/// A version in the sense of semver.org.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    pub(crate) numbers: [u64; 3],
    pub(crate) before: Vec<String>,
}

impl<'a> Value<'a> {
    /// Text that was made.
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::String(Text::Owned(text.into()))
    }

    /// A list that was made.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::Made(Rc::new(items)))
    }

    /// A value that is there.
    pub fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// The name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(..) => "net.CIDR",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::AccessCheck(question) => question.type_name(),
            Self::Decision(_) => authorizer::DECISION,
        }
    }

    /// What the value counts as when cost is charged.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::String(text) => text.chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Optional(Some(value)) => value.size(),
            Self::Ip(address) | Self::Cidr(address, _) => {
                if address.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            _ => 1,
        }
    }
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(items, _) => items.len(),
            Self::Made(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Json(items, kind) => items.get(index).map(|item| Value::of(item, kind)),
            Self::Made(items) => items.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Object(fields, object) => {
                object.fields.values().filter(|field| fields.contains_key(&field.key)).count()
            }
            Self::Json(fields, _) => fields.len(),
            Self::Made(entries) => entries.len(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Value<'a>> {
        match (self, key) {
            (Self::Made(entries), key) => entries.get(key).cloned(),
            (Self::Json(fields, kind), Key::String(name)) => {
                fields.get(&**name).map(|field| Value::of(field, kind))
            }
            (Self::Object(fields, object), Key::String(name)) => {
                let known = object.fields.get(&**name)?;
                fields.get(&known.key).map(|field| Value::of(field, &known.kind))
            }
            _ => None,
        }
    }

    /// The value of a field by its name, without a key being made.
    pub(crate) fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Self::Made(_) => self.get(&Key::String(Rc::from(name))),
            Self::Json(fields, kind) => fields.get(name).map(|field| Value::of(field, kind)),
            Self::Object(fields, object) => {
                let known = object.fields.get(name)?;
                fields.get(&known.key).map(|field| Value::of(field, &known.kind))
            }
        }
    }

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Object(fields, object) => {
                let there = object.fields.iter().filter(|(_, field)| fields.contains_key(&field.key));
                there.map(|(name, _)| Value::String(Text::Borrowed(name))).collect()
            }
            Self::Json(fields, _) => fields.keys().map(|key| Value::String(Text::Borrowed(key))).collect(),
            Self::Made(entries) => entries.keys().map(Key::value).collect(),
        }
    }
}
