//! The parsers of policies: nothing panics, and what was parsed is written back the same.

use std::collections::BTreeMap;

use decide::image::Image;
use decide::json_pointer::JsonPointer;
use decide::quantity::Amount;
use decide::selector::pattern::Pattern;
use serde_json::Value;

use crate::{json, lines};

/// Namespace patterns: what is read matches its own exact items.
pub fn patterns(input: &[u8]) {
    let Some([text]) = lines(input) else { return };
    let Ok(pattern) = Pattern::parse(text) else { return };
    for item in text.split(',') {
        let name = item.strip_suffix('*').unwrap_or(item);
        assert!(pattern.matches(name), "{text:?} does not match {name:?}");
    }
}

/// Label selectors as JSON, and labels: matching gives one answer.
pub fn selectors(input: &[u8]) {
    let Some([selector, labels]) = lines(input) else { return };
    let Ok(selector) = serde_json::from_str::<api::LabelSelector>(selector) else { return };
    let labels: BTreeMap<String, String> = serde_json::from_str(labels).unwrap_or_default();
    let first = decide::selector::labels_match(&selector, &labels);
    assert_eq!(first, decide::selector::labels_match(&selector, &labels));
}

/// JSON pointers, and a document: what is read is written back the same, and following one never panics.
pub fn json_pointers(input: &[u8]) {
    let Some([text, document]) = lines(input) else { return };
    let Ok(pointer) = text.parse::<JsonPointer>() else { return };
    assert_eq!(pointer.to_string(), text);
    let Some(document) = json(document) else { return };
    let _ = pointer.get(&document);
    // Each may refuse; none may panic.
    let _ = pointer.add(&mut document.clone(), Value::Null);
    let _ = pointer.replace(&mut document.clone(), Value::Null);
    let _ = pointer.remove(&mut document.clone());
}

/// Quantities: what is written reads as the same amount.
pub fn quantities(input: &[u8]) {
    let Some([text]) = lines(input) else { return };
    let Ok(amount) = text.parse::<Amount>() else { return };
    let written = amount.to_string();
    assert_eq!(written.parse::<Amount>().ok(), Some(amount), "{text:?} is written {written:?}");
    let _ = (amount.units(), amount.milli_units());
}

/// Image references: what is read is written back the same.
pub fn images(input: &[u8]) {
    let Some([text]) = lines(input) else { return };
    let Ok(image) = text.parse::<Image>() else { return };
    assert_eq!(
        image.to_string().parse::<Image>().ok().map(|again| again.to_string()),
        Some(image.to_string())
    );
}
