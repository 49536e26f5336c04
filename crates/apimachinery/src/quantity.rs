//! Kubernetes quantities (`500m`, `1.5Gi`, `12e6`): exact value, order and canonical text.
//! Must not know which resource is measured.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// An exact amount with the notation it was written in.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    /// The amount is `mantissa` × 10^`exponent`; the mantissa has no trailing zeros.
    mantissa: i128,
    exponent: i32,
    notation: Notation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `12M`
    Decimal,
    /// `12Mi`
    Binary,
    /// `12e6`
    Exponent,
}

/// Why a text is no quantity, in Kubernetes' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not look like one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number cannot be read, or has more than 38 digits.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is none of the known ones.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
/// Amounts are kept to the nano; finer ones are rounded away from zero.
const EXPONENT_MIN: i32 = -9;

impl Quantity {
    /// Reads a quantity from JSON: a string, or a bare number.
    pub fn from_value(value: &Value) -> Result<Self, QuantityError> {
        match value {
            Value::String(text) => text.parse(),
            Value::Number(number) => number.to_string().parse(),
            _ => Err(QuantityError::Format),
        }
    }

    /// A whole number.
    pub fn whole(number: i64) -> Self {
        Self::normal(number.into(), 0, Notation::Decimal)
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// Whether the amount is below zero.
    pub fn is_negative(&self) -> bool {
        self.mantissa < 0
    }

    /// Whether the amount has no fraction.
    pub fn is_whole(&self) -> bool {
        self.exponent >= 0
    }

    /// The amount with at most this many decimal places, rounded away from zero.
    pub fn rounded_up(self, decimals: u8) -> Self {
        let (mantissa, exponent) = rounded(self.mantissa, self.exponent, -i32::from(decimals));
        Self::normal(mantissa, exponent, self.notation)
    }

    /// The amount in thousandths, rounded away from zero and kept within what fits.
    pub fn thousandths(self) -> i64 {
        let Self { mantissa, exponent, .. } = self.rounded_up(3);
        let power =
            u32::try_from(exponent.saturating_add(3)).ok().and_then(|power| 10_i128.checked_pow(power));
        let limit = if mantissa < 0 { i64::MIN } else { i64::MAX };
        let amount = power.and_then(|power| mantissa.checked_mul(power));
        amount.and_then(|amount| i64::try_from(amount).ok()).unwrap_or(limit)
    }

    /// The amount in billionths, kept within what fits.
    pub fn billionths(self) -> i128 {
        let power =
            u32::try_from(self.exponent.saturating_add(9)).ok().and_then(|power| 10_i128.checked_pow(power));
        let limit = if self.mantissa < 0 { i128::MIN } else { i128::MAX };
        power.and_then(|power| self.mantissa.checked_mul(power)).unwrap_or(limit)
    }

    fn normal(mut mantissa: i128, mut exponent: i32, notation: Notation) -> Self {
        while mantissa != 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        let exponent = if mantissa == 0 { 0 } else { exponent };
        Self { mantissa, exponent, notation }
    }

    fn decimal_text(&self, notation: Notation) -> String {
        let mut exponent = self.exponent.div_euclid(3) * 3;
        if notation == Notation::Decimal {
            exponent = exponent.min(18);
        }
        let zeros = usize::try_from(self.exponent - exponent).unwrap_or_default();
        let number = format!("{}{}", self.mantissa, "0".repeat(zeros));
        match notation {
            Notation::Exponent if exponent != 0 => format!("{number}e{exponent}"),
            Notation::Exponent => number,
            _ => {
                let suffix = DECIMAL_SUFFIXES.iter().find(|(_, power)| *power == exponent);
                format!("{number}{}", suffix.map_or("", |(suffix, _)| suffix))
            }
        }
    }

    /// `None` where binary suffixes would round or confuse: fractions and amounts below 1024.
    fn binary_text(&self) -> Option<String> {
        let power = 10_i128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let mut number = self.mantissa.checked_mul(power)?;
        if number.abs() < 1024 {
            return None;
        }
        let mut suffix = "";
        for (next, _) in BINARY_SUFFIXES {
            if number % 1024 != 0 {
                break;
            }
            number /= 1024;
            suffix = next;
        }
        Some(format!("{number}{suffix}"))
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let number_end = unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, suffix) = unsigned.split_at(number_end.unwrap_or(unsigned.len()));
        if number.is_empty() || !is_suffix(suffix) {
            return Err(QuantityError::Format);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') {
            return Err(QuantityError::Format);
        }
        let (power, notation) = suffix_power(suffix)?;
        let (mantissa, exponent) = digits(whole, fraction)?;
        let (mantissa, exponent) = match power {
            Power::Ten(shift) => (mantissa, exponent.saturating_add(shift)),
            Power::Two(shift) => (mantissa.checked_mul(1 << shift).ok_or(QuantityError::Number)?, exponent),
        };
        let (mantissa, exponent) = rounded(mantissa, exponent, EXPONENT_MIN);
        let amount = Self::normal(mantissa, exponent, notation);
        // Kubernetes caps binary amounts, and only those.
        let largest = Self { notation, ..Self::whole(i64::MAX) };
        let amount = if notation == Notation::Binary { amount.min(largest) } else { amount };
        let sign = if text.starts_with('-') { -1 } else { 1 };
        Ok(Self { mantissa: sign * amount.mantissa, ..amount })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return formatter.write_str("0");
        }
        let text = match self.notation {
            Notation::Binary => self.binary_text().unwrap_or_else(|| self.decimal_text(Notation::Decimal)),
            other => self.decimal_text(other),
        };
        formatter.write_str(&text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs != Ordering::Equal || self.is_zero() {
            return signs;
        }
        let low = self.exponent.min(other.exponent);
        let lowered = |one: &Self| {
            let zeros = u32::try_from(one.exponent - low).ok()?;
            one.mantissa.checked_mul(10_i128.checked_pow(zeros)?)
        };
        match (lowered(self), lowered(other)) {
            (Some(one), Some(another)) => one.cmp(&another),
            // Only the side with more zeros can leave the range, so it has the larger magnitude.
            (None, _) => 0.cmp(&-self.mantissa.signum()),
            (_, None) => 0.cmp(&other.mantissa.signum()),
        }
    }
}

