//! Resource quantities such as `500m` and `2Gi`, exact to a billionth, and their arithmetic.

use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::str::FromStr;

use api::Quantity;

/// Billionths in one.
const NANO: i128 = 1_000_000_000;
/// The greatest amount, as in Kubernetes: 2^63 - 1.
const NANOS_MAX: i128 = i64::MAX as i128 * NANO;

/// Decimal suffixes with their power of ten.
const DECIMAL: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];
/// Binary suffixes with their power of two.
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

/// An amount that can be computed with; greater ones than 2^63 - 1 are cut to that.
#[derive(Debug, Clone, Copy, Default)]
pub struct Amount {
    nanos: i128,
    notation: Notation,
}

/// How an amount is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Notation {
    #[default]
    Decimal,
    Binary,
    Exponent,
}

/// Why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAQuantity(String);

impl fmt::Display for NotAQuantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} is not a quantity: write a number and a unit such as 500m, 2 or 1Gi", self.0)
    }
}

impl Amount {
    /// So many whole units.
    pub fn whole(units: i64) -> Amount {
        Amount { nanos: i128::from(units) * NANO, notation: Notation::Decimal }
    }

    /// The amount a field of an object states; none if it makes no sense.
    pub fn of(quantity: &Quantity) -> Option<Amount> {
        quantity.as_str().parse().ok()
    }

    /// Whole units, rounded away from zero as Kubernetes does.
    pub fn units(self) -> i64 {
        saturate(divide_up(self.nanos, 1_000_000_000))
    }

    /// Thousandths, rounded away from zero as Kubernetes does.
    pub fn milli_units(self) -> i64 {
        saturate(divide_up(self.nanos, 1_000_000))
    }

    /// The same amount as it stands in objects.
    pub fn quantity(self) -> Quantity {
        Quantity(self.to_string())
    }
}

/// Amounts are equal when they are equally much, however they are written.
impl PartialEq for Amount {
    fn eq(&self, other: &Amount) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Amount) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Amount) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Add for Amount {
    type Output = Amount;

    /// Keeps the notation of whichever side is not zero, the left one first.
    fn add(self, other: Amount) -> Amount {
        let notation = if self.nanos == 0 { other.notation } else { self.notation };
        Amount { nanos: cap(self.nanos + other.nanos), notation }
    }
}

impl Sub for Amount {
    type Output = Amount;

    fn sub(self, other: Amount) -> Amount {
        Amount { nanos: cap(self.nanos - other.nanos), notation: self.notation }
    }
}

impl Mul<i32> for Amount {
    type Output = Amount;

    fn mul(self, times: i32) -> Amount {
        Amount { nanos: cap(self.nanos.saturating_mul(i128::from(times))), notation: self.notation }
    }
}

impl FromStr for Amount {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Amount, NotAQuantity> {
        parse(text).ok_or_else(|| NotAQuantity(text.to_owned()))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Kubernetes writes what is below 1024, and what is no whole number, without a binary suffix.
        if self.notation == Notation::Binary && self.nanos.abs() >= 1024 * NANO && self.nanos % NANO == 0 {
            return write_binary(self.nanos / NANO, formatter);
        }
        write_decimal(self.nanos, self.notation == Notation::Exponent, formatter)
    }
}

fn write_binary(units: i128, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (suffix, shift) = BINARY.into_iter().find(|(_, shift)| units % (1 << shift) == 0).unwrap_or(("", 0));
    write!(formatter, "{}{suffix}", units >> shift)
}

fn write_decimal(nanos: i128, exponent: bool, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    if nanos == 0 {
        return formatter.write_str("0");
    }
    let (suffix, power, factor) = DECIMAL
        .into_iter()
        .map(|(suffix, power)| (suffix, power, ten_to(power + 9)))
        .find(|(_, _, factor)| nanos % factor == 0)
        .expect("the last factor is 1, which divides everything");
    match exponent && power != 0 {
        true => write!(formatter, "{}e{power}", nanos / factor),
        false => write!(formatter, "{}{suffix}", nanos / factor),
    }
}

