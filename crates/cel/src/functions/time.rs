//! Functions on timestamps and durations: conversion, components and arithmetic.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use crate::budget::{Budget, Failure};
use crate::functions::Context;
use crate::time_text::{duration, timestamp};
use crate::value::Value;

/// Sums and differences.
pub(super) fn arithmetic<'a>(name: &str, one: &Value<'a>, two: &Value<'a>) -> Result<Value<'a>, Failure> {
    let overflow = |kind: &str| Failure::wrong(format!("{kind} overflow"));
    match (name, one, two) {
        ("_+_", Value::Duration(one), Value::Duration(two)) => {
            one.checked_add(*two).map(Value::Duration).ok_or_else(|| overflow("duration"))
        }
        ("_-_", Value::Duration(one), Value::Duration(two)) => {
            one.checked_sub(*two).map(Value::Duration).ok_or_else(|| overflow("duration"))
        }
        ("_+_", Value::Timestamp(moment), Value::Duration(span))
        | ("_+_", Value::Duration(span), Value::Timestamp(moment)) => {
            let sum = moment.checked_add(SignedDuration::from_nanos(*span));
            sum.map(Value::Timestamp).map_err(|_| overflow("timestamp"))
        }
        ("_-_", Value::Timestamp(moment), Value::Duration(span)) => {
            let difference = moment.checked_sub(SignedDuration::from_nanos(*span));
            difference.map(Value::Timestamp).map_err(|_| overflow("timestamp"))
        }
        ("_-_", Value::Timestamp(one), Value::Timestamp(two)) => {
            let nanoseconds = i64::try_from(one.as_nanosecond() - two.as_nanosecond());
            nanoseconds.map(Value::Duration).map_err(|_| overflow("duration"))
        }
        _ => Err(Failure::no_overload()),
    }
}

/// `timestamp()` and `duration()`.
pub(super) fn global<'a>(
    name: &str,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    if !matches!(name, "timestamp" | "duration") {
        return Ok(None);
    }
    context.budget.charge(1)?;
    let [value] = args else { return Err(Failure::no_overload()) };
    let invalid = || Failure::wrong(format!("type conversion error from 'string' to '{name}'"));
    let made = match (name, value) {
        ("timestamp", Value::Timestamp(_)) | ("duration", Value::Duration(_)) => value.clone(),
        ("timestamp", Value::String(text)) => Value::Timestamp(timestamp(text).ok_or_else(invalid)?),
        ("timestamp", Value::Int(seconds)) => {
            let moment = Timestamp::from_second(*seconds);
            Value::Timestamp(moment.map_err(|_| Failure::wrong("timestamp overflow"))?)
        }
        ("duration", Value::String(text)) => Value::Duration(duration(text).ok_or_else(invalid)?),
        ("duration", Value::Int(nanoseconds)) => Value::Duration(*nanoseconds),
        _ => return Err(Failure::no_overload()),
    };
    Ok(Some(made))
}

/// The parts of moments and spans.
pub(super) fn call<'a>(
    name: &str,
    args: &[Value<'a>],
    budget: &Budget,
) -> Result<Option<Value<'a>>, Failure> {
    if !name.starts_with("get") {
        return Ok(None);
    }
    budget.charge(1)?;
    let part = match args {
        [Value::Duration(nanoseconds)] => span_part(name, *nanoseconds),
        [Value::Timestamp(moment)] => moment_part(name, moment.to_zoned(TimeZone::UTC).datetime()),
        [Value::Timestamp(moment), Value::String(zone)] => {
            let zone =
                zone_of(zone).ok_or_else(|| Failure::wrong(format!("unknown time zone {}", &**zone)))?;
            moment_part(name, moment.to_zoned(zone).datetime())
        }
        _ => None,
    };
    part.map(|part| Some(Value::Int(part))).ok_or_else(Failure::no_overload)
}

fn span_part(name: &str, nanoseconds: i64) -> Option<i64> {
    Some(match name {
        "getHours" => nanoseconds / 3_600_000_000_000,
        "getMinutes" => nanoseconds / 60_000_000_000,
        "getSeconds" => nanoseconds / 1_000_000_000,
        "getMilliseconds" => nanoseconds / 1_000_000 % 1_000,
        _ => return None,
    })
}

fn moment_part(name: &str, moment: DateTime) -> Option<i64> {
    Some(match name {
        "getFullYear" => i64::from(moment.year()),
        "getMonth" => i64::from(moment.month()) - 1,
        "getDayOfMonth" => i64::from(moment.day()) - 1,
        "getDate" => i64::from(moment.day()),
        "getDayOfWeek" => i64::from(moment.weekday().to_sunday_zero_offset()),
        "getDayOfYear" => i64::from(moment.day_of_year()) - 1,
        "getHours" => i64::from(moment.hour()),
        "getMinutes" => i64::from(moment.minute()),
        "getSeconds" => i64::from(moment.second()),
        "getMilliseconds" => i64::from(moment.millisecond()),
        _ => return None,
    })
}

/// UTC, or a difference such as `-02:00`. Names of places would need a database of them.
fn zone_of(text: &str) -> Option<TimeZone> {
    if matches!(text, "UTC" | "" | "Z") {
        return Some(TimeZone::UTC);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_mul(sign)?;
    Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}
