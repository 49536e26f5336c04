//! How Kubernetes, a Go program, quotes texts and prints numbers.

/// A text between quotes, with Go's escapes.
pub(crate) fn quoted(text: &str) -> String {
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

/// A floating-point number: plain up to 1e21, with an exponent beyond.
pub(crate) fn float(number: f64) -> String {
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
