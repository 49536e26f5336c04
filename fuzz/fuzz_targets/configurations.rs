//! Looks for bytes that break the law of this name in `crates/laws`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| laws::check("configurations", input));
