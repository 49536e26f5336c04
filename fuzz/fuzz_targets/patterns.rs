//! Namespace patterns of policies: no text makes reading fail otherwise than by an error, and what is read
//! matches its own exact items.
#![no_main]

use decide::selector::pattern::Pattern;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(pattern) = Pattern::parse(text) else { return };
    for item in text.split(',') {
        let name = item.strip_suffix('*').unwrap_or(item);
        assert!(pattern.matches(name), "{text:?} does not match {name:?}");
    }
});
