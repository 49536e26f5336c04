//! Functions on lists and sets.

use std::cmp::Ordering;

use super::Context;
use crate::budget::{Budget, Failure, tenth};
use crate::value::{List, Value};

/// How deep lists are flattened at most.
const FLATTEN_MAX: i64 = 100;

/// The value of a function on a list, if there is one of this name.
pub(super) fn call<'a>(
    name: &str,
    list: &List<'a>,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    let budget = context.budget;
    let size = list.len() as u64;
    let value = match (name, args) {
        ("isSorted", []) => {
            traverse(list, budget)?;
            Value::Bool(is_sorted(list)?)
        }
        ("sum" | "min" | "max", []) => {
            traverse(list, budget)?;
            gathered(name, list, budget)?
        }
        ("indexOf" | "lastIndexOf", [wanted]) => {
            traverse(list, budget)?;
            index_of(name, list, wanted, budget)?
        }
        ("join", []) => join(list, "", budget)?,
        ("join", [Value::String(by)]) => join(list, by, budget)?,
        ("first", []) => optional(list.get(0), budget)?,
        ("last", []) => optional(list.len().checked_sub(1).and_then(|last| list.get(last)), budget)?,
        ("slice", [Value::Int(begin), Value::Int(end)]) => {
            budget.charge(1)?;
            budget.work(size)?;
            slice(list, *begin, *end)?
        }
        ("reverse", []) => {
            budget.charge(size.max(1))?;
            let mut items: Vec<Value<'a>> = list.iter().collect();
            items.reverse();
            Value::list(items)
        }
        ("distinct", []) => distinct(list, budget)?,
        ("sort", []) => {
            let items: Vec<Value<'a>> = list.iter().collect();
            sort_by(items.clone(), &items, budget)?
        }
        ("flatten", []) => flattened(list, 1, budget)?,
        ("flatten", [Value::Int(depth)]) if (0..=FLATTEN_MAX).contains(depth) => {
            flattened(list, *depth, budget)?
        }
        ("unwrapOpt" | "optional.unwrap", []) => unwrapped(list, budget)?,
        _ => return Ok(None),
    };
    Ok(Some(value))
}

/// Functions that are called without a target.
pub(super) fn global<'a>(
    name: &str,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    let budget = context.budget;
    match (name, args) {
        ("lists.range", [Value::Int(end)]) => {
            let size = u64::try_from(*end).unwrap_or(0);
            budget.charge(size.saturating_add(10))?;
            Ok(Some(Value::list((0..*end).map(Value::Int).collect())))
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [Value::List(one), Value::List(two)]) => {
            budget.charge((one.len() as u64).saturating_mul(two.len() as u64).max(1))?;
            Ok(Some(Value::Bool(match name {
                "sets.contains" => covers(one, two, budget)?,
                "sets.intersects" => intersects(one, two, budget)?,
                _ => covers(one, two, budget)? && covers(two, one, budget)?,
            })))
        }
        _ => Ok(None),
    }
}

/// One look at every element, and at every character of those that are text.
fn traverse(list: &List<'_>, budget: &Budget) -> Result<(), Failure> {
    let text =
        |item: &Value<'_>| matches!(item, Value::String(_) | Value::Bytes(_)).then(|| tenth(item.size()));
    let more: u64 = list.iter().filter_map(|item| text(&item)).sum();
    budget.charge((list.len() as u64).saturating_add(more))
}

fn is_sorted(list: &List<'_>) -> Result<bool, Failure> {
    let mut before: Option<Value<'_>> = None;
    for item in list.iter() {
        if let Some(before) = &before
            && before.order(&item)?.is_some_and(Ordering::is_gt)
        {
            return Ok(false);
        }
        before = Some(item);
    }
    Ok(true)
}

fn gathered<'a>(name: &str, list: &List<'a>, budget: &Budget) -> Result<Value<'a>, Failure> {
    let is_summed = |item: &Value<'_>| {
        matches!(item, Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_))
    };
    if name == "sum" && !list.iter().all(|item| is_summed(&item)) {
        return Err(Failure::no_overload());
    }
    let mut all = list.iter();
    let Some(mut result) = all.next() else {
        return match name {
            "sum" => Ok(Value::Int(0)),
            _ => Err(Failure::wrong(format!("{name} called on empty list"))),
        };
    };
    for item in all {
        budget.work(1)?;
        result = match name {
            "sum" => super::arithmetic::sum(&result, &item)?,
            _ => match (item.order(&result)?, name) {
                (Some(Ordering::Less), "min") | (Some(Ordering::Greater), "max") => item,
                _ => result,
            },
        };
    }
    Ok(result)
}

