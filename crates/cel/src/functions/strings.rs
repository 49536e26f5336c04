//! String functions: searching, slicing, joining, regular expressions. Offsets count characters.

use std::sync::Arc;

use regex::Regex;

use super::{Context, format};
use crate::budget::{Failure, tenth};
use crate::value::{Text, Value};

/// The value of a function on text, if there is one of this name.
pub(super) fn call<'a>(
    name: &str,
    text: &Text<'a>,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Option<Value<'a>>, Failure> {
    let length = || text.chars().count() as u64;
    let budget = context.budget;
    let value = match (name, args) {
        ("contains", [Value::String(part)]) => {
            budget.charge(tenth(length()).saturating_mul(tenth(part.chars().count() as u64)))?;
            Value::Bool(text.contains(&**part))
        }
        ("startsWith", [Value::String(part)]) => {
            budget.traverse(length())?;
            Value::Bool(text.starts_with(&**part))
        }
        ("endsWith", [Value::String(part)]) => {
            budget.traverse(length())?;
            Value::Bool(text.ends_with(&**part))
        }
        ("matches" | "find" | "findAll", _) => return patterns(name, text, args, context).map(Some),
        ("charAt" | "substring" | "indexOf" | "lastIndexOf", _) => {
            budget.traverse(length())?;
            budget.work(length())?;
            return places(name, text, args).map(Some);
        }
        ("lowerAscii" | "upperAscii" | "trim", []) => {
            budget.work(text.len() as u64)?;
            budget.traverse(length())?;
            Value::text(match name {
                "lowerAscii" => text.to_ascii_lowercase(),
                "upperAscii" => text.to_ascii_uppercase(),
                _ => text.trim().to_owned(),
            })
        }
        ("replace" | "split", _) => {
            budget.charge(length().saturating_mul(2).div_ceil(10))?;
            return pieces(name, text, args, context).map(Some);
        }
        ("format", [Value::List(values)]) => {
            budget.traverse(length())?;
            Value::text(format::format(text, values, budget)?)
        }
        ("strings.quote", []) => {
            budget.work(text.len() as u64 * 2)?;
            budget.traverse(length())?;
            Value::text(quoted(text))
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn patterns<'a>(
    name: &str,
    text: &Text<'a>,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Value<'a>, Failure> {
    let (pattern, limit) = match args {
        [Value::String(pattern)] => (pattern, -1),
        [Value::String(pattern), Value::Int(limit)] if name == "findAll" => (pattern, *limit),
        _ => return Err(Failure::no_overload()),
    };
    let length = text.chars().count() as u64;
    let by_pattern = (pattern.chars().count() as u64).div_ceil(4);
    context.budget.charge(tenth(length.saturating_add(1)).saturating_mul(by_pattern))?;
    context.budget.work(text.len() as u64)?;
    let regex: Arc<Regex> = (context.hooks.pattern)(pattern).map_err(Failure::wrong)?;
    Ok(match name {
        "matches" => Value::Bool(regex.is_match(text)),
        "find" => Value::text(regex.find(text).map_or("", |found| found.as_str())),
        _ => {
            let most = usize::try_from(limit).unwrap_or(usize::MAX);
            Value::list(regex.find_iter(text).take(most).map(|found| Value::text(found.as_str())).collect())
        }
    })
}

fn places<'a>(name: &str, text: &str, args: &[Value<'a>]) -> Result<Value<'a>, Failure> {
    let letters: Vec<char> = text.chars().collect();
    let outside = |index: i64| Failure::wrong(format!("index out of range: {index}"));
    let place = |index: i64| {
        usize::try_from(index).ok().filter(|index| *index <= letters.len()).ok_or_else(|| outside(index))
    };
    match (name, args) {
        ("charAt", [Value::Int(index)]) => {
            let letter = letters.get(place(*index)?).map(char::to_string);
            Ok(Value::text(letter.unwrap_or_default()))
        }
        ("substring", [Value::Int(begin)]) => {
            Ok(Value::text(letters[place(*begin)?..].iter().collect::<String>()))
        }
        ("substring", [Value::Int(begin), Value::Int(end)]) => {
            let (from, to) = (place(*begin)?, place(*end)?);
            match from <= to {
                true => Ok(Value::text(letters[from..to].iter().collect::<String>())),
                false => Err(Failure::wrong(format!("invalid substring range. start: {begin}, end: {end}"))),
            }
        }
        ("indexOf", [Value::String(part)]) => Ok(find(text, part, 0)),
        ("indexOf", [Value::String(part), Value::Int(from)]) => Ok(find(text, part, place(*from)?)),
        ("lastIndexOf", [Value::String(part)]) => Ok(find_last(text, part, letters.len())),
        ("lastIndexOf", [Value::String(part), Value::Int(from)]) => Ok(find_last(text, part, place(*from)?)),
        _ => Err(Failure::no_overload()),
    }
}

/// The byte that a character begins at.
fn offset(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(offset, _)| offset)
}

fn counted<'a>(text: &str, found: Option<usize>) -> Value<'a> {
    let place = found.and_then(|offset| i64::try_from(text[..offset].chars().count()).ok());
    Value::Int(place.unwrap_or(-1))
}

fn find<'a>(text: &str, part: &str, from: usize) -> Value<'a> {
    let begin = offset(text, from);
    counted(text, text[begin..].find(part).map(|found| begin + found))
}

/// The last place at or before a character.
fn find_last<'a>(text: &str, part: &str, from: usize) -> Value<'a> {
    let end = (offset(text, from) + part.len()).min(text.len());
    counted(text, text[..text.floor_char_boundary(end)].rfind(part))
}

fn pieces<'a>(
    name: &str,
    text: &str,
    args: &[Value<'a>],
    context: Context<'_>,
) -> Result<Value<'a>, Failure> {
    match (name, args) {
        ("replace", [Value::String(from), Value::String(to), rest @ ..]) => {
            let limit = limit(rest)?;
            // What comes out is at most this long, counted before it is made.
            let places = match from.len() {
                0 => text.len() + 1,
                length => text.len() / length,
            };
            context.budget.work((text.len() + places.min(limit).saturating_mul(to.len())) as u64)?;
            Ok(Value::text(text.replacen(&**from, to, limit)))
        }
        ("split", [Value::String(by), rest @ ..]) => {
            let limit = limit(rest)?;
            context.budget.work(text.len() as u64)?;
            let parts: Vec<&str> = match (limit, by.is_empty()) {
                (0, _) => Vec::new(),
                (limit, true) => letters(text, limit),
                (limit, false) => text.splitn(limit, &**by).collect(),
            };
            Ok(Value::list(parts.into_iter().map(Value::text).collect()))
        }
        _ => Err(Failure::no_overload()),
    }
}

/// The characters of a text, the last of as many as may be being the rest.
fn letters(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (first, after) = rest.split_at(letter.len_utf8());
        parts.push(first);
        rest = after;
    }
    parts
}

fn limit(rest: &[Value<'_>]) -> Result<usize, Failure> {
    match rest {
        [] => Ok(usize::MAX),
        [Value::Int(limit)] => Ok(usize::try_from(*limit).unwrap_or(usize::MAX)),
        _ => Err(Failure::no_overload()),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
