//! Quantities: what is written reads as the same amount.
#![no_main]

use decide::quantity::Amount;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(amount) = text.parse::<Amount>() else { return };
    let written = amount.to_string();
    assert_eq!(written.parse::<Amount>().ok(), Some(amount), "{text:?} is written {written:?}");
    let _ = (amount.units(), amount.milli_units());
});
