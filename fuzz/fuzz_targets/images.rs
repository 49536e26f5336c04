//! Image references: what is read is written back the same.
#![no_main]

use decide::image::Image;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(image) = text.parse::<Image>() else { return };
    assert_eq!(image.to_string().parse::<Image>().ok().map(|again| again.to_string()), Some(image.to_string()));
});
