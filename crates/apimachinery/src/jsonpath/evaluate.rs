//! Evaluates a JSONPath against a value. Must not know how paths are written.

use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Filter, Slice, SliceEnd, Step};

/// How many values one evaluation budget at: unions, `..` and filters in filters could otherwise multiply without end.
const VISITED_MAX: usize = 100_000;
/// Objects nest no deeper than this on their way in.
const DEPTH_MAX: usize = 128;

/// What is left of the budget of one evaluation.
pub(super) struct VisitBudget(Cell<usize>);

impl VisitBudget {
    pub fn all() -> Self {
        Self(Cell::new(VISITED_MAX))
    }

    fn take(&self, count: usize) -> Result<(), String> {
        let left =
            self.0.get().checked_sub(count).ok_or_else(|| format!("more than {VISITED_MAX} values"))?;
        self.0.set(left);
        Ok(())
    }
}

/// The values that the steps lead to.
pub(super) fn steps<'a>(
    steps: &'a [Step],
    start: Vec<&'a Value>,
    budget: &VisitBudget,
) -> Result<Vec<&'a Value>, String> {
    let mut values = start;
    for one in steps {
        values = step(one, values, budget)?;
    }
    Ok(values)
}

fn step<'a>(step: &'a Step, values: Vec<&'a Value>, budget: &VisitBudget) -> Result<Vec<&'a Value>, String> {
    let mut results = Vec::new();
    budget.take(values.len().max(1))?;
    match step {
        Step::Field(name) => results.extend(values.into_iter().filter_map(|value| value.get(name))),
        Step::Literal(literal) => results.extend(values.iter().map(|_| literal)),
        Step::Wildcard => {
            for value in values {
                budget.take(size(value))?;
                results.extend(children(value));
            }
        }
        Step::Descend => {
            for value in values {
                descend(value, 0, &mut results, budget)?;
            }
        }
        Step::Slice(slice) => {
            for value in values.into_iter().filter(|value| !value.is_null()) {
                let Value::Array(items) = value else {
                    return Err(format!("{} is not array or slice", type_name(value)));
                };
                let picked = sliced(*slice, items)?;
                budget.take(picked.len())?;
                results.extend(picked);
            }
        }
        Step::Union(paths) => {
            for path in paths {
                budget.take(values.len())?;
                results.extend(steps(path, values.clone(), budget)?);
            }
        }
        Step::Filter(filter) => {
            for value in values {
                let Value::Array(items) = value else {
                    return Err(format!("{value} is not array or slice and cannot be filtered"));
                };
                for item in items {
                    if passes(filter, item, budget)? {
                        results.push(item);
                    }
                }
            }
        }
    }
    Ok(results)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// The value itself and every object and array below it, parents first.
fn descend<'a>(
    value: &'a Value,
    depth: usize,
    results: &mut Vec<&'a Value>,
    budget: &VisitBudget,
) -> Result<(), String> {
    if size(value) == 0 || depth > DEPTH_MAX {
        return Ok(());
    }
    budget.take(size(value))?;
    results.push(value);
    children(value).into_iter().try_for_each(|child| descend(child, depth + 1, results, budget))
}

fn sliced(slice: Slice, items: &[Value]) -> Result<impl ExactSizeIterator<Item = &Value>, String> {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let from_end = |bound: i64| if bound < 0 { bound.saturating_add(length) } else { bound };
    let from = from_end(slice.from);
    let to = match slice.to {
        SliceEnd::Single => from.saturating_add(1),
        SliceEnd::At(bound) => from_end(bound),
        SliceEnd::Last => length,
    };
    let outside = |index: i64| format!("array index out of bounds: index {index}, length {length}");
    if from != to && (from >= length || from < 0) {
        return Err(outside(from));
    }
    if from != to && (to > length || to < 0) {
        return Err(outside(to.saturating_sub(1)));
    }
    if from > to {
        return Err(format!("starting index {from} is greater than ending index {to}"));
    }
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok()).filter(|_| from != to);
    let picked = range.and_then(|(from, to)| items.get(from..to)).unwrap_or_default();
    Ok(picked.iter().step_by(slice.step))
}

fn passes(filter: &Filter, item: &Value, budget: &VisitBudget) -> Result<bool, String> {
    let left = steps(&filter.left, vec![item], budget)?;
    if filter.comparison == Comparison::Exists {
        return Ok(!left.is_empty());
    }
    let right = steps(&filter.right, vec![item], budget)?;
    let (left, right) = match (&left[..], &right[..]) {
        ([], _) | (_, []) => return Ok(false),
        ([left], [right]) => (*left, *right),
        _ => return Err(String::from("can only compare one element at a time")),
    };
    compare(left, filter.comparison, right)
}

fn compare(left: &Value, comparison: Comparison, right: &Value) -> Result<bool, String> {
    let order = order(left, right);
    match (comparison, order) {
        (Comparison::Equal, Some(order)) => Ok(order == Ordering::Equal),
        (Comparison::NotEqual, Some(order)) => Ok(order != Ordering::Equal),
        (_, None) => Err(String::from("incompatible types for comparison")),
        (_, Some(_)) if left.is_boolean() => Err(String::from("invalid type for comparison")),
        (Comparison::Less, Some(order)) => Ok(order == Ordering::Less),
        (Comparison::LessOrEqual, Some(order)) => Ok(order != Ordering::Greater),
        (Comparison::Greater, Some(order)) => Ok(order == Ordering::Greater),
        (Comparison::GreaterOrEqual, Some(order)) => Ok(order != Ordering::Less),
        (Comparison::Exists, Some(_)) => Ok(true),
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        _ => None,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "map[string]interface {}",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        _ => "number",
    }
}
