//! Messages whose JSON is not an object of their fields: times, quantities, schemas-or-something.

use jiff::Timestamp;
use serde_json::Value;

use super::super::DecodeError;
use super::super::messages::Form;
use super::super::wire::{Reader, Wire};

/// The JSON of a message with a form of its own, from the values of its fields in their order.
pub(super) fn render(form: Form, mut values: Vec<Option<Value>>) -> Result<Value, DecodeError> {
    let mut take = |place: usize| values.get_mut(place).and_then(Option::take);
    let first = take(0);
    let second = take(1);
    Ok(match form {
        Form::Time => time(first, None)?,
        Form::MicroTime => time(first, Some(second.unwrap_or_else(|| 0.into())))?,
        Form::Quantity => match first {
            Some(Value::String(text)) if !text.is_empty() => text.into(),
            _ => "0".into(),
        },
        Form::IntOrString => match first.and_then(|kind| kind.as_i64()).unwrap_or(0) {
            0 => second.unwrap_or_else(|| 0.into()),
            1 => take(2).unwrap_or_else(|| "".into()),
            _ => return Err(DecodeError::Malformed("impossible IntOrString.Type")),
        },
        Form::List => first.unwrap_or_else(|| Value::Array(Vec::new())),
        Form::Either => second.or(first).unwrap_or_default(),
        Form::OrBool => match second {
            Some(schema) => schema,
            None => first.unwrap_or(Value::Bool(false)),
        },
        Form::Object | Form::Raw => Value::Null,
    })
}

/// The JSON text inside a message of this form.
pub(super) fn raw(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut text: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        if let (1, Wire::Bytes(raw)) = (number, wire) {
            text = raw;
        }
    }
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(text).map_err(|_| DecodeError::Malformed("embedded JSON is invalid"))
}

/// Seconds since 1970, and for micro times the nanoseconds beside them, of which whole microseconds count.
fn time(seconds: Option<Value>, nanoseconds: Option<Value>) -> Result<Value, DecodeError> {
    const BAD: DecodeError = DecodeError::Malformed("time out of range");
    // The year 1 is how Go says "no time".
    const NONE: i64 = -62_135_596_800;
    let micro = nanoseconds.as_ref().and_then(Value::as_i64).map(|nanoseconds| nanoseconds / 1000);
    let seconds = match seconds.and_then(|seconds| seconds.as_i64()) {
        Some(NONE) if micro.unwrap_or(0) == 0 => return Ok(Value::Null),
        Some(seconds) => seconds,
        None if micro.unwrap_or(0) == 0 => return Ok(Value::Null),
        None => 0,
    };
    let total = i128::from(seconds) * 1_000_000_000 + i128::from(micro.unwrap_or(0)) * 1000;
    let timestamp = Timestamp::from_nanosecond(total).map_err(|_| BAD)?;
    Ok(match micro {
        Some(_) => format!("{timestamp:.6}").into(),
        None => timestamp.to_string().into(),
    })
}
