//! The string formats that kube-apiserver validates in custom resources; all others, `int32` among them, are
//! documentation only.

use std::net::{Ipv4Addr, Ipv6Addr};

use apimachinery::names;

mod texts;

const KNOWN: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Whether a format is checked. Dashes do not count.
pub fn is_known(format: &str) -> bool {
    KNOWN.contains(&format.replace('-', "").as_str())
}

/// Whether a text has a format; formats that are not known hold for every text.
pub fn holds(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => texts::is_uri(text),
        "email" => texts::is_email(text),
        "hostname" => texts::is_hostname(text),
        "ipv4" => ipv4(text).is_some() || (text.contains('.') && text.parse::<Ipv6Addr>().is_ok()),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        "isbn" => texts::is_isbn10(text) || texts::is_isbn13(text),
        "isbn10" => texts::is_isbn10(text),
        "isbn13" => texts::is_isbn13(text),
        "creditcard" => texts::is_credit_card(text),
        "ssn" => texts::is_social_security_number(text),
        "hexcolor" => is_hex_color(text),
        "rgbcolor" => texts::is_rgb_color(text),
        "byte" => texts::is_base64(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => texts::is_duration(text),
        "k8sshortname" => text.len() <= 63 && names::is_dns_label(text),
        "k8slongname" => text.len() <= 253 && names::is_dns_subdomain(text),
        _ => true,
    }
}

/// Four decimal numbers; zeros may lead, as in Go's old parser.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut bytes = [0_u8; 4];
    let mut parts = text.split('.');
    for byte in &mut bytes {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        *byte = part.trim_start_matches('0').parse().or_else(|_| zeros(part)).ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(bytes))
}

fn zeros(part: &str) -> Result<u8, ()> {
    if part.bytes().all(|digit| digit == b'0') { Ok(0) } else { Err(()) }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let plain = !bits.is_empty() && bits.bytes().all(|digit| digit.is_ascii_digit());
    let bits: u32 = bits.parse().unwrap_or(u32::MAX);
    match ipv4(address) {
        Some(_) => plain && bits <= 32,
        None => plain && bits <= 128 && address.parse::<Ipv6Addr>().is_ok(),
    }
}

/// Six, eight or twenty bytes, in pairs with colons or dashes, or in fours with dots.
fn is_mac(text: &str) -> bool {
    let separator = ['-', ':', '.'].into_iter().find(|separator| text.contains(*separator));
    let Some(separator) = separator else { return false };
    let width = if separator == '.' { 4 } else { 2 };
    let parts: Vec<&str> = text.split(separator).collect();
    let hexadecimal = |part: &&str| part.len() == width && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    [6, 8, 20].contains(&(parts.len() * width / 2)) && parts.iter().all(hexadecimal)
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut digits = Vec::with_capacity(32);
    let mut rest = text;
    for (index, width) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(part) = rest.get(..width) else { return false };
        digits.extend_from_slice(part.as_bytes());
        rest = &rest[width..];
    }
    let variant = matches!(digits[16], b'8' | b'9' | b'a' | b'b' | b'A' | b'B');
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| digits[12] == version && (version == b'3' || variant))
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    [3, 6].contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_date(text: &str) -> bool {
    let shaped = text.len() == 10
        && text.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shaped && text.parse::<jiff::civil::Date>().is_ok()
}

/// RFC 3339, but only as far as Kubernetes looks: hours to 23, minutes and seconds to 59, any offset.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some(clock) = text.get(..8) else { return false };
    let shaped = clock.bytes().enumerate().all(|(index, byte)| match index {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    shaped
        && &clock[..2] <= "23"
        && &clock[3..5] <= "59"
        && &clock[6..] <= "59"
        && is_zone(fraction(&text[8..]))
}

/// The text after a fraction. Kubernetes' expression takes any one character for the decimal point.
fn fraction(text: &str) -> &str {
    let Some(point) = text.chars().next().filter(|letter| *letter != '\n') else { return text };
    let digits = &text[point.len_utf8()..];
    let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
    if end > 0 && !is_zone(text) { &digits[end..] } else { text }
}

fn is_zone(text: &str) -> bool {
    let offset = |text: &str| {
        let bytes = text.as_bytes();
        matches!(bytes, [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()))
    };
    text == "z" || offset(text)
}
