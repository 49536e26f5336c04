//! Validates an applied configuration against the schema, with Kubernetes' error messages.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::element::PathElement;
use super::shape::Shape;
use apimachinery::gotext;
use schema::{ListType, Type};

/// Whether elements of a keyed list or set may stand twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allowed,
    Refused,
}

/// Every place where the object does not fit, as one text; nothing where it fits.
pub(super) fn type_errors(shape: Shape<'_>, object: &Value, duplicates: Duplicates) -> Option<String> {
    let mut check = Check { duplicates, path: Vec::new(), errors: Vec::new() };
    check.value(shape, object);
    match check.errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}

struct Check {
    duplicates: Duplicates,
    path: Vec<PathElement>,
    errors: Vec<String>,
}

impl Check {
    fn error(&mut self, message: &str) {
        let path: String = self.path.iter().map(PathElement::to_string).collect();
        self.errors.push(match path.is_empty() {
            true => message.to_owned(),
            false => format!("{path}: {message}"),
        });
    }

    fn value(&mut self, shape: Shape<'_>, value: &Value) {
        let kind = shape.schema.map_or(Type::Any, |schema| schema.kind);
        match (kind, value) {
            (_, Value::Null) => {}
            (_, Value::Object(_) | Value::Array(_)) if shape.is_scalar() => {
                self.error(&format!("expected any scalar, got &{{{}}}", gotext::plain(value)));
            }
            (Type::Object | Type::Any, Value::Object(fields)) => self.fields(shape, fields),
            (Type::Array | Type::Any, Value::Array(items)) => self.elements(shape, items),
            (Type::Any, _) => {}
            (Type::Object, other) => self.error(&format!("expected map, got &{{{}}}", gotext::plain(other))),
            (Type::Array, other) => self.error(&format!("expected list, got &{{{}}}", gotext::plain(other))),
            (Type::String | Type::Integer | Type::Number | Type::Boolean, _) => self.scalar(shape, value),
        }
    }

    fn scalar(&mut self, shape: Shape<'_>, value: &Value) {
        let Some(schema) = shape.schema else { return };
        let is_text = schema.format.as_deref().is_none_or(|format| format == "byte");
        let message = match schema.kind {
            Type::Integer | Type::Number if !value.is_number() => {
                format!("expected numeric (int or float), got {}", gotext::type_name(value))
            }
            Type::String if is_text && !value.is_string() => {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", gotext::syntax(value))
            }
            Type::Boolean if !value.is_boolean() => {
                format!("expected boolean, got &{{{}}}", gotext::plain(value))
            }
            Type::String if value.is_object() || value.is_array() => {
                format!("expected any scalar, got &{{{}}}", gotext::plain(value))
            }
            _ => return,
        };
        self.error(&message);
    }

    fn fields(&mut self, shape: Shape<'_>, fields: &Map<String, Value>) {
        for (name, value) in fields {
            let field = shape.field(name);
            self.path.push(PathElement::field(name));
            match field.declared {
                true => self.value(field, value),
                false => self.error("field not declared in schema"),
            }
            self.path.pop();
            if !field.declared {
                return;
            }
        }
    }

    fn elements(&mut self, shape: Shape<'_>, items: &[Value]) {
        let is_atomic = shape.schema.is_none_or(|schema| schema.list == ListType::Atomic);
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let identity = match is_atomic {
                true => PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX)),
                false => match shape.identity(item) {
                    Ok(identity) => identity,
                    Err(message) => return self.error(&format!("element {index}: {message}")),
                },
            };
            if seen.contains(&identity) && self.duplicates == Duplicates::Refused {
                self.error(&format!("duplicate entries for key {identity}"));
            }
            self.path.push(identity.clone());
            self.value(shape.element(), item);
            self.path.pop();
            seen.insert(identity);
        }
    }
}
