//! Label selectors as JSON against labels: whatever is written, matching gives an answer.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (selector, labels) = input;
    let Ok(selector) = serde_json::from_str::<api::LabelSelector>(selector) else { return };
    let labels: BTreeMap<String, String> = serde_json::from_str(labels).unwrap_or_default();
    let first = decide::selector::labels_match(&selector, &labels);
    assert_eq!(first, decide::selector::labels_match(&selector, &labels));
});