enum Power {
    Ten(i32),
    Two(u32),
}

fn is_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

fn suffix_power(suffix: &str) -> Result<(Power, Notation), QuantityError> {
    if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Ok((Power::Ten(*power), Notation::Decimal));
    }
    if let Some((_, power)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
        return Ok((Power::Two(*power), Notation::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    // Beyond four digits no amount can be told from another that anyone could mean.
    let exponent = exponent.parse::<i32>().ok().filter(|power| power.abs() < 10_000);
    Ok((Power::Ten(exponent.ok_or(QuantityError::Suffix)?), Notation::Exponent))
}

fn digits(whole: &str, fraction: &str) -> Result<(i128, i32), QuantityError> {
    let fraction = fraction.trim_end_matches('0');
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let mantissa = match significant {
        "" => 0,
        text => text.parse().map_err(|_| QuantityError::Number)?,
    };
    let exponent = i32::try_from(fraction.len()).map_err(|_| QuantityError::Number)?;
    Ok((mantissa, -exponent))
}

/// Drops digits below 10^`lowest`, away from zero.
fn rounded(mantissa: i128, exponent: i32, lowest: i32) -> (i128, i32) {
    let dropped = u32::try_from(lowest.saturating_sub(exponent)).unwrap_or(0);
    if dropped == 0 {
        return (mantissa, exponent);
    }
    let quotient = match 10_i128.checked_pow(dropped) {
        Some(power) if mantissa % power == 0 => mantissa / power,
        Some(power) => mantissa / power + mantissa.signum(),
        None => mantissa.signum(),
    };
    (quotient, lowest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, canonical: &str) {
        assert_eq!(text.parse::<Quantity>().unwrap().to_string(), canonical, "{text:?}");
    }

    #[test]
    fn canonical_texts() {
        for (text, canonical) in [
            ("0", "0"),
            ("0.0Gi", "0"),
            ("1", "1"),
            ("1.5", "1500m"),
            ("0.1", "100m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("62.5Ki", "64000"),
            ("1023Ki", "1023Ki"),
            ("0.0001Ki", "102400u"),
            ("12e6", "12e6"),
            ("12000e6", "12e9"),
            ("1.2e3", "1200"),
            ("1E", "1E"),
            ("1E3", "1e3"),
            ("-2.5Gi", "-2560Mi"),
            ("+5k", "5k"),
            ("100000n", "100u"),
            ("0.0000000001", "1n"),
            ("1.", "1"),
            (".5", "500m"),
            (".", "0"),
            ("12e-6", "12e-6"),
            ("9999999999999Ei", "9223372036854775807"),
            ("-257.6807Ei", "-9223372036854775807"),
        ] {
            check(text, canonical);
        }
    }

    #[test]
    fn thousandths_are_rounded_up_and_bounded() {
        for (text, expected) in [
            ("250m", 250),
            ("2", 2000),
            ("1Ki", 1_024_000),
            ("1u", 1),
            ("-1u", -1),
            ("0", 0),
            ("9e30", i64::MAX),
            ("-9e30", i64::MIN),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap().thousandths(), expected, "{text:?}");
        }
    }

    #[test]
    fn refused_texts() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1.1.1", QuantityError::Format),
            ("1.1.1ki", QuantityError::Format),
            ("1GiB", QuantityError::Format),
            ("1GG", QuantityError::Suffix),
            ("1ki", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("99999999999999999999999999999999999999999", QuantityError::Number),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap_err(), error, "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn order_and_text_agree_with_numbers(one in -100_000_i64..100_000, other in -100_000_i64..100_000) {
            let milli = |number: i64| format!("{number}m").parse::<Quantity>().unwrap();
            prop_assert_eq!(milli(one).cmp(&milli(other)), one.cmp(&other));
            let again: Quantity = milli(one).to_string().parse().unwrap();
            prop_assert_eq!(again, milli(one));
        }

        #[test]
        fn parsing_is_canonical(text in "[+-]?[0-9]{1,6}(\\.[0-9]{0,12})?(e-?[0-9]{1,4}|Ki|Mi|Ei|n|u|m|k|M|G|T|P|E)?") {
            let quantity: Quantity = text.parse().unwrap();
            let canonical = quantity.to_string();
            let again: Quantity = canonical.parse().unwrap();
            prop_assert_eq!(again, quantity);
            // Binary amounts that no binary suffix divides are printed without one, and so read as decimal.
            let lost_its_notation = text.ends_with('i') && !canonical.ends_with('i');
            prop_assert!(lost_its_notation || again.to_string() == canonical);
            prop_assert_eq!(quantity.rounded_up(3) >= quantity, !quantity.is_negative() || quantity.rounded_up(3) == quantity);
        }

        #[test]
        fn huge_and_tiny_keep_their_order(small in 1_i64..1000, power in 0_u32..4000) {
            let huge: Quantity = format!("{small}e{power}").parse().unwrap();
            prop_assert!(huge > Quantity::whole(0));
            prop_assert!(huge >= Quantity::whole(1));
            let minus: Quantity = format!("-{small}e{power}").parse().unwrap();
            prop_assert!(minus < Quantity::whole(0) && minus < huge);
        }
    }
}
