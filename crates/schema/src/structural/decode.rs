//! Errors and losses of decoding into a typed Go object: wrong JSON types, invalid times and quantities, nulls. Uses
//! the error messages of Go's decoder. Must not check rules on values.

use serde_json::Value;

use super::{DEPTH_MAX, Schema, SchemaRef, Type, child};
use apimachinery::error::ApiError;
use apimachinery::gotext::{json_type, quoted};
use apimachinery::quantity::Quantity;

mod converter;

/// The Go name of a built-in definition by its place in the table, empty where it is not known.
pub type DefinitionName = fn(u16) -> &'static str;

/// Refuses what a typed decoder would refuse: `kind` and `version` are those of the object.
pub fn decode_builtin(
    value: &Value,
    schema: &Schema,
    kind: &str,
    version: &str,
    name_of: DefinitionName,
) -> Result<(), ApiError> {
    decode_fault(value, schema, kind, "", name_of).map_or(Ok(()), |fault| {
        let message = format!("{kind} in version {version:?} cannot be handled as a {kind}: {fault}");
        Err(ApiError::bad_request(message))
    })
}

/// What a typed decoder would say about a value that stands at `path` of the struct `owner`.
pub fn decode_fault(
    value: &Value,
    schema: &Schema,
    owner: &str,
    path: &str,
    name_of: DefinitionName,
) -> Option<String> {
    let place = Place { owner, path };
    Decoder { name_of, wording: Wording::Decoder }.value(value, schema, owner, place, 0)
}

/// What the converter behind strategic merge patches would say about a built-in object.
pub fn converter_fault(
    value: &Value,
    schema: &Schema,
    kind: &str,
    name_of: DefinitionName,
) -> Option<String> {
    let place = Place { owner: kind, path: "" };
    Decoder { name_of, wording: Wording::Converter }.value(value, schema, kind, place, 0)
}

/// Which decoder refuses a value of the wrong type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wording {
    Decoder,
    Converter,
}

/// Where a value stands: the struct that holds the field, and the path of the field.
#[derive(Clone, Copy)]
struct Place<'a> {
    owner: &'a str,
    path: &'a str,
}

struct Decoder {
    name_of: DefinitionName,
    wording: Wording,
}

impl Decoder {
    /// `own` is the Go name of the value's own struct.
    fn value(
        &self,
        value: &Value,
        schema: &Schema,
        own: &str,
        place: Place<'_>,
        depth: usize,
    ) -> Option<String> {
        if depth > DEPTH_MAX {
            return Some(String::from("exceeded max depth"));
        }
        if value.is_null() || (schema.preserve_unknown && schema.properties.is_empty()) {
            return None;
        }
        match (schema.kind, value) {
            _ if schema.int_or_string => int_or_string(value, place, self.wording),
            _ if schema.format.as_deref() == Some("quantity") => {
                Quantity::from_value(value).err().map(|fault| fault.to_string())
            }
            (Type::Any, _) | (Type::Boolean, Value::Bool(_)) => None,
            (Type::Object, Value::Object(fields)) => {
                let mut faults = fields
                    .iter()
                    .filter_map(|(name, field)| self.field(field, schema, name, own, place, depth));
                faults.next()
            }
            (Type::Array, Value::Array(items)) => {
                let element = schema.items.as_ref()?;
                let own = self.name(element);
                items.iter().find_map(|item| self.value(item, element, own, place, depth + 1))
            }
            (Type::String, Value::String(text)) => {
                let fault = text_fault(text, schema.format.as_deref());
                match (self.wording, schema.format.as_deref()) {
                    (Wording::Converter, Some("byte")) => fault.map(|fault| converter::of_bytes(&fault)),
                    _ => fault,
                }
            }
            (Type::Number, Value::Number(_)) => None,
            (Type::Integer, Value::Number(number)) => {
                let wide = number.as_i64();
                let fits = match schema.format.as_deref() {
                    Some("int32") => wide.is_some_and(|wide| i32::try_from(wide).is_ok()),
                    _ => wide.is_some(),
                };
                (!fits).then(|| match (self.wording, number.is_f64()) {
                    (Wording::Converter, true) => converter::refusal(value, schema),
                    _ => mismatch(&format!("number {number}"), place, go_integer(schema)),
                })
            }
            _ if self.wording == Wording::Converter => Some(converter::refusal(value, schema)),
            _ => Some(mismatch(json_type(value), place, &self.go_type(schema, own))),
        }
    }

    fn field(
        &self,
        field: &Value,
        schema: &Schema,
        name: &str,
        own: &str,
        place: Place<'_>,
        depth: usize,
    ) -> Option<String> {
        if let Some(property) = schema.properties.get(name) {
            let path = child(place.path, name);
            let guess = self.name_or_guess(property, own, name);
            return self.value(field, property, &guess, Place { owner: own, path: &path }, depth + 1);
        }
        // The path in Go's error message does not contain map keys.
        let values = schema.values.as_ref()?;
        self.value(field, values, self.name(values), place, depth + 1)
    }

