//! Optional values.

use std::rc::Rc;

use super::Context;
use crate::budget::{Budget, Failure};
use crate::value::Value;

/// The value of a function on an optional, if there is one of this name.
pub(super) fn call<'a>(
    name: &str,
    inner: Option<&Value<'a>>,
    args: &[Value<'a>],
    budget: &Budget,
) -> Result<Option<Value<'a>>, Failure> {
    let value = match (name, args) {
        ("hasValue", []) => Value::Bool(inner.is_some()),
        ("value", []) => inner.cloned().ok_or_else(|| Failure::wrong("optional.none() dereference"))?,
        ("or", [other @ Value::Optional(_)]) => {
            inner.map_or_else(|| other.clone(), |inner| Value::some(inner.clone()))
        }
        ("orValue", [other]) => inner.unwrap_or(other).clone(),
        _ => return Ok(None),
    };
    budget.charge(1)?;
    Ok(Some(value))
}

/// `optional.of` and its kin.
pub(super) fn global<'a>(
    name: &str,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    let value = match (name, args) {
        ("optional.of", [value]) => Value::some(value.clone()),
        ("optional.none", []) => Value::Optional(None),
        ("optional.ofNonZeroValue", [value]) => {
            Value::Optional((!is_zero(value)).then(|| Rc::new(value.clone())))
        }
        _ => return Ok(None),
    };
    context.budget.charge(1)?;
    Ok(Some(value))
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => true,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        Value::Optional(inner) => inner.is_none(),
        _ => false,
    }
}
