//! Type conversions: `int("5")`, `string(1.5)`, and `type()`.

use crate::budget::{Budget, Failure};
use crate::time_text;
use crate::value::Value;

pub(super) fn call<'a>(name: &str, args: &[Value<'a>], budget: &Budget) -> Result<Value<'a>, Failure> {
    let [value] = args else { return Err(Failure::no_overload()) };
    match (name, value) {
        ("string", Value::Bytes(_)) | ("bytes", Value::String(_)) => {
            budget.work(value.size())?;
            budget.traverse(value.size())?;
        }
        _ => budget.charge(1)?,
    }
    match name {
        "type" => Ok(Value::Type(value.type_name())),
        "dyn" => Ok(value.clone()),
        "bool" => to_bool(value),
        "int" => to_int(value),
        "uint" => to_uint(value),
        "double" => to_double(value),
        "string" => to_string(value),
        _ => to_bytes(value),
    }
}

fn conversion(kind: &str) -> Failure {
    Failure::wrong(format!("type conversion error from 'string' to '{kind}'"))
}

fn to_bool<'a>(value: &Value<'a>) -> Result<Value<'a>, Failure> {
    match value {
        Value::Bool(value) => Ok(Value::Bool(*value)),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(conversion("bool")),
        },
        _ => Err(Failure::no_overload()),
    }
}

fn to_int<'a>(value: &Value<'a>) -> Result<Value<'a>, Failure> {
    let range = || Failure::wrong("integer overflow");
    match value {
        Value::Int(number) => Ok(Value::Int(*number)),
        Value::Uint(number) => i64::try_from(*number).map(Value::Int).map_err(|_| range()),
        Value::Double(number) => match number.is_finite() && number.abs() < 9_223_372_036_854_775_000.0 {
            true => Ok(Value::Int(*number as i64)),
            false => Err(range()),
        },
        Value::String(text) => text.parse().map(Value::Int).map_err(|_| conversion("int")),
        Value::Timestamp(moment) => Ok(Value::Int(moment.as_second())),
        Value::Duration(nanoseconds) => Ok(Value::Int(*nanoseconds)),
        _ => Err(Failure::no_overload()),
    }
}

fn to_uint<'a>(value: &Value<'a>) -> Result<Value<'a>, Failure> {
    let range = || Failure::wrong("unsigned integer overflow");
    match value {
        Value::Uint(number) => Ok(Value::Uint(*number)),
        Value::Int(number) => u64::try_from(*number).map(Value::Uint).map_err(|_| range()),
        Value::Double(number) => match (0.0..18_446_744_073_709_550_000.0).contains(number) {
            true => Ok(Value::Uint(*number as u64)),
            false => Err(range()),
        },
        Value::String(text) => text.parse().map(Value::Uint).map_err(|_| conversion("uint")),
        _ => Err(Failure::no_overload()),
    }
}

fn to_double<'a>(value: &Value<'a>) -> Result<Value<'a>, Failure> {
    match value {
        Value::Double(number) => Ok(Value::Double(*number)),
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::String(text) => text.parse().map(Value::Double).map_err(|_| conversion("double")),
        _ => Err(Failure::no_overload()),
    }
}

fn to_string<'a>(value: &Value<'a>) -> Result<Value<'a>, Failure> {
    let text = match value {
        Value::String(_) => return Ok(value.clone()),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Bytes(bytes) => {
            let invalid = |_| Failure::wrong("invalid UTF-8 in bytes, cannot convert to string");
            String::from_utf8(bytes.to_vec()).map_err(invalid)?
        }
        Value::Timestamp(moment) => moment.to_string(),
        Value::Duration(nanoseconds) => time_text::seconds_text(*nanoseconds),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(address, bits) => format!("{address}/{bits}"),
        _ => return Err(Failure::no_overload()),
    };
    Ok(Value::text(text))
}

fn to_bytes<'a>(value: &Value<'a>) -> Result<Value<'a>, Failure> {
    match value {
        Value::Bytes(_) => Ok(value.clone()),
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        _ => Err(Failure::no_overload()),
    }
}