    fn name(&self, reference: &SchemaRef) -> &'static str {
        match reference {
            SchemaRef::Builtin(index) => (self.name_of)(*index),
            SchemaRef::Inline(_) => "",
        }
    }

    /// Without a table of names the three names that follow from the kind are known.
    fn name_or_guess(&self, reference: &SchemaRef, owner: &str, field: &str) -> String {
        match (self.name(reference), field) {
            ("", "metadata") => String::from("ObjectMeta"),
            ("", "spec") => format!("{owner}Spec"),
            ("", "status") => format!("{owner}Status"),
            (name, _) => name.to_owned(),
        }
    }

    fn go_type(&self, schema: &Schema, own: &str) -> String {
        match schema.kind {
            Type::Boolean => String::from("bool"),
            Type::Integer => String::from(go_integer(schema)),
            Type::Number => String::from("float64"),
            Type::String if schema.format.as_deref() == Some("byte") => String::from("[]uint8"),
            Type::String | Type::Any => String::from("string"),
            Type::Array => format!("[]{}", self.child_type(schema.items.as_ref())),
            Type::Object if schema.properties.is_empty() && schema.values.is_some() => {
                format!("map[string]{}", self.child_type(schema.values.as_ref()))
            }
            Type::Object => format!("v1.{own}"),
        }
    }

    fn child_type(&self, reference: Option<&SchemaRef>) -> String {
        reference.map_or_else(
            || String::from("interface {}"),
            |reference| self.go_type(reference, self.name(reference)),
        )
    }
}

fn go_integer(schema: &Schema) -> &'static str {
    if schema.format.as_deref() == Some("int32") { "int32" } else { "int64" }
}

fn mismatch(found: &str, place: Place<'_>, wanted: &str) -> String {
    match place.path {
        "" => format!("json: cannot unmarshal {found} into Go value of type v1.{}", place.owner),
        path => format!(
            "json: cannot unmarshal {found} into Go struct field {}.{path} of type {wanted}",
            place.owner
        ),
    }
}

fn int_or_string(value: &Value, place: Place<'_>, wording: Wording) -> Option<String> {
    match value {
        Value::String(_) => None,
        Value::Number(number) => match number.as_i64().and_then(|wide| i32::try_from(wide).ok()) {
            Some(_) => None,
            None => Some(mismatch(&format!("number {number}"), place, "int32")),
        },
        other if wording == Wording::Converter => Some(converter::of_int_or_string(json_type(other))),
        other => Some(mismatch(json_type(other), place, "int32")),
    }
}

fn text_fault(text: &str, format: Option<&str>) -> Option<String> {
    match format {
        Some("date-time") => time_fault(text),
        Some("byte") => base64_fault(text),
        _ => None,
    }
}

/// Go says where its layout stopped to fit; the usual case is that nothing fits.
fn time_fault(text: &str) -> Option<String> {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return None;
    }
    Some(format!(
        "parsing time {0} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0} as \"2006\"",
        quoted(text)
    ))
}

fn base64_fault(text: &str) -> Option<String> {
    use base64::Engine as _;
    let error = base64::engine::general_purpose::STANDARD.decode(text).err()?;
    let place = match error {
        base64::DecodeError::InvalidByte(place, _) | base64::DecodeError::InvalidLastSymbol(place, _) => {
            place
        }
        _ => text.len(),
    };
    Some(format!("illegal base64 data at input byte {place}"))
}

/// Does to nulls what a typed decoder does: absent fields, and zero values in lists and maps.
pub fn drop_nulls(value: &mut Value, schema: &Schema) {
    drop_nulls_below(value, schema, 0);
}

fn drop_nulls_below(value: &mut Value, schema: &Schema, depth: usize) {
    if depth > DEPTH_MAX || schema.preserve_unknown {
        return;
    }
    match value {
        Value::Object(fields) => fields.retain(|name, field| match schema.properties.get(name.as_str()) {
            Some(_) if field.is_null() => false,
            Some(property) => {
                drop_nulls_below(field, property, depth + 1);
                true
            }
            None => {
                if let Some(values) = &schema.values {
                    zero_or_below(field, values, depth + 1);
                }
                true
            }
        }),
        Value::Array(items) => {
            let Some(element) = &schema.items else { return };
            items.iter_mut().for_each(|item| zero_or_below(item, element, depth + 1));
        }
        _ => {}
    }
}

fn zero_or_below(value: &mut Value, schema: &Schema, depth: usize) {
    match (value.is_null(), schema.kind) {
        (false, _) => drop_nulls_below(value, schema, depth),
        (true, _) if schema.format.as_deref() == Some("quantity") => *value = "0".into(),
        (true, _) if schema.int_or_string => *value = 0.into(),
        (true, Type::String) => *value = "".into(),
        (true, Type::Integer | Type::Number) => *value = 0.into(),
        (true, Type::Boolean) => *value = false.into(),
        (true, Type::Object) if !schema.properties.is_empty() => *value = serde_json::json!({}),
        // A null list or map inside a list stays null in Go's JSON too.
        (true, _) => {}
    }
}
