//! Looks for bytes that break the invariant of this name in `crates/invariants`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| invariants::check("patches", input));
