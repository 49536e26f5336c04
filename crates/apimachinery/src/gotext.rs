//! Formats values as Go's `fmt` prints them, because Kubernetes' messages quote them that way. Must not know which
//! message.

use serde_json::{Number, Value};

/// The value as `%v` prints it: `map[a:1 b:[x y]]`.
pub fn plain(value: &Value) -> String {
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
pub fn string_verb(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={})", type_name(value), plain(value)),
        other => plain(other),
    }
}

/// The value as `%#v` prints it: `map[string]interface {}{"a":1}`.
pub fn syntax(value: &Value) -> String {
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

/// The string as `%q` prints it: between quotes, with Go's escapes.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            hidden if !is_printable(hidden) => out.push_str(&match hidden as u32 {
                code @ (0..0x20 | 0x7f) => format!("\\x{code:02x}"),
                code @ ..0x10000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

/// A number as `%v` prints it.
pub fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(number) => float(number),
        None => number.to_string(),
    }
}

/// A floating-point number in Go's shortest form: an exponent from 1e21 up and below 1e-4.
pub fn float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{number}")
}

/// The dynamic type that Go's decoder gives the value, as `%s` prints it.
pub fn type_name(value: &Value) -> &'static str {
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

/// What Go's JSON decoder calls the value when it does not fit.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Close to Go's notion: not control, not formatting, no space but the plain one, not private.
fn is_printable(letter: char) -> bool {
    let formatting = matches!(
        letter,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..
    );
    letter == ' ' || !(letter.is_control() || letter.is_whitespace() || formatting)
}

#[cfg(test)]
mod tests {
    use super::{float, quoted};

    #[test]
    fn quotes_as_go_does() {
        for (text, expected) in [
            ("a'b", r#""a'b""#),
            ("a\"\\b", r#""a\"\\b""#),
            ("\n\u{1}\u{7f}\0", r#""\n\x01\x7f\x00""#),
            ("\u{a0}é\u{200b}\u{85}", r#""\u00a0é\u200b\u0085""#),
            ("\u{f0000}", r#""\U000f0000""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn prints_floats_as_go_does() {
        for (number, expected) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (-1e-7, "-1e-07"),
            (1.25e300, "1.25e+300"),
        ] {
            assert_eq!(float(number), expected);
        }
    }
}
