//! `"%s is %d".format([...])`.

use crate::budget::{Budget, Failure};
use crate::time_text;
use crate::value::{List, Value};

/// More digits than a number has are of no use.
const PRECISION_MAX: usize = 100;

/// The text with its clauses filled in.
pub(super) fn format(text: &str, values: &List<'_>, budget: &Budget) -> Result<String, Failure> {
    let mut made = String::new();
    let mut letters = text.chars().peekable();
    let mut next = 0;
    while let Some(letter) = letters.next() {
        if letter != '%' {
            made.push(letter);
            continue;
        }
        if letters.next_if_eq(&'%').is_some() {
            made.push('%');
            continue;
        }
        let mut precision = None;
        if letters.next_if_eq(&'.').is_some() {
            let mut digits = String::new();
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let read = digits.parse().ok().filter(|precision| *precision <= PRECISION_MAX);
            precision =
                Some(read.ok_or_else(|| Failure::wrong("could not parse formatting clause: precision"))?);
        }
        let Some(clause) = letters.next() else {
            return Err(Failure::wrong("unexpected end of format string"));
        };
        let value = values.get(next).ok_or_else(|| Failure::wrong(format!("index {next} out of range")))?;
        next += 1;
        let piece = one(clause, precision, &value, budget)?;
        budget.work(piece.len() as u64)?;
        made.push_str(&piece);
    }
    Ok(made)
}

fn one(
    clause: char,
    precision: Option<usize>,
    value: &Value<'_>,
    budget: &Budget,
) -> Result<String, Failure> {
    let wrong = || Failure::wrong(format!("could not format '{}' with %{clause}", value.type_name()));
    Ok(match (clause, value) {
        ('s', Value::String(text)) => text.to_string(),
        ('s', value) => shown(value, budget)?,
        ('d', Value::Int(number)) => number.to_string(),
        ('d', Value::Uint(number)) => number.to_string(),
        ('d', Value::Double(number)) => number.to_string(),
        ('f', value) => {
            let precision = precision.unwrap_or(6);
            format!("{:.precision$}", number(value).ok_or_else(wrong)?)
        }
        ('e', value) => exponent(number(value).ok_or_else(wrong)?, precision.unwrap_or(6)),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('b', Value::Int(number)) => signed(*number, |size| format!("{size:b}")),
        ('b', Value::Uint(number)) => format!("{number:b}"),
        ('o', Value::Int(number)) => signed(*number, |size| format!("{size:o}")),
        ('o', Value::Uint(number)) => format!("{number:o}"),
        ('x', Value::Int(number)) => signed(*number, |size| format!("{size:x}")),
        ('X', Value::Int(number)) => signed(*number, |size| format!("{size:X}")),
        ('x', Value::Uint(number)) => format!("{number:x}"),
        ('X', Value::Uint(number)) => format!("{number:X}"),
        ('x', Value::String(text)) => hex(text.as_bytes(), budget)?,
        ('x', Value::Bytes(bytes)) => hex(bytes, budget)?,
        ('X', Value::String(text)) => hex(text.as_bytes(), budget)?.to_uppercase(),
        ('X', Value::Bytes(bytes)) => hex(bytes, budget)?.to_uppercase(),
        _ => return Err(wrong()),
    })
}

fn hex(bytes: &[u8], budget: &Budget) -> Result<String, Failure> {
    budget.work(bytes.len() as u64 * 2)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn signed(number: i64, form: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", form(number.unsigned_abs()))
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        _ => None,
    }
}

/// As cel-go writes it: with at least two digits of the exponent, which are raised.
fn exponent(number: f64, precision: usize) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{number:.precision$e}");
    let Some((mantissa, power)) = text.split_once('e') else { return text };
    let (sign, digits) = power.strip_prefix('-').map_or(("", power), |digits| ("⁻", digits));
    let raised = |digit: char| digit.to_digit(10).map_or(digit, |digit| RAISED[digit as usize % 10]);
    let digits: String = format!("{digits:0>2}").chars().map(raised).collect();
    format!("{mantissa}×10{sign}{digits}")
}

/// Anything as text; text in lists and maps is quoted.
fn shown(value: &Value<'_>, budget: &Budget) -> Result<String, Failure> {
    budget.work(1)?;
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::String(text) => {
            budget.work(text.len() as u64)?;
            format!("{:?}", &**text)
        }
        Value::Bytes(bytes) => {
            budget.work(bytes.len() as u64)?;
            String::from_utf8_lossy(bytes).into_owned()
        }
        Value::Duration(nanoseconds) => time_text::seconds_text(*nanoseconds),
        Value::Timestamp(moment) => moment.to_string(),
        Value::Type(name) => (*name).to_owned(),
        Value::List(list) => {
            let items = list.iter().map(|item| shown(&item, budget)).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for key in map.keys() {
                let value = crate::value::Key::of(&key).and_then(|key| map.get(&key)).unwrap_or(Value::Null);
                entries.push(format!("{}:{}", shown(&key, budget)?, shown(&value, budget)?));
            }
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => {
            let message = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
                           types, durations, and timestamps";
            return Err(Failure::wrong(format!("{message}, was given {}", other.type_name())));
        }
    })
}
