//! Invariants of every parser of untrusted input: one function per language that takes bytes and panics if the
//! invariant is violated. The fuzz targets search for such bytes, and a test replays the corpus that they kept.

mod configurations;
mod decisions;
mod expressions;
mod field_paths;
mod patches;
mod paths;
mod protobuf;
mod schemas;
mod selectors;
mod tokens;

/// A invariant: does nothing with bytes that obey it, and panics with those that break it.
pub type Law = fn(&[u8]);

/// Every invariant by its name, which is also that of its fuzz target and of the folder of its corpus.
pub const ALL: [(&str, Law); 14] = [
    ("api_selectors", selectors::invariant),
    ("configurations", configurations::invariant),
    ("expressions", expressions::invariant),
    ("field_paths", field_paths::invariant),
    ("images", decisions::images),
    ("json_pointers", decisions::json_pointers),
    ("patches", patches::invariant),
    ("paths", paths::invariant),
    ("patterns", decisions::patterns),
    ("protobuf", protobuf::invariant),
    ("quantities", decisions::quantities),
    ("schemas", schemas::invariant),
    ("selectors", decisions::selectors),
    ("tokens", tokens::invariant),
];

/// Holds the input against the invariant of this name.
pub fn check(name: &str, input: &[u8]) {
    let invariant = ALL.iter().find(|(known, _)| *known == name);
    invariant.expect("the name of a invariant").1(input);
}

/// The first lines of an input that is text; what is missing is empty, and the last takes the rest.
fn lines<const COUNT: usize>(input: &[u8]) -> Option<[&str; COUNT]> {
    let mut all = std::str::from_utf8(input).ok()?.splitn(COUNT, '\n');
    Some(std::array::from_fn(|_| all.next().unwrap_or_default()))
}

/// The JSON of a line.
fn json(line: &str) -> Option<serde_json::Value> {
    serde_json::from_str(line).ok()
}

/// Levels of nesting; a scalar has none.
fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