fn index_of<'a>(
    name: &str,
    list: &List<'a>,
    wanted: &Value<'a>,
    budget: &Budget,
) -> Result<Value<'a>, Failure> {
    let mut found = -1;
    for (index, item) in list.iter().enumerate() {
        if item.equals(wanted, budget)? {
            found = i64::try_from(index).unwrap_or(i64::MAX);
            if name == "indexOf" {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn join<'a>(list: &List<'a>, by: &str, budget: &Budget) -> Result<Value<'a>, Failure> {
    let mut made = String::new();
    for (index, item) in list.iter().enumerate() {
        let Value::String(text) = item else { return Err(Failure::no_overload()) };
        budget.work((text.len() + by.len()) as u64)?;
        if index > 0 {
            made.push_str(by);
        }
        made.push_str(&text);
    }
    budget.charge((made.chars().count() as u64).saturating_mul(2).div_ceil(10))?;
    Ok(Value::text(made))
}

fn optional<'a>(value: Option<Value<'a>>, budget: &Budget) -> Result<Value<'a>, Failure> {
    budget.charge(1)?;
    Ok(Value::Optional(value.map(std::rc::Rc::new)))
}

fn slice<'a>(list: &List<'a>, begin: i64, end: i64) -> Result<Value<'a>, Failure> {
    let (Ok(from), Ok(to)) = (usize::try_from(begin), usize::try_from(end)) else {
        return Err(Failure::wrong(format!("cannot slice({begin}, {end}), negative indexes not supported")));
    };
    if from > to || to > list.len() {
        return Err(Failure::wrong(format!("cannot slice({begin}, {end}), list is length {}", list.len())));
    }
    Ok(Value::list((from..to).filter_map(|index| list.get(index)).collect()))
}

fn distinct<'a>(list: &List<'a>, budget: &Budget) -> Result<Value<'a>, Failure> {
    budget.charge((list.len() as u64).max(1))?;
    let mut seen: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let mut known = false;
        for other in &seen {
            // Every pair is charged: this is where a long list costs.
            budget.charge(1)?;
            known = known || other.equals(&item, budget)?;
        }
        if !known {
            seen.push(item);
        }
    }
    Ok(Value::list(seen))
}

/// The items in the order of their keys; equal ones stay as they were.
pub(crate) fn sort_by<'a>(
    items: Vec<Value<'a>>,
    keys: &[Value<'a>],
    budget: &Budget,
) -> Result<Value<'a>, Failure> {
    let count = items.len() as u64;
    budget.charge(count.saturating_mul(count).saturating_mul(2).saturating_add(10))?;
    // Keys that cannot be compared are found first, so that sorting itself cannot fail.
    for pair in keys.windows(2) {
        pair[0].order(&pair[1])?;
    }
    let mut paired: Vec<(Value<'a>, &Value<'a>)> = items.into_iter().zip(keys).collect();
    paired.sort_by(|(_, one), (_, two)| one.order(two).ok().flatten().unwrap_or(Ordering::Equal));
    Ok(Value::list(paired.into_iter().map(|(item, _)| item).collect()))
}

fn flattened<'a>(list: &List<'a>, depth: i64, budget: &Budget) -> Result<Value<'a>, Failure> {
    let mut items: Vec<Value<'a>> = list.iter().collect();
    for _ in 0..depth {
        budget.charge((items.len() as u64).max(1))?;
        if !items.iter().any(|item| matches!(item, Value::List(_))) {
            break;
        }
        let mut next = Vec::new();
        for item in items {
            match item {
                Value::List(inner) => {
                    budget.work(inner.len() as u64)?;
                    next.extend(inner.iter());
                }
                other => next.push(other),
            }
        }
        items = next;
    }
    Ok(Value::list(items))
}

fn unwrapped<'a>(list: &List<'a>, budget: &Budget) -> Result<Value<'a>, Failure> {
    budget.charge((list.len() as u64).max(1))?;
    let mut made = Vec::new();
    for item in list.iter() {
        let Value::Optional(inner) = item else { return Err(Failure::no_overload()) };
        made.extend(inner.map(|inner| Value::clone(&inner)));
    }
    Ok(Value::list(made))
}

fn has(list: &List<'_>, wanted: &Value<'_>, budget: &Budget) -> Result<bool, Failure> {
    for item in list.iter() {
        if item.equals(wanted, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn covers(one: &List<'_>, two: &List<'_>, budget: &Budget) -> Result<bool, Failure> {
    for item in two.iter() {
        if !has(one, &item, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(one: &List<'_>, two: &List<'_>, budget: &Budget) -> Result<bool, Failure> {
    for item in two.iter() {
        if has(one, &item, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}
