//! The rules of one node that need no walk: enums, lengths, patterns, bounds and counts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::outcome::{Failure, Outcome};
use super::{formats, pattern};
use crate::structural::Rules;
use apimachinery::error::FieldErrorKind;
use apimachinery::gotext::{float, quoted};

/// `enum`.
pub(super) fn enumeration(value: &Value, rules: Option<&Rules>, path: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let allowed = rules.map(|rules| rules.one_of_values.as_slice()).unwrap_or_default();
    if allowed.is_empty() || allowed.iter().any(|known| !known.is_null() && same(known, value)) {
        return outcome;
    }
    let texts: Vec<String> = allowed.iter().map(plain).collect();
    let list: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    let sentence = format!("{path} in body should be one of [{}]", texts.join(" "));
    let failure = Failure::new(FieldErrorKind::NotSupported, path, value.clone(), sentence);
    outcome.fail(failure.with_detail(format!("supported values: {}", list.join(", "))));
    outcome
}

/// Numbers are the same if they are worth the same.
fn same(left: &Value, right: &Value) -> bool {
    left == right || (left.is_number() && right.is_number() && left.as_f64() == right.as_f64())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Length and pattern; only the first failure is reported.
pub(super) fn string(text: &str, rules: Option<&Rules>, path: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(rules) = rules else { return outcome };
    let length = text.chars().count() as u64;
    if let Some(limit) = rules.max_length.filter(|limit| length > *limit) {
        let sentence = format!("{path} in body should be at most {limit} chars long");
        let unit = if limit == 1 { "byte" } else { "bytes" };
        let failure = Failure::new(FieldErrorKind::TooLong, path, Value::Null, sentence);
        outcome.fail(failure.with_detail(format!("may not be more than {limit} {unit}")));
    } else if let Some(limit) = rules.min_length.filter(|limit| length < *limit) {
        let sentence = format!("{path} in body should be at least {limit} chars long");
        outcome.fail(Failure::new(FieldErrorKind::Invalid, path, text, sentence));
    } else if let Some(source) = rules.pattern.as_deref().filter(|source| !source.is_empty())
        && !pattern::matches(source, text)
    {
        let sentence = format!("{path} in body should match '{source}'");
        outcome.fail(Failure::new(FieldErrorKind::Invalid, path, text, sentence));
    }
    outcome
}

/// `format` of a string.
pub(super) fn format(text: &str, format: &str, path: &str) -> Outcome {
    let mut outcome = Outcome::default();
    if !formats::holds(format, text) {
        let sentence = format!("{path} in body must be of type {format}: {}", quoted(text));
        outcome.fail(Failure::new(FieldErrorKind::TypeInvalid, path, text, sentence));
    }
    outcome
}

/// `multipleOf`, `minimum` and `maximum`. Integers are compared with the bound cut to an integer.
pub(super) fn number(value: &Value, rules: Option<&Rules>, path: &str) -> Outcome {
    let mut outcome = Outcome { matches: 1, ..Outcome::default() };
    let Some(rules) = rules else { return outcome };
    // What does not fit 64 signed bits is a float.
    let whole = value.as_i64();
    let number = value.as_f64().unwrap_or_default();
    // A fractional factor of an integer is cut too, to nothing if need be: so does kube-apiserver.
    let factor = rules.multiple_of.map(|factor| if whole.is_some() { factor.trunc() } else { factor });
    if let Some(factor) = factor.filter(|factor| *factor <= 0.0) {
        let factor = float(factor);
        let sentence = format!("factor MultipleOf declared for {path} must be positive: {factor}");
        outcome.fail(Failure::new(FieldErrorKind::Invalid, path, json_number(&factor), sentence));
    }
    let mut fail = |words: &str, bound: f64| {
        let bound = whole.map_or_else(|| float(bound), |_| (bound as i64).to_string());
        let sentence = format!("{path} in body should be {words} {bound}");
        outcome.fail(Failure::new(FieldErrorKind::Invalid, path, value.clone(), sentence));
    };
    if let Some(factor) = factor.filter(|factor| *factor > 0.0)
        && !is_multiple(whole, number, factor)
    {
        fail("a multiple of", factor);
    }
    let compare = |bound: f64| match whole {
        Some(whole) => whole.cmp(&(bound as i64)),
        None => number.total_cmp(&bound),
    };
    if let Some(bound) = rules.minimum {
        match (rules.exclusive_minimum, compare(bound)) {
            (true, order) if order.is_le() => fail("greater than", bound),
            (false, order) if order.is_lt() => fail("greater than or equal to", bound),
            _ => {}
        }
    }
    if let Some(bound) = rules.maximum {
        match (rules.exclusive_maximum, compare(bound)) {
            (true, order) if order.is_ge() => fail("less than", bound),
            (false, order) if order.is_gt() => fail("less than or equal to", bound),
            _ => {}
        }
    }
    outcome
}

fn json_number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn is_multiple(whole: Option<i64>, number: f64, factor: f64) -> bool {
    match whole {
        Some(whole) => whole % (factor as i64) == 0,
        None if factor < 1.0 => is_near_integer(1.0 / factor * number),
        None => is_near_integer(number / factor),
    }
}

/// Whether a float is an integer to Kubernetes, which allows for rounding in the ninth digit.
pub(super) fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(is_near_integer)
}

fn is_near_integer(number: f64) -> bool {
    const LIMIT: f64 = 9_007_199_254_740_991.0;
    if !(-LIMIT..=LIMIT).contains(&number) {
        return false;
    }
    let rest = (number - number.trunc()).abs();
    rest == 0.0 || (number > 1.0 && rest / (number + number.trunc()) < 1e-9)
}

/// `minItems`, `maxItems` and `uniqueItems`.
pub(super) fn list_bounds(items: &[Value], rules: &Rules, path: &str) -> Vec<Failure> {
    let mut failures = Vec::new();
    let count = items.len() as u64;
    if let Some(limit) = rules.min_items.filter(|limit| count < *limit) {
        let sentence = format!("{path} in body should have at least {limit} items");
        failures.push(Failure::new(FieldErrorKind::Invalid, path, count, sentence));
    }
    if let Some(limit) = rules.max_items.filter(|limit| count > *limit) {
        let sentence = format!("{path} in body should have at most {limit} items");
        failures.push(too_many(path, count, limit, sentence));
    }
    if rules.unique_items && items.iter().map(Value::to_string).collect::<BTreeSet<_>>().len() < items.len() {
        let sentence = format!("{path} in body shouldn't contain duplicates");
        failures.push(Failure::new(FieldErrorKind::Invalid, path, "", sentence));
    }
    failures
}

/// `minProperties` and `maxProperties`.
pub(super) fn object_bounds(fields: &Map<String, Value>, rules: &Rules, path: &str) -> Vec<Failure> {
    let mut failures = Vec::new();
    let count = fields.len() as u64;
    if let Some(limit) = rules.min_properties.filter(|limit| count < *limit) {
        let sentence = format!("{path} in body should have at least {limit} properties");
        failures.push(Failure::new(FieldErrorKind::Invalid, path, count, sentence));
    }
    if let Some(limit) = rules.max_properties.filter(|limit| count > *limit) {
        let sentence = format!("{path} in body should have at most {limit} properties");
        failures.push(too_many(path, count, limit, sentence));
    }
    failures
}

fn too_many(path: &str, count: u64, limit: u64, sentence: String) -> Failure {
    let unit = if limit == 1 { "item" } else { "items" };
    let failure = Failure::new(FieldErrorKind::TooMany, path, count, sentence);
    failure.with_detail(format!("must have at most {limit} {unit}"))
}
