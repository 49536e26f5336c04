//! Finds single values in the bytes of a JSON object without building it: lists and watches ask tens of
//! thousands of objects for one label. Must only be given JSON that was parsed or written before; on
//! anything else it finds nothing, or something that is not there, and never panics.

use std::borrow::Cow;

/// The bytes of the value at a path of keys.
pub(super) fn find<'a>(object: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    path.iter().try_fold(object, |object, key| member(object, key))
}

/// A JSON string as text, null and other kinds of values as nothing.
pub(super) fn text(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    match inner.contains(&b'\\') {
        true => serde_json::from_slice::<String>(value).ok().map(Cow::Owned),
        false => std::str::from_utf8(inner).ok().map(Cow::Borrowed),
    }
}

/// The first element of a JSON array.
pub(super) fn first(array: &[u8]) -> Option<&[u8]> {
    let start = blank_end(array, 0);
    if array.get(start) != Some(&b'[') {
        return None;
    }
    let start = blank_end(array, start + 1);
    let end = value_end(array, start)?;
    (array.get(start) != Some(&b']')).then_some(&array[start..end])
}

fn member<'a>(object: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let mut at = blank_end(object, 0);
    if object.get(at) != Some(&b'{') {
        return None;
    }
    loop {
        at = blank_end(object, at + 1);
        let key_end = string_end(object, at)?;
        let key = &object[at..key_end];
        at = blank_end(object, key_end);
        if object.get(at) != Some(&b':') {
            return None;
        }
        let start = blank_end(object, at + 1);
        let end = value_end(object, start)?;
        if text(key).is_some_and(|key| key == wanted) {
            return Some(&object[start..end]);
        }
        at = blank_end(object, end);
        if object.get(at) != Some(&b',') {
            return None;
        }
    }
}

fn blank_end(bytes: &[u8], from: usize) -> usize {
    let blanks = bytes.iter().skip(from).take_while(|byte| byte.is_ascii_whitespace());
    from + blanks.count()
}

/// Where the string ends that starts with the quote at `from`.
fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    if bytes.get(from) != Some(&b'"') {
        return None;
    }
    let mut at = from + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn value_end(bytes: &[u8], from: usize) -> Option<usize> {
    match bytes.get(from)? {
        b'"' => string_end(bytes, from),
        b'{' | b'[' => nested_end(bytes, from),
        _ => {
            let scalar = bytes[from..].iter().take_while(|byte| !is_scalar_end(**byte)).count();
            Some(from + scalar)
        }
    }
}

fn is_scalar_end(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace()
}

fn nested_end(bytes: &[u8], from: usize) -> Option<usize> {
    let (mut at, mut depth) = (from, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}
