//! Syntax checks of label keys and values, names and JSON pointers: true or false, no messages.

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_qualified_part(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(inside) && ends(bytes.first()) && ends(bytes.last())
}

/// A DNS name of at most 253 characters.
pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && !text.is_empty() && text.split('.').all(is_dns_label)
}

/// Lower-case letters, digits and `-`, with a letter or digit at both ends.
pub(super) fn is_dns_label(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
}

/// `name` or `prefix/name`.
pub(super) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(text),
    }
}

/// Empty, or like the name part of a key.
pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified_part(text)
}

/// RFC 6901: empty, or `/` before each part and `~` only as `~0` or `~1`.
pub(super) fn is_json_pointer(text: &str) -> bool {
    let escaped = text.split('~').skip(1).all(|rest| rest.starts_with('0') || rest.starts_with('1'));
    (text.is_empty() || text.starts_with('/')) && escaped
}
