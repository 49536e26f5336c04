//! The shape of one kind: what validation, defaulting, pruning, strategic merge and server-side apply
//! ask about a field. Built-in kinds and CustomResourceDefinitions share it.
//! Must not know where a schema came from.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

pub(crate) mod builtin;
mod decode;
mod default;
mod object_meta;
mod parse;
mod prune;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod unknown;

pub use decode::decode_fault;
pub use decode::{DefinitionName, converter_fault, decode_builtin, drop_nulls};
pub use default::{apply_defaults, prune_nulls};
pub use object_meta::object_meta;
pub use prune::prune;
pub use unknown::drop_unknown;
pub use unknown::{duplicate_fields, strict_error, strict_lines, strict_lines_in_order, unknown_fields};

/// Values and schemas nest no deeper than this; the JSON reader stops earlier.
pub const DEPTH_MAX: usize = 150;

/// The path of a field of the object at `path`.
pub fn child(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

/// One node of a structural schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// The JSON type, `Any` where the schema does not say.
    pub kind: Type,
    /// OpenAPI format such as `int32`, `byte`, `date-time`, `quantity`.
    pub format: Option<Box<str>>,
    /// Fields of an object.
    pub properties: BTreeMap<Box<str>, SchemaRef>,
    /// Fields that must be there.
    pub required: Vec<Box<str>>,
    /// Values of a map (`additionalProperties`).
    pub values: Option<SchemaRef>,
    /// Elements of a list.
    pub items: Option<SchemaRef>,
    /// `null` is a value of this field, not its absence.
    pub nullable: bool,
    /// What the field gets when it is absent.
    pub default: Option<Value>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// How server-side apply merges the list.
    pub list: ListType,
    /// `x-kubernetes-map-type: atomic` (also for structs).
    pub atomic_map: bool,
    /// How strategic merge patch treats the field.
    pub patch: PatchStrategy,
    /// Value rules; boxed because most nodes have none.
    pub rules: Option<Box<Rules>>,
}

/// The JSON type a schema asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Type {
    /// Nothing was said.
    #[default]
    Any,
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// A JSON string.
    String,
    /// A JSON number without fraction.
    Integer,
    /// A JSON number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// `x-kubernetes-list-type` with its keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole; also the default.
    #[default]
    Atomic,
    /// Distinct scalars.
    Set,
    /// Objects told apart by these fields.
    Map(Vec<Box<str>>),
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged, by `merge_key` or as sets of scalars.
    pub merge: bool,
    /// `retainKeys`: fields not named in the patch are dropped.
    pub retain_keys: bool,
    /// `replace`, said outright: also an object, which is merged otherwise, is replaced as a whole.
    pub replace: bool,
    /// The merge key: the field that identifies list elements.
    pub merge_key: Option<Box<str>>,
}

/// OpenAPI value rules of one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// Allowed values.
    pub one_of_values: Vec<Value>,
    /// A regular expression, as written in the schema.
    pub pattern: Option<Box<str>>,
    /// Shortest string, in characters.
    pub min_length: Option<u64>,
    /// Longest string, in characters.
    pub max_length: Option<u64>,
    /// Smallest number.
    pub minimum: Option<f64>,
    /// Whether `minimum` itself is refused.
    pub exclusive_minimum: bool,
    /// Largest number.
    pub maximum: Option<f64>,
    /// Whether `maximum` itself is refused.
    pub exclusive_maximum: bool,
    /// The number must be a multiple of this.
    pub multiple_of: Option<f64>,
    /// Fewest list elements.
    pub min_items: Option<u64>,
    /// Most list elements.
    pub max_items: Option<u64>,
    /// All list elements differ.
    pub unique_items: bool,
    /// Fewest object fields.
    pub min_properties: Option<u64>,
    /// Most object fields.
    pub max_properties: Option<u64>,
    /// Every one must hold.
    pub all_of: Vec<Schema>,
    /// At least one must hold.
    pub any_of: Vec<Schema>,
    /// Exactly one must hold.
    pub one_of: Vec<Schema>,
    /// Must not hold.
    pub not: Option<Box<Schema>>,
}

/// A child schema: written in place, or one of the built-in definitions, which may refer to themselves.
#[derive(Clone, PartialEq)]
pub enum SchemaRef {
    /// Written in place.
    Inline(Arc<Schema>),
    /// A built-in definition by its place in the table of kinds: looked up when asked for, so that
    /// definitions may refer to themselves.
    Builtin(u16),
}

impl Deref for SchemaRef {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            Self::Inline(schema) => schema,
            Self::Builtin(index) => builtin::definition(*index),
        }
    }
}

impl From<Schema> for SchemaRef {
    fn from(schema: Schema) -> Self {
        Self::Inline(Arc::new(schema))
    }
}

impl std::fmt::Debug for SchemaRef {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline(schema) => schema.fmt(formatter),
            Self::Builtin(index) => write!(formatter, "Builtin({index})"),
        }
    }
}
