//! Quantities, semantic versions and named formats.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Context;
use crate::budget::Failure;
use crate::value::{Semver, Value};

const BILLION: i128 = 1_000_000_000;

/// The formats of Kubernetes that have names.
const FORMATS: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

/// The value of a function on quantities, versions or formats, if there is one of this name.
pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    let budget = context.budget;
    let value = match (name, args) {
        ("quantity" | "isQuantity", [Value::String(text)]) => {
            budget.traverse(text.chars().count() as u64)?;
            match ((context.hooks.quantity)(text), name) {
                (read, "isQuantity") => Value::Bool(read.is_some()),
                (Some(amount), _) => Value::Quantity(amount),
                (None, _) => return Err(Failure::wrong(format!("invalid quantity: {:?}", &**text))),
            }
        }
        ("semver" | "isSemver", [Value::String(text), rest @ ..]) => {
            budget.traverse(text.chars().count() as u64)?;
            let lenient = matches!(rest, [Value::Bool(true)]);
            match (semver(text, lenient), name) {
                (read, "isSemver") => Value::Bool(read.is_some()),
                (Some(version), _) => Value::Semver(Rc::new(version)),
                (None, _) => return Err(Failure::wrong(format!("invalid semantic version: {:?}", &**text))),
            }
        }
        (_, [Value::Quantity(amount), rest @ ..]) => {
            budget.charge(1)?;
            return of_quantity(name, *amount, rest);
        }
        (_, [Value::Semver(version), rest @ ..]) => {
            budget.charge(1)?;
            return Ok(of_version(name, version, rest));
        }
        ("format.named", [Value::String(name)]) => {
            budget.charge(1)?;
            let known = FORMATS.into_iter().find(|known| **known == **name);
            Value::Optional(known.map(|known| Rc::new(Value::Format(known))))
        }
        ("validate", [Value::Format(format), Value::String(text)]) => {
            let size = text.chars().count() as u64;
            budget.charge(size.saturating_add(1).div_ceil(10).saturating_mul(32))?;
            let faults = (context.hooks.format)(format, text).unwrap_or_default();
            let faults: Vec<Value<'a>> = faults.into_iter().map(Value::text).collect();
            Value::Optional((!faults.is_empty()).then(|| Rc::new(Value::list(faults))))
        }
        (name, []) => {
            match name.strip_prefix("format.").and_then(|name| FORMATS.into_iter().find(|f| *f == name)) {
                Some(format) => {
                    budget.charge(1)?;
                    Value::Format(format)
                }
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn of_quantity<'a>(name: &str, amount: i128, rest: &[Value<'a>]) -> Result<Option<Value<'a>>, Failure> {
    let other = match rest {
        [Value::Quantity(other)] => Some(*other),
        [Value::Int(whole)] => Some(i128::from(*whole) * BILLION),
        _ => None,
    };
    let whole = (amount % BILLION == 0).then(|| i64::try_from(amount / BILLION).ok()).flatten();
    let value = match (name, other) {
        ("sign", None) => Value::Int(i64::try_from(amount.signum()).unwrap_or(0)),
        ("isInteger", None) => Value::Bool(whole.is_some()),
        ("asInteger", None) => {
            Value::Int(whole.ok_or_else(|| Failure::wrong("cannot convert value to integer"))?)
        }
        ("asApproximateFloat", None) => Value::Double(amount as f64 / BILLION as f64),
        ("add", Some(other)) => Value::Quantity(amount.saturating_add(other)),
        ("sub", Some(other)) => Value::Quantity(amount.saturating_sub(other)),
        ("isGreaterThan", Some(other)) => Value::Bool(amount > other),
        ("isLessThan", Some(other)) => Value::Bool(amount < other),
        ("compareTo", Some(other)) => sign(amount.cmp(&other)),
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn sign<'a>(order: Ordering) -> Value<'a> {
    Value::Int(match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}

fn of_version<'a>(name: &str, version: &Semver, rest: &[Value<'a>]) -> Option<Value<'a>> {
    let number = |index: usize| Some(Value::Int(i64::try_from(version.numbers[index]).unwrap_or(i64::MAX)));
    match (name, rest) {
        ("major", []) => number(0),
        ("minor", []) => number(1),
        ("patch", []) => number(2),
        ("compareTo", [Value::Semver(other)]) => Some(sign(precedence(version, other))),
        ("isGreaterThan", [Value::Semver(other)]) => Some(Value::Bool(precedence(version, other).is_gt())),
        ("isLessThan", [Value::Semver(other)]) => Some(Value::Bool(precedence(version, other).is_lt())),
        _ => None,
    }
}

/// Reads a version; the lenient form may have a `v`, zeros in front and fewer than three numbers.
fn semver(text: &str, lenient: bool) -> Option<Semver> {
    let text = if lenient { text.strip_prefix('v').unwrap_or(text) } else { text };
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-')
    };
    if !build.is_none_or(|build| build.split('.').all(word)) {
        return None;
    }
    let parts: Vec<&str> = core.split('.').collect();
    if parts.len() > 3 || (parts.len() < 3 && !lenient) {
        return None;
    }
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(&parts) {
        let plain = !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
        if !plain || (!lenient && part.len() > 1 && part.starts_with('0')) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    let before: Vec<String> =
        before.map(|all| all.split('.').map(str::to_owned).collect()).unwrap_or_default();
    let is_number = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    let fits =
        before.iter().all(|part| word(part) && (!is_number(part) || part == "0" || !part.starts_with('0')));
    fits.then_some(Semver { numbers, before })
}

/// What comes before a release is older than it; numbers are older than words.
fn precedence(one: &Semver, two: &Semver) -> Ordering {
    let by_numbers = one.numbers.cmp(&two.numbers);
    let by_release = one.before.is_empty().cmp(&two.before.is_empty());
    let mut order = by_numbers.then(by_release);
    for (left, right) in one.before.iter().zip(&two.before) {
        order = order.then_with(|| match (left.parse::<u64>(), right.parse::<u64>()) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => left.cmp(right),
        });
    }
    order.then(one.before.len().cmp(&two.before.len()))
}
