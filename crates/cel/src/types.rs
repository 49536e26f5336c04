//! Static types of expressions. Types of input values carry their maximum size, from which the cost of an expression
//! is estimated.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::authorizer;

/// No bound is known.
pub const UNBOUNDED: u64 = u64::MAX;

/// The type of a value. Numbers are how many characters, bytes or elements it has at most.
#[derive(Debug, Clone)]
pub enum Type {
    /// Anything; it is looked at when it is evaluated.
    Dyn(u64),
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed number of 64 bits.
    Int,
    /// An unsigned number of 64 bits.
    Uint,
    /// A floating-point number.
    Double,
    /// Text.
    String(u64),
    /// Bytes.
    Bytes(u64),
    /// A moment.
    Timestamp(u64),
    /// A span of time.
    Duration(u64),
    /// Elements of one type.
    List(Arc<Type>, u64),
    /// Values under keys.
    Map(Arc<Type>, Arc<Type>, u64),
    /// Fields that are known by name.
    Object(Arc<Object>),
    /// A value that may be missing.
    Optional(Arc<Type>),
    /// A type as a value.
    Type,
    /// A value of a library, by the name of its type.
    Opaque(&'static str),
    /// Stands for any one type in the signature of a function.
    Param(u8),
}

/// What is known of an object: its fields by the names that expressions use for them.
#[derive(Debug, Clone, Default)]
pub struct Object {
    /// How the type is called in messages.
    pub name: String,
    /// The fields by the name that expressions use.
    pub fields: BTreeMap<String, Field>,
}

/// One field of an object.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name in the data.
    pub key: String,
    /// What it holds.
    pub kind: Type,
}

impl Type {
    /// Anything, of any size.
    pub const ANY: Self = Self::Dyn(UNBOUNDED);
    /// Text of any length.
    pub const TEXT: Self = Self::String(UNBOUNDED);

    /// The authorizer of one user or service account.
    pub const AUTHORIZER: Self = Self::Opaque(authorizer::AUTHORIZER);
    /// A permission check on a resource.
    pub const RESOURCE_CHECK: Self = Self::Opaque(authorizer::RESOURCE_CHECK);

    /// A list of elements of one type.
    pub fn list(element: Type) -> Self {
        Self::List(Arc::new(element), UNBOUNDED)
    }

    /// A map with keys of text.
    pub fn map(value: Type) -> Self {
        Self::Map(Arc::new(Self::TEXT), Arc::new(value), UNBOUNDED)
    }

    /// Whether nothing is known.
    pub fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn(_))
    }

    /// Whether two types are one, whatever the sizes.
    pub fn same(&self, other: &Type) -> bool {
        match (self, other) {
            (Self::List(one, _), Self::List(two, _)) => one.same(two),
            (Self::Map(key, value, _), Self::Map(key2, value2, _)) => key.same(key2) && value.same(value2),
            (Self::Optional(one), Self::Optional(two)) => one.same(two),
            (Self::Object(one), Self::Object(two)) => Arc::ptr_eq(one, two),
            (Self::Opaque(one), Self::Opaque(two)) => one == two,
            (Self::Param(one), Self::Param(two)) => one == two,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// How large a value of outside can get; zero where size means nothing, as Kubernetes counts.
    pub(crate) fn declared_size(&self) -> u64 {
        match self {
            Self::Dyn(size) | Self::String(size) | Self::Bytes(size) => *size,
            Self::Timestamp(size) | Self::Duration(size) => *size,
            Self::List(_, size) | Self::Map(_, _, size) => *size,
            _ => 0,
        }
    }

    /// How large a value can get that was computed.
    pub(crate) fn computed_size(&self) -> u64 {
        match self {
            Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Null => 1,
            Self::Timestamp(_) | Self::Duration(_) | Self::Type | Self::Opaque(_) => 1,
            _ => UNBOUNDED,
        }
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dyn(_) => formatter.write_str("dyn"),
            Self::Null => formatter.write_str("null"),
            Self::Bool => formatter.write_str("bool"),
            Self::Int => formatter.write_str("int"),
            Self::Uint => formatter.write_str("uint"),
            Self::Double => formatter.write_str("double"),
            Self::String(_) => formatter.write_str("string"),
            Self::Bytes(_) => formatter.write_str("bytes"),
            Self::Timestamp(_) => formatter.write_str("timestamp"),
            Self::Duration(_) => formatter.write_str("duration"),
            Self::List(element, _) => write!(formatter, "list({element})"),
            Self::Map(key, value, _) => write!(formatter, "map({key}, {value})"),
            Self::Object(object) => formatter.write_str(&object.name),
            Self::Optional(inner) => write!(formatter, "optional_type({inner})"),
            Self::Type => formatter.write_str("type"),
            Self::Opaque(name) => formatter.write_str(name),
            Self::Param(number) => write!(formatter, "{}", char::from(b'A' + number % 26)),
        }
    }
}
