//! The ownership granularity that a schema sets (`x-kubernetes-list-type`, `x-kubernetes-map-type`): atomic, by
//! field, or by element. Must not look at owners.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::element::PathElement;
use super::set::PathSet;
use schema::{ListType, Schema, Type};

/// The schema at one place of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'s> {
    /// None where nothing is declared: objects are then owned field by field, everything else whole.
    pub schema: Option<&'s Schema>,
    /// Whether the place may hold what is not declared.
    pub declared: bool,
    place: Place,
    /// Inside `x-kubernetes-preserve-unknown-fields`.
    keeps_unknown: bool,
    /// The object is of a kind whose absent structs stand for empty ones.
    builtin: bool,
    /// Values are compared as they would be stored.
    stored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    Inside,
}

/// Metadata that the server maintains and no manager owns.
const UNOWNABLE_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// How a value is owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As a whole.
    Leaf,
    /// Field by field.
    Map,
    /// Element by element.
    List,
}

static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| {
    let strings = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let owner = json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": { "type": "string" },
            "blockOwnerDeletion": { "type": "boolean" },
            "controller": { "type": "boolean" },
            "kind": { "type": "string" },
            "name": { "type": "string" },
            "uid": { "type": "string" },
        },
    });
    Schema::from_openapi(&json!({
        "type": "object",
        "properties": {
            "annotations": strings,
            "creationTimestamp": { "type": "string", "format": "date-time" },
            "deletionGracePeriodSeconds": { "type": "integer" },
            "deletionTimestamp": { "type": "string", "format": "date-time" },
            "finalizers": {
                "type": "array",
                "x-kubernetes-list-type": "set",
                "items": { "type": "string" },
            },
            "generateName": { "type": "string" },
            "generation": { "type": "integer" },
            "labels": strings,
            "managedFields": { "type": "array", "items": { "type": "object" } },
            "name": { "type": "string" },
            "namespace": { "type": "string" },
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": owner,
            },
            "resourceVersion": { "type": "string" },
            "selfLink": { "type": "string" },
            "uid": { "type": "string" },
        },
    }))
});
static STRING: LazyLock<Schema> = LazyLock::new(|| Schema { kind: Type::String, ..Schema::default() });
static EMPTY_OBJECT: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));
static EMPTY_STRING: LazyLock<Value> = LazyLock::new(|| Value::from(""));
static ZERO: LazyLock<Value> = LazyLock::new(|| Value::from(0));
static FALSE: Value = Value::Bool(false);

impl<'s> Shape<'s> {
    /// The shape of whole objects of a kind.
    pub fn of_object(schema: &'s Schema, builtin: bool) -> Self {
        let keeps_unknown = schema.preserve_unknown;
        Self {
            schema: Some(schema),
            declared: true,
            place: Place::Object,
            keeps_unknown,
            builtin,
            stored: false,
        }
    }

    /// The same shape for values that are taken as they would be stored.
    pub fn for_stored(self) -> Self {
        Self { stored: self.builtin, ..self }
    }

    /// The form of a value; null takes any form, so that it has none.
    pub fn form(&self, value: &Value) -> Option<Form> {
        Some(match (self.schema, value) {
            (_, Value::Null) => return None,
            (None, Value::Object(_)) => Form::Map,
            (Some(schema), Value::Object(_))
                if !schema.atomic_map && matches!(schema.kind, Type::Object | Type::Any) =>
            {
                Form::Map
            }
            (Some(schema), Value::Array(_))
                if schema.list != ListType::Atomic && matches!(schema.kind, Type::Array | Type::Any) =>
            {
                Form::List
            }
            _ => Form::Leaf,
        })
    }