fn parse(text: &str) -> Option<Amount> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let in_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let number_end = unsigned.bytes().position(|byte| !in_number(byte)).unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let (factor, notation) = parse_suffix(suffix)?;
    let nanos = scale(whole, fraction, factor);
    Some(Amount { nanos: if negative { -nanos } else { nanos }, notation })
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Factor {
    Ten(i32),
    Two(u32),
}

fn parse_suffix(suffix: &str) -> Option<(Factor, Notation)> {
    if suffix.is_empty() {
        return Some((Factor::Ten(0), Notation::Decimal));
    }
    if let Some((_, power)) = DECIMAL.into_iter().find(|(name, _)| *name == suffix) {
        return Some((Factor::Ten(power), Notation::Decimal));
    }
    if let Some((_, power)) = BINARY.into_iter().find(|(name, _)| *name == suffix) {
        return Some((Factor::Two(power), Notation::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Beyond three digits every amount is either cut or nothing, so the exact exponent is no matter.
    let size = if digits.trim_start_matches('0').len() > 3 { 999 } else { digits.parse().ok()? };
    let power = if exponent.starts_with('-') { -size } else { size };
    Some((Factor::Ten(power), Notation::Exponent))
}

/// `whole.fraction × factor` in billionths, rounded up, cut to the greatest amount.
fn scale(whole: &str, fraction: &str, factor: Factor) -> i128 {
    // Most amounts are short whole numbers, and a placement reads thousands of them.
    if let (Ok(number), true) = (whole.parse::<u32>(), fraction.is_empty()) {
        return match factor {
            Factor::Ten(power) => shift_ten(i128::from(number), power.saturating_add(9), false),
            Factor::Two(power) => ((i128::from(number) << power) * NANO).min(NANOS_MAX),
        };
    }
    let digits = whole.bytes().chain(fraction.bytes());
    let mut point = i32::try_from(whole.len()).unwrap_or(i32::MAX);
    // So many digits are exact: the greatest amount has 28, and 19 of them times 2^60 fit into 127 bits.
    let digits_max = if matches!(factor, Factor::Ten(_)) { 28 } else { 19 };
    let (mut mantissa, mut used, mut rest) = (0_i128, 0_i32, false);
    for digit in digits {
        let digit = i128::from(digit - b'0');
        if mantissa == 0 && digit == 0 {
            point = point.saturating_sub(1);
        } else if used < digits_max {
            mantissa = mantissa * 10 + digit;
            used += 1;
        } else {
            rest |= digit != 0;
        }
    }
    if mantissa == 0 {
        return 0;
    }
    let (base, ten) = match factor {
        Factor::Ten(power) => (mantissa, power),
        Factor::Two(power) => (mantissa << power, 0),
    };
    shift_ten(base, ten.saturating_add(9).saturating_add(point).saturating_sub(used), rest)
}

/// `base × 10^power`, rounded up; `rest` says that something small was left out of `base`.
fn shift_ten(base: i128, power: i32, rest: bool) -> i128 {
    if power >= 0 {
        return match base {
            0 => 0,
            _ => base.saturating_mul(if power > 37 { i128::MAX } else { ten_to(power) }).min(NANOS_MAX),
        };
    }
    let divisor = if power < -37 { i128::MAX } else { ten_to(-power) };
    (base / divisor + i128::from(base % divisor != 0 || rest)).min(NANOS_MAX)
}

fn ten_to(power: i32) -> i128 {
    if power == 9 { NANO } else { 10_i128.pow(power.unsigned_abs()) }
}

fn divide_up(nanos: i128, divisor: i64) -> i128 {
    // Short numbers divide many times faster, and most amounts are short.
    if let Ok(short) = i64::try_from(nanos) {
        return i128::from(short / divisor + (short % divisor).signum());
    }
    let divisor = i128::from(divisor);
    nanos / divisor + (nanos % divisor).signum()
}

fn cap(nanos: i128) -> i128 {
    nanos.clamp(-NANOS_MAX, NANOS_MAX)
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests;
