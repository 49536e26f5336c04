//! Values as Go prints them, because the sentences of Kubernetes quote them that way.

use std::fmt::Write;

use serde_json::{Number, Value};

/// The value as `%v` prints it: `map[a:1 b:[x y]]`.
pub(crate) fn plain(value: &Value) -> String {
    let mut text = String::new();
    write_plain(&mut text, value);
    text
}

fn write_plain(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => text.push_str(string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { " " } else { "" });
                write_plain(text, item);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push_str("map[");
            for (index, (name, field)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { " " } else { "" });
                text.push_str(name);
                text.push(':');
                write_plain(text, field);
            }
            text.push(']');
        }
    }
}

/// The value as `%s` prints it, which only strings are meant for.
pub(crate) fn string_verb(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={})", type_name(value), plain(value)),
        other => plain(other),
    }
}

/// The value as `%#v` prints it: `map[string]interface {}{"a":1}`.
pub(crate) fn syntax(value: &Value) -> String {
    let mut text = String::new();
    write_syntax(&mut text, value);
    text
}

fn write_syntax(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("interface {}(nil)"),
        Value::String(string) => text.push_str(&quoted(string)),
        Value::Array(items) => {
            text.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_syntax(text, item);
            }
            text.push('}');
        }
        Value::Object(fields) => {
            text.push_str("map[string]interface {}{");
            for (index, (name, field)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                text.push_str(&quoted(name));
                text.push(':');
                write_syntax(text, field);
            }
            text.push('}');
        }
        scalar => write_plain(text, scalar),
    }
}

/// The string as `%q` prints it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            low if (low as u32) < 0x20 || low as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", low as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Go's shortest form: an exponent from 1e21 up and below 1e-4.
pub(crate) fn number_text(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, power) = match exponent.strip_prefix('-') {
            Some(power) => ('-', power),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{power:0>2}");
    }
    float.to_string()
}

/// The dynamic type that Go's decoder gives the value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
