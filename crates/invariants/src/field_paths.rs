//! Field paths: `fieldsV1` of owners is written back as it was read, and a JSONPath with a limit finds a prefix of
//! what it finds without one.

use apimachinery::jsonpath::JsonPath;
use merge::apply::managed_fields_read_again;
use serde_json::{Value, json};

use crate::{json, lines};

/// No path leads to more values.
const FOUND_MAX: usize = 100_000;

pub fn invariant(input: &[u8]) {
    let Some([fields, path, document]) = lines(input) else { return };
    let entry = |fields: Value| json!([{ "manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields }]);
    for list in json(fields).into_iter().flat_map(|fields| [entry(fields.clone()), fields]) {
        if let Ok(Some(written)) = managed_fields_read_again(&list) {
            assert_eq!(managed_fields_read_again(&written), Ok(Some(written.clone())), "{list}");
        }
    }
    let Ok(path) = JsonPath::parse(path) else { return };
    let document = json(document).unwrap_or_default();
    let found = path.find(&document).unwrap_or_default();
    assert!(found.len() <= FOUND_MAX, "{} found", found.len());
    assert_eq!(path.first(&document), found.first().copied());
}