    /// The shape of a field.
    pub fn field(&self, name: &str) -> Shape<'s> {
        match self.declared_field(name).or_else(|| self.schema?.values.as_deref()) {
            Some(schema) if self.is_metadata(name) => Self { place: Place::Metadata, ..self.below(schema) },
            Some(schema) => self.below(schema),
            None => self.undeclared(),
        }
    }

    /// Whether a field cannot be owned.
    pub fn is_unownable(&self, name: &str) -> bool {
        match self.place {
            Place::Object => name == "apiVersion" || name == "kind",
            Place::Metadata => UNOWNABLE_METADATA.contains(&name),
            Place::Inside => false,
        }
    }

    fn is_metadata(&self, name: &str) -> bool {
        self.place == Place::Object && name == "metadata"
    }

    /// The schema of a field that is declared by name.
    pub fn declared_field(&self, name: &str) -> Option<&'s Schema> {
        let schema = self.schema?;
        let is_resource = self.place == Place::Object || schema.embedded_resource;
        match name {
            "metadata" if is_resource => Some(&OBJECT_META),
            "apiVersion" | "kind" if is_resource => Some(&STRING),
            _ => schema.properties.get(name).map(|child| &**child),
        }
    }

    /// The shape of the elements of a list.
    pub fn element(&self) -> Shape<'s> {
        match self.schema.and_then(|schema| schema.items.as_deref()) {
            Some(schema) => self.below(schema),
            None => self.undeclared(),
        }
    }

    /// The shape one step further.
    pub fn at(&self, element: &PathElement) -> Shape<'s> {
        match element {
            PathElement::Field(name) => self.field(name.as_str()),
            _ => self.element(),
        }
    }

    /// Whether lists or objects here are owned whole because the schema says so.
    pub fn is_whole(&self) -> bool {
        self.schema.is_some_and(|schema| match schema.kind {
            Type::Array => schema.list == ListType::Atomic,
            Type::Object | Type::Any => schema.atomic_map,
            _ => false,
        })
    }

    fn below(&self, schema: &'s Schema) -> Shape<'s> {
        let keeps_unknown = self.keeps_unknown || schema.preserve_unknown;
        Self { schema: Some(schema), declared: true, place: Place::Inside, keeps_unknown, ..*self }
    }

    fn undeclared(&self) -> Shape<'s> {
        let free = self.schema.is_none_or(|schema| schema.properties.is_empty());
        let declared = free || self.keeps_unknown;
        Self { schema: None, declared, place: Place::Inside, keeps_unknown: declared, ..*self }
    }

    /// What an absent field of a present object stands for. In kinds that Kubernetes has Go types for,
    /// structs, and fields that are always written, are there with their zero value.
    pub fn absent(&self, name: &str) -> Option<&'static Value> {
        // `metadata` itself is not owned, so an absent one counts as an empty object.
        if self.is_metadata(name) {
            return Some(&EMPTY_OBJECT);
        }
        let schema = self.schema.filter(|_| self.builtin)?;
        let field = schema.properties.get(name)?;
        if field.default.as_ref().is_some_and(|default| *default == *EMPTY_OBJECT) {
            return Some(&EMPTY_OBJECT);
        }
        schema.required.iter().any(|required| **required == *name).then(|| match field.kind {
            Type::String => &*EMPTY_STRING,
            Type::Integer | Type::Number => &*ZERO,
            Type::Boolean => &FALSE,
            Type::Any | Type::Object | Type::Array => &Value::Null,
        })
    }

    /// A field's value as it is stored: empty lists and maps of built-in kinds are not.
    pub fn stored<'v>(&self, name: &str, value: Option<&'v Value>) -> Option<&'v Value> {
        if !self.stored {
            return value;
        }
        let is_empty = match value? {
            Value::Null => !self.keeps_null(name),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) if fields.is_empty() => {
                self.field(name).schema.is_some_and(|schema| schema.values.is_some())
            }
            _ => false,
        };
        value.filter(|_| !is_empty)
    }

    /// Whether only strings and numbers fit: quantities and the like of built-in kinds. Custom resources
    /// leave that to validation.
    pub fn is_scalar(&self) -> bool {
        let is_quantity = |schema: &Schema| schema.format.as_deref() == Some("quantity");
        self.builtin && self.schema.is_some_and(|schema| schema.int_or_string || is_quantity(schema))
    }

    /// Whether a null is stored: in built-in kinds only times are, where Kubernetes has no pointer.
    pub fn keeps_null(&self, name: &str) -> bool {
        let format = || self.field(name).schema?.format.as_deref();
        !self.builtin || format() == Some("date-time")
    }

    /// The paths that cannot be owned.
    pub fn unownable() -> &'static PathSet {
        static UNOWNABLE: LazyLock<PathSet> = LazyLock::new(|| {
            let mut set = PathSet::default();
            for name in ["apiVersion", "kind", "metadata"] {
                set.insert_fields(&[name]);
            }
            for name in UNOWNABLE_METADATA {
                set.insert_fields(&["metadata", name]);
            }
            set
        });
        &UNOWNABLE
    }

    /// The path element that identifies an element of a list that is owned by element, or why there is none.
    pub fn identity(&self, element: &Value) -> Result<PathElement, String> {
        match self.schema.map(|schema| &schema.list) {
            Some(ListType::Map(keys)) => self.keyed_identity(keys, element),
            Some(ListType::Set) => set_identity(element),
            _ => Err(String::from("invalid indexing of non-associative list")),
        }
    }

    fn keyed_identity(&self, keys: &[Box<str>], element: &Value) -> Result<PathElement, String> {
        let fields = match element {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".into()),
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let shape = self.element();
        let default = |key: &str| shape.declared_field(key)?.default.as_ref();
        let value = |key: &str| fields.get(key).or_else(|| default(key)).cloned();
        let mut found: Vec<(Box<str>, Value)> =
            keys.iter().filter_map(|key| Some((key.clone(), value(key)?))).collect();
        if found.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        found.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(PathElement::Key(found.into()))
    }
}

fn set_identity(element: &Value) -> Result<PathElement, String> {
    match element {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
        scalar => Ok(PathElement::Item(scalar.clone())),
    }
}
