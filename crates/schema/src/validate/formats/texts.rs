//! The formats that need a parser: mail addresses, host names, ISBN and card numbers, durations.

use std::sync::LazyLock;

use regex::Regex;

fn expression(source: &str) -> Regex {
    Regex::new(source).expect("the expression is a constant that a test compiles")
}

/// An absolute URI, or an absolute path with or without a query.
pub(super) fn is_uri(text: &str) -> bool {
    static SCHEME: LazyLock<Regex> = LazyLock::new(|| expression(r"^[A-Za-z][A-Za-z0-9+.-]*:."));
    let clean = !text.bytes().any(|byte| byte < 0x20 || byte == 0x7f);
    let escapes = text
        .split('%')
        .skip(1)
        .all(|part| part.get(..2).is_some_and(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit())));
    let host = text.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    clean && escapes && !host.contains(' ') && (text.starts_with('/') || SCHEME.is_match(text))
}

/// `name@host`, `Name <name@host>`, or a quoted local part.
pub(super) fn is_email(text: &str) -> bool {
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
        let atom = r"[^\s\x00-\x1f()<>\[\]:;@\\,.\x22]+";
        expression(&format!(
            r#"^\s*(?:(?:"[^"]*"|[^<>@,"]+)?\s*<)?\s*(?:{atom}(?:\.{atom})*|"[^"]+")@(?:{atom}(?:\.{atom})*|\[[^\]]+\])\s*>?\s*$"#
        ))
    });
    ADDRESS.is_match(text) && text.contains('<') == text.trim_end().ends_with('>')
}

/// An Internet host name; letters and symbols of all scripts count as letters.
pub(super) fn is_hostname(text: &str) -> bool {
    static HOST: LazyLock<Regex> = LazyLock::new(|| {
        let letter = r"[a-zA-Z0-9\p{S}\p{L}]";
        expression(&format!(
            r"^(?:{letter}(?:-?{letter}{{0,62}})?|(?:{letter}(?:[a-zA-Z0-9\-\p{{S}}\p{{L}}]{{0,61}}{letter})?\.)+[a-zA-Z\p{{L}}]{{2,63}})$"
        ))
    });
    HOST.is_match(text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

fn digits_of(text: &str) -> Vec<u32> {
    text.chars()
        .filter(|letter| !matches!(letter, '-' | ' '))
        .filter_map(|letter| letter.to_digit(10))
        .collect()
}

/// Nine digits and a check digit, which may be an X.
pub(super) fn is_isbn10(text: &str) -> bool {
    let plain: String = text.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').collect();
    let shaped = plain.len() == 10 && plain.bytes().take(9).all(|byte| byte.is_ascii_digit());
    let worth = |byte: u8| if byte == b'X' { 10 } else { u32::from(byte.wrapping_sub(b'0')) };
    let last = plain.bytes().last().is_some_and(|byte| byte.is_ascii_digit() || byte == b'X');
    let sum: u32 = plain.bytes().zip(1..).map(|(byte, place): (u8, u32)| worth(byte) * place).sum();
    shaped && last && sum.is_multiple_of(11)
}

/// Thirteen digits whose weighted sum is a multiple of ten.
pub(super) fn is_isbn13(text: &str) -> bool {
    let plain: String = text.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').collect();
    let digits = digits_of(&plain);
    let sum: u32 = digits.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    plain.len() == 13 && digits.len() == 13 && sum.is_multiple_of(10)
}

/// A number of one of the big card companies with a right check digit.
pub(super) fn is_credit_card(text: &str) -> bool {
    static CARD: LazyLock<Regex> = LazyLock::new(|| {
        expression(
            r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(?:222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}|6[27][0-9]{14})$",
        )
    });
    let plain: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = |(index, digit): (usize, u32)| match (index % 2, digit * 2) {
        (0, _) => digit,
        (_, double) if double > 9 => double - 9,
        (_, double) => double,
    };
    let sum: u32 = digits_of(&plain).into_iter().rev().enumerate().map(doubled).sum();
    CARD.is_match(&plain) && sum.is_multiple_of(10)
}

/// A social security number of the United States.
pub(super) fn is_social_security_number(text: &str) -> bool {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| expression("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
    text.len() == 11 && NUMBER.is_match(text)
}

/// `rgb(255,0,0)`.
pub(super) fn is_rgb_color(text: &str) -> bool {
    static COLOR: LazyLock<Regex> = LazyLock::new(|| {
        let part = r"\s*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*";
        expression(&format!(r"^rgb\({part},{part},{part}\)$"))
    });
    COLOR.is_match(text)
}

/// Base64 in whole groups of four.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let plain = body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && plain
}

/// `1h30m`, `-1.5s`, or words such as `3 days`.
pub(super) fn is_duration(text: &str) -> bool {
    static STRICT: LazyLock<Regex> = LazyLock::new(|| {
        expression(r"^[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$")
    });
    static LOOSE: LazyLock<Regex> = LazyLock::new(|| expression(r"([0-9]+)\s*([A-Za-zµ]+)"));
    const UNITS: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const STEMS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let is_unit = |unit: &str| {
        let unit = unit.to_lowercase();
        UNITS.contains(&unit.as_str()) || STEMS.iter().any(|stem| unit.starts_with(stem))
    };
    let mut found = LOOSE.captures_iter(text).map(|part| part[2].to_owned());
    STRICT.is_match(text) || found.any(|unit| is_unit(&unit))
}
