//! Operators on numbers, strings, lists and timestamps. Overflow is an error and never wraps.

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
        (Value::Int(one), Value::Int(two)) => whole(name, *one, *two, "integer").map(Value::Int),
        (Value::Uint(one), Value::Uint(two)) => whole(name, *one, *two, "unsigned integer").map(Value::Uint),
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

/// Whole numbers are calculated with room to spare; what does not fit where it came from has overflowed.
fn whole<N: Into<i128> + TryFrom<i128>>(name: &str, one: N, two: N, kind: &str) -> Result<N, Failure> {
    let (one, two) = (one.into(), two.into());
    let fit = |number: Option<i128>| number.and_then(|number| N::try_from(number).ok());
    let result = match name {
        "_+_" => fit(one.checked_add(two)),
        "_-_" => fit(one.checked_sub(two)),
        "_*_" => fit(one.checked_mul(two)),
        "_/_" if two == 0 => return Err(Failure::wrong("division by zero")),
        "_%_" if two == 0 => return Err(Failure::wrong("modulus by zero")),
        "_/_" => fit(one.checked_div(two)),
        // The smallest number has no remainder by -1, because it cannot be divided by it.
        "_%_" => fit(one.checked_div(two)).and_then(|_| fit(one.checked_rem(two))),
        _ => return Err(Failure::no_overload()),
    };
    result.ok_or_else(|| overflow(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, one: i64, two: i64, expected: Option<i64>) {
        assert_eq!(whole(name, one, two, "integer").ok(), expected, "{one} {name} {two}");
    }

    #[test]
    fn integer_overflow_is_an_error() {
        check("_+_", i64::MAX, 1, None);
        check("_-_", i64::MIN, 1, None);
        check("_*_", i64::MIN, -1, None);
        check("_/_", i64::MIN, -1, None);
        check("_%_", i64::MIN, -1, None);
        check("_%_", -7, 2, Some(-1));
        check("_/_", -7, 2, Some(-3));
        check("_/_", 1, 0, None);
        assert!(whole("_-_", 1_u64, 2, "unsigned integer").is_err(), "nothing is below nothing");
        assert!(whole("_*_", u64::MAX, u64::MAX, "unsigned integer").is_err());
    }
}
