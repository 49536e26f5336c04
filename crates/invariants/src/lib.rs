//! Invariants of every parser of untrusted input: one function per language that takes bytes and panics if the
//! invariant is violated. The fuzz targets search for such bytes, and a test replays the corpus that they kept.

mod configurations;
mod decisions;
mod expressions;
mod field_paths;
mod input;
mod patches;
mod paths;
mod protobuf;
mod schemas;
mod selectors;
mod tokens;

use input::{depth, json, lines};

/// An invariant: does nothing with bytes that obey it, and panics with those that break it.
pub type Invariant = fn(&[u8]);

/// Every invariant by its name, which is also that of its fuzz target and of the folder of its corpus.
pub const ALL: [(&str, Invariant); 14] = [
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
    invariant.expect("the name of an invariant").1(input);
}
