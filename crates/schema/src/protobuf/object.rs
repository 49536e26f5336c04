//! Messages into JSON by Go's rules: a pointer keeps an explicit zero, a plain value drops it where
//! `omitempty` says so, and a plain struct is always there.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::DecodeError;
use super::messages::{Field, Form, Message, Shape, Table, ValueType};
use super::wire::{Reader, Wire};

mod form;

/// Messages within messages; objects need a tenth, generated schemas of definitions up to half.
const DEPTH_MAX: usize = 100;
/// Values in one body: small messages unfold into larger objects, so the size of the body alone is no bound.
const VALUES_MAX: usize = 500_000;

/// Decodes one body.
pub(super) struct Decoder<'t> {
    table: &'t Table,
    values_left: usize,
}

impl<'t> Decoder<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        Self { table, values_left: VALUES_MAX }
    }

    /// The JSON of one message.
    pub(super) fn message(&mut self, index: usize, bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
        if depth > DEPTH_MAX {
            return Err(DecodeError::TooDeep);
        }
        let table = self.table;
        let message = table.message(index).ok_or(DecodeError::Malformed("no such message"))?;
        if message.form == Form::Raw {
            return form::raw(bytes);
        }
        let values = self.fields(message, bytes, depth)?;
        match message.form {
            Form::Object => self.object(message, values, depth),
            other => form::render(other, values),
        }
    }

    /// The values of a message's fields, in the order of its fields.
    fn fields(
        &mut self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Vec<Option<Value>>, DecodeError> {
        let mut values = vec![None; message.fields.len()];
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.next()? {
            let Some(position) = message.position(number) else { continue };
            let slot = &mut values[position];
            let field = &message.fields[position];
            match field.shape {
                Shape::One => *slot = Some(self.value(field.value, wire, depth)?),
                Shape::Repeated => self.repeated(field.value, wire, slot, depth)?,
                Shape::Map => self.entry(field.value, wire, slot, depth)?,
            }
        }
        Ok(values)
    }

    fn repeated(
        &mut self,
        kind: ValueType,
        wire: Wire<'_>,
        slot: &mut Option<Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let Value::Array(elements) = slot.get_or_insert_with(|| Value::Array(Vec::new())) else {
            return Ok(());
        };
        match (kind, wire) {
            // Numbers may also come packed, one after the other in one run of bytes.
            (ValueType::Int32 | ValueType::Int64 | ValueType::Bool, Wire::Bytes(packed)) => {
                let mut reader = Reader::new(packed);
                while !reader.is_empty() {
                    let number = Wire::Varint(reader.varint()?);
                    elements.push(self.value(kind, number, depth)?);
                }
            }
            _ => elements.push(self.value(kind, wire, depth)?),
        }
        Ok(())
    }

    fn entry(
        &mut self,
        kind: ValueType,
        wire: Wire<'_>,
        slot: &mut Option<Value>,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let Wire::Bytes(bytes) = wire else { return Err(WRONG_WIRE) };
        let mut key = String::new();
        let mut value = None;
        let mut reader = Reader::new(bytes);
        while let Some(part) = reader.next()? {
            match part {
                (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
                (2, wire) => value = Some(self.value(kind, wire, depth)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.zero(kind, depth)?,
        };
        if let Value::Object(entries) = slot.get_or_insert_with(|| Value::Object(Map::new())) {
            entries.insert(key, value);
        }
        Ok(())
    }

    fn value(&mut self, kind: ValueType, wire: Wire<'_>, depth: usize) -> Result<Value, DecodeError> {
        self.values_left = self.values_left.checked_sub(1).ok_or(DecodeError::TooLarge)?;
        match (kind, wire) {
            (ValueType::String, Wire::Bytes(text)) => Ok(String::from_utf8_lossy(text).into()),
            (ValueType::Bytes, Wire::Bytes(bytes)) => Ok(STANDARD.encode(bytes).into()),
            (ValueType::Bool, Wire::Varint(number)) => Ok((number != 0).into()),
            // Protobuf sends negative numbers as 64-bit two's complement; int32 keeps the low half.
            (ValueType::Int32, Wire::Varint(number)) => Ok((number as i32).into()),
            (ValueType::Int64, Wire::Varint(number)) => Ok((number as i64).into()),
            (ValueType::Double, Wire::Fixed64(bits)) => double(f64::from_bits(bits)),
            (ValueType::Message(index), Wire::Bytes(bytes)) => self.message(index, bytes, depth + 1),
            _ => Err(WRONG_WIRE),
        }
    }

    /// What Go holds where nothing was sent.
    fn zero(&mut self, kind: ValueType, depth: usize) -> Result<Value, DecodeError> {
        self.values_left = self.values_left.checked_sub(1).ok_or(DecodeError::TooLarge)?;
        match kind {
            ValueType::String | ValueType::Bytes => Ok("".into()),
            ValueType::Bool => Ok(false.into()),
            ValueType::Int32 | ValueType::Int64 | ValueType::Double => Ok(0.into()),
            ValueType::Message(index) => self.message(index, &[], depth + 1),
        }
    }

    fn object(
        &mut self,
        message: &Message,
        values: Vec<Option<Value>>,
        depth: usize,
    ) -> Result<Value, DecodeError> {
        let mut object = Map::new();
        for (field, value) in message.fields.iter().zip(values) {
            let Some(value) = self.written(field, value, depth)? else { continue };
            match value {
                Value::Object(fields) if field.inline => object.extend(fields),
                value => {
                    object.insert(field.json.to_owned(), value);
                }
            }
        }
        Ok(Value::Object(object))
    }

    /// What Go's JSON writes for a field, if anything.
    fn written(
        &mut self,
        field: &Field,
        value: Option<Value>,
        depth: usize,
    ) -> Result<Option<Value>, DecodeError> {
        let plain = field.shape == Shape::One && !field.pointer;
        let absent = value.is_none();
        let value = match (value, field.value) {
            (Some(value), _) => value,
            (None, ValueType::Bytes) => Value::Null,
            (None, kind) if plain => self.zero(kind, depth)?,
            (None, _) => Value::Null,
        };
        let empty = match field.value {
            ValueType::Message(_) if plain => field.omit_zero && value.is_null(),
            _ if plain => field.omit_empty && is_zero(&value),
            _ => field.omit_empty && absent,
        };
        Ok((!empty).then_some(value))
    }
}

const WRONG_WIRE: DecodeError = DecodeError::Malformed("wrong wireType");

pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// Go writes a whole float without a point, so that it reads as an integer.
fn double(value: f64) -> Result<Value, DecodeError> {
    let exact = 2_f64.powi(53);
    if value.fract() == 0.0 && value.abs() < exact {
        return Ok((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number).ok_or(DecodeError::Malformed("a number that JSON cannot hold"))
}
