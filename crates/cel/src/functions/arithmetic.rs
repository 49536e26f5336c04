//! Operators on numbers, text, lists and times. What does not fit is an error, never something else.

use crate::budget::{Budget, Failure};
use crate::functions::time;
use crate::value::{List, Value};

fn overflow(kind: &str) -> Failure {
    Failure::wrong(format!("{kind} overflow"))
}

pub(super) fn call<'a>(name: &str, args: &[Value<'a>], budget: &Budget) -> Result<Value<'a>, Failure> {
    match args {
        [one] => {
            budget.charge(1)?;
            unary(name, one)
        }
        [Value::String(one), Value::String(two)] if name == "_+_" => {
            let size = (one.len() + two.len()) as u64;
            budget.work(size)?;
            budget.traverse(args[0].size() + args[1].size())?;
            Ok(Value::text(format!("{}{}", &**one, &**two)))
        }
        [Value::Bytes(one), Value::Bytes(two)] if name == "_+_" => {
            budget.work((one.len() + two.len()) as u64)?;
            budget.traverse(args[0].size() + args[1].size())?;
            Ok(Value::Bytes([&one[..], &two[..]].concat().into()))
        }
        [Value::List(one), Value::List(two)] if name == "_+_" => joined(one, two, budget),
        [one, two] => {
            budget.charge(1)?;
            binary(name, one, two)
        }
        _ => Err(Failure::no_overload()),
    }
}

/// The sum of two numbers or spans of time.
pub(super) fn sum<'a>(one: &Value<'a>, two: &Value<'a>) -> Result<Value<'a>, Failure> {
    binary("_+_", one, two)
}

fn joined<'a>(one: &List<'a>, two: &List<'a>, budget: &Budget) -> Result<Value<'a>, Failure> {
    budget.charge(1)?;
    // cel keeps both and goes through them in turn. Here they are copied, which must not be for nothing.
    budget.work((one.len() + two.len()) as u64)?;
    Ok(Value::list(one.iter().chain(two.iter()).collect()))
}

fn unary<'a>(name: &str, operand: &Value<'a>) -> Result<Value<'a>, Failure> {
    match (name, operand) {
        ("!_", Value::Bool(value)) => Ok(Value::Bool(!value)),
        ("-_", Value::Int(number)) => number.checked_neg().map(Value::Int).ok_or_else(|| overflow("integer")),
        ("-_", Value::Double(number)) => Ok(Value::Double(-number)),
        _ => Err(Failure::no_overload()),
    }
}

fn binary<'a>(name: &str, one: &Value<'a>, two: &Value<'a>) -> Result<Value<'a>, Failure> {
    match (one, two) {
        (Value::Int(one), Value::Int(two)) => signed(name, *one, *two).map(Value::Int),
        (Value::Uint(one), Value::Uint(two)) => unsigned(name, *one, *two).map(Value::Uint),
        (Value::Double(one), Value::Double(two)) => match name {
            "_+_" => Ok(Value::Double(one + two)),
            "_-_" => Ok(Value::Double(one - two)),
            "_*_" => Ok(Value::Double(one * two)),
            "_/_" => Ok(Value::Double(one / two)),
            _ => Err(Failure::no_overload()),
        },
        _ => time::arithmetic(name, one, two),
    }
}

fn signed(name: &str, one: i64, two: i64) -> Result<i64, Failure> {
    let result = match name {
        "_+_" => one.checked_add(two),
        "_-_" => one.checked_sub(two),
        "_*_" => one.checked_mul(two),
        "_/_" if two == 0 => return Err(Failure::wrong("division by zero")),
        "_%_" if two == 0 => return Err(Failure::wrong("modulus by zero")),
        "_/_" => one.checked_div(two),
        "_%_" => one.checked_rem(two),
        _ => return Err(Failure::no_overload()),
    };
    result.ok_or_else(|| overflow("integer"))
}

fn unsigned(name: &str, one: u64, two: u64) -> Result<u64, Failure> {
    let result = match name {
        "_+_" => one.checked_add(two),
        "_-_" => one.checked_sub(two),
        "_*_" => one.checked_mul(two),
        "_/_" if two == 0 => return Err(Failure::wrong("division by zero")),
        "_%_" if two == 0 => return Err(Failure::wrong("modulus by zero")),
        "_/_" => one.checked_div(two),
        "_%_" => one.checked_rem(two),
        _ => return Err(Failure::no_overload()),
    };
    result.ok_or_else(|| overflow("unsigned integer"))
}
