//! Selectors of lists and watches, and an object: parsing round-trips, and the byte scanner finds what the JSON
//! parser finds.

use apimachinery::selector::{FieldSelector, LabelSelector, SelectableFields};
use serde_json::Value;

use crate::{json, lines};

pub fn invariant(input: &[u8]) {
    let Some([labels, fields, object]) = lines(input) else { return };
    let object = json(object).unwrap_or_default();
    let bytes = object.to_string();
    if let Ok(selector) = LabelSelector::parse(labels) {
        let written = selector.to_string();
        assert_eq!(
            LabelSelector::parse(&written).as_ref(),
            Ok(&selector),
            "{labels:?} is written {written:?}"
        );
        same_answer(&selector, &object, &bytes);
    }
    if let Some(selector) = json(labels).and_then(|value| LabelSelector::from_value(&value).ok()) {
        same_answer(&selector, &object, &bytes);
    }
    let custom = SelectableFields::custom(true, [".spec.color", ".spec.size", ".status.on"]);
    for offered in [SelectableFields::builtin("", "Pod"), SelectableFields::builtin("", "Event"), custom] {
        let Ok(selector) = FieldSelector::parse(fields, &offered) else { continue };
        let matches = selector.matches_raw(bytes.as_bytes());
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if selector.exact("metadata.name").is_some_and(|wanted| wanted != name) {
            assert!(!matches, "{fields:?} does not ask for {bytes}");
        }
    }
}

fn same_answer(selector: &LabelSelector, object: &Value, bytes: &str) {
    let slow = selector.matches_labels(&object["metadata"]["labels"]);
    assert_eq!(selector.matches_raw(bytes.as_bytes()), slow, "{selector} on {bytes}");
}
