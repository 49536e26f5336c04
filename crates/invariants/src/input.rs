//! What the invariants read of their input.

/// The first lines of an input that is text; what is missing is empty, and the last takes the rest.
pub(crate) fn lines<const COUNT: usize>(input: &[u8]) -> Option<[&str; COUNT]> {
    let mut all = std::str::from_utf8(input).ok()?.splitn(COUNT, '\n');
    Some(std::array::from_fn(|_| all.next().unwrap_or_default()))
}

/// The JSON of a line.
pub(crate) fn json(line: &str) -> Option<serde_json::Value> {
    serde_json::from_str(line).ok()
}

/// Levels of nesting; a scalar has none.
pub(crate) fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
