//! Timestamps and durations as text: RFC 3339 and Go's notation.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// A moment as RFC 3339 writes it.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Midnight of a date.
pub(crate) fn date(text: &str) -> Option<Timestamp> {
    let date: Date = text.parse().ok()?;
    DateTime::from(date).to_zoned(TimeZone::UTC).ok().map(|moment| moment.timestamp())
}

/// A span of time as Go writes it, such as `1h30m`.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: f64 = 0.0;
    let mut exact: i128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))?;
        let (number, after) = rest.split_at(end);
        let (unit, length) = unit(after)?;
        let fraction: f64 = number.parse().ok()?;
        total += fraction * unit as f64;
        exact = match number.parse::<i128>() {
            Ok(whole) => exact.checked_add(whole.checked_mul(i128::from(unit))?)?,
            Err(_) => exact.checked_add((fraction * unit as f64).round() as i128)?,
        };
        rest = &after[length..];
    }
    if total.abs() > 9.3e18 {
        return None;
    }
    i64::try_from(if negative { -exact } else { exact }).ok()
}

fn unit(text: &str) -> Option<(i64, usize)> {
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    units.into_iter().find(|(name, _)| text.starts_with(name)).map(|(name, unit)| (unit, name.len()))
}

/// A span of time in seconds, as `string()` writes it.
pub(crate) fn seconds_text(nanoseconds: i64) -> String {
    let fraction = nanoseconds.unsigned_abs() % 1_000_000_000;
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let seconds = nanoseconds.unsigned_abs() / 1_000_000_000;
    match fraction {
        0 => format!("{sign}{seconds}s"),
        fraction => format!("{sign}{seconds}.{}s", format!("{fraction:09}").trim_end_matches('0')),
    }
}
