//! Implementations of functions and operators. Each charges the cost that Kubernetes charges, and reserves beforehand
//! what it will really copy or allocate.

use std::sync::Arc;

use regex::Regex;

use crate::budget::{Budget, Failure, tenth};
use crate::value::{Key, Value};

mod arithmetic;
mod authorizer;
mod convert;
mod format;
pub(crate) mod lists;
mod network;
mod optional;
mod strings;
mod time;
mod versions;

/// What the library needs of outside: other parts of a server know how to do it.
#[derive(Debug, Clone, Copy)]
pub struct Hooks {
    /// A regular expression as Go reads it.
    pub pattern: fn(&str) -> Result<Arc<Regex>, String>,
    /// A quantity, in billionths.
    pub quantity: fn(&str) -> Option<i128>,
    /// What is wrong with a text of one of Kubernetes' formats; nothing where there is no such format.
    pub format: fn(&str, &str) -> Option<Vec<String>>,
}

/// What an evaluation hands to functions.
#[derive(Clone, Copy)]
pub(crate) struct Context<'b> {
    pub budget: &'b Budget,
    pub hooks: Hooks,
}

/// The value of a call; the target goes before the arguments.
pub(crate) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    budget: &Budget,
    hooks: Hooks,
) -> Result<Value<'a>, Failure> {
    let context = Context { budget, hooks };
    match name {
        "_==_" => equal(args, budget).map(Value::Bool),
        "_!=_" => equal(args, budget).map(|equal| Value::Bool(!equal)),
        "_<_" | "_<=_" | "_>_" | "_>=_" => compare(name, args, budget),
        "@in" => contained(args, budget),
        "_[_]" | "_[?_]" => index(name, args, budget),
        "_+_" | "_-_" | "_*_" | "_/_" | "_%_" | "-_" | "!_" => arithmetic::call(name, args, budget),
        "size" => {
            budget.charge(1)?;
            match args {
                [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
                    let size = value.size();
                    budget.work(tenth(size))?;
                    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
                }
                _ => Err(Failure::no_overload()),
            }
        }
        "type" | "dyn" | "bool" | "int" | "uint" | "double" | "string" | "bytes" => {
            convert::call(name, args, budget)
        }
        _ => library(name, args, context),
    }
}

fn library<'a>(name: &str, args: &[Value<'a>], context: Context<'_>) -> Result<Value<'a>, Failure> {
    let by_target = match args.first() {
        Some(Value::List(list)) => lists::call(name, list, &args[1..], context)?,
        Some(Value::String(text)) => strings::call(name, text, &args[1..], context)?,
        Some(Value::Optional(inner)) => optional::call(name, inner.as_deref(), &args[1..], context.budget)?,
        Some(Value::Timestamp(_) | Value::Duration(_)) => time::call(name, args, context.budget)?,
        Some(Value::AccessCheck(check)) => authorizer::call_on_check(name, check, &args[1..], context)?,
        Some(Value::Decision(decision)) => authorizer::call_on_decision(name, decision, &args[1..], context)?,
        _ => None,
    };
    if let Some(value) = by_target {
        return Ok(value);
    }
    let groups = [lists::global, network::call, versions::call, optional::global, time::global];
    for group in groups {
        if let Some(value) = group(name, args, context)? {
            return Ok(value);
        }
    }
    Err(Failure::no_overload())
}

fn equal(args: &[Value<'_>], budget: &Budget) -> Result<bool, Failure> {
    let [one, two] = args else { return Err(Failure::no_overload()) };
    let is_opaque = matches!(
        one,
        Value::Quantity(_)
            | Value::Ip(_)
            | Value::Cidr(..)
            | Value::Format(_)
            | Value::Url(_)
            | Value::Semver(_)
            | Value::AccessCheck(_)
            | Value::Decision(_)
    );
    budget.charge(if is_opaque { 1 } else { tenth(one.size().min(two.size())) })?;
    one.equals(two, budget)
}

fn compare<'a>(name: &str, args: &[Value<'a>], budget: &Budget) -> Result<Value<'a>, Failure> {
    let [one, two] = args else { return Err(Failure::no_overload()) };
    match one {
        Value::String(_) | Value::Bytes(_) => budget.traverse(one.size().min(two.size()))?,
        _ => budget.charge(1)?,
    }
    let order = one.order(two)?;
    Ok(Value::Bool(order.is_some_and(|order| match name {
        "_<_" => order.is_lt(),
        "_<=_" => order.is_le(),
        "_>_" => order.is_gt(),
        _ => order.is_ge(),
    })))
}

fn contained<'a>(args: &[Value<'a>], budget: &Budget) -> Result<Value<'a>, Failure> {
    match args {
        [value, Value::List(list)] => {
            budget.charge(list.len() as u64)?;
            for item in list.iter() {
                if item.equals(value, budget)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        [value, Value::Map(map)] => {
            budget.charge(1)?;
            Ok(Value::Bool(Key::of(value).is_some_and(|key| map.get(&key).is_some())))
        }
        _ => Err(Failure::no_overload()),
    }
}

fn index<'a>(name: &str, args: &[Value<'a>], budget: &Budget) -> Result<Value<'a>, Failure> {
    budget.charge(1)?;
    let [container, key] = args else { return Err(Failure::no_overload()) };
    if let Value::Optional(inner) = container {
        let found = match inner {
            Some(inner) => element(inner, key).ok(),
            None => None,
        };
        return Ok(Value::Optional(found.map(std::rc::Rc::new)));
    }
    match name {
        "_[_]" => element(container, key),
        _ => match container {
            Value::List(_) | Value::Map(_) => {
                Ok(Value::Optional(element(container, key).ok().map(std::rc::Rc::new)))
            }
            _ => Err(Failure::no_overload()),
        },
    }
}

fn element<'a>(container: &Value<'a>, key: &Value<'a>) -> Result<Value<'a>, Failure> {
    match (container, key) {
        (Value::List(list), key) => {
            let Some(Key::Int(number)) = Key::of(key).map(signed) else { return Err(Failure::no_overload()) };
            let found = usize::try_from(number).ok().and_then(|number| list.get(number));
            found.ok_or_else(|| Failure::wrong(format!("index out of bounds: {number}")))
        }
        (Value::Map(map), key) => {
            let Some(wanted) = Key::of(key) else { return Err(Failure::no_overload()) };
            map.get(&wanted).ok_or_else(|| {
                let shown = match key {
                    Value::String(text) => text.to_string(),
                    Value::Int(number) => number.to_string(),
                    Value::Uint(number) => number.to_string(),
                    Value::Bool(value) => value.to_string(),
                    _ => String::new(),
                };
                Failure::wrong(format!("no such key: {shown}"))
            })
        }
        _ => Err(Failure::no_overload()),
    }
}

fn signed(key: Key) -> Key {
    match key {
        Key::Uint(number) => i64::try_from(number).map_or(Key::Uint(number), Key::Int),
        key => key,
    }
}
