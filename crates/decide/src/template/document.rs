//! A compact object: stored as JSON text, which takes a sixth of the memory of the parsed tree, and parsed again when
//! the whole object is needed. Knows nothing of what the object means.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// What of the metadata is not kept: who owns which field is most of an object and asked once, the rest is kept
/// elsewhere.
const LEFT_OUT: [&str; 3] = ["annotations", "labels", "managedFields"];

/// Deeper than any API server lets objects nest, and less than what can be read again.
const DEPTH_MAX: usize = 120;

/// An object as text, without the omitted fields. Copies share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document(Arc<str>);

impl Document {
    /// None if the object nests too deep.
    pub(super) fn of(object: &Value) -> Option<Document> {
        let text = || serde_json::to_string(&Bare(object)).expect("a value always serialises");
        is_shallow(object, DEPTH_MAX).then(|| Document(text().into()))
    }

    /// The parsed object, without the omitted fields.
    pub(super) fn read(&self) -> Value {
        serde_json::from_str(&self.0).expect("it was written from a value that nests little")
    }
}

/// Serializes an object without the omitted fields, directly, because a copy of the tree costs as much as the text.
struct Bare<'a>(&'a Value);

/// The same of its metadata.
struct BareMetadata<'a>(&'a Value);

impl Serialize for Bare<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.0 else { return self.0.serialize(serializer) };
        let mut written = serializer.serialize_map(Some(fields.len()))?;
        for (name, value) in fields {
            match name.as_str() {
                "metadata" => written.serialize_entry(name, &BareMetadata(value))?,
                _ => written.serialize_entry(name, value)?,
            }
        }
        written.end()
    }
}

impl Serialize for BareMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.0 else { return self.0.serialize(serializer) };
        serializer.collect_map(fields.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())))
    }
}

fn is_shallow(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| is_shallow(item, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|field| is_shallow(field, depth - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let numbers = json!([0.1, 1e-7, 1.797_693_134_862_315_7e308, 5e-324, u64::MAX, i64::MIN, -0.0]);
        let object = json!({ "a": numbers, "b": { "": null, "\u{1f980}\n": [true, "\"\\"] } });
        assert_eq!(Document::of(&object).expect("it is shallow").read(), object);
    }

    #[test]
    fn what_is_left_out_of_metadata_stays_elsewhere() {
        let fields = json!({ "labels": 1, "annotations": 2, "managedFields": [], "name": "n" });
        let read =
            Document::of(&json!({ "metadata": fields, "spec": fields })).expect("it is shallow").read();
        assert_eq!(read, json!({ "metadata": { "name": "n" }, "spec": fields }));
        assert_eq!(
            Document::of(&json!({ "metadata": 1 })).expect("it is shallow").read(),
            json!({ "metadata": 1 })
        );
    }

    #[test]
    fn what_could_not_be_read_again_is_not_taken() {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        let deepest = nested(DEPTH_MAX);
        assert_eq!(Document::of(&deepest).map(|document| document.read()), Some(deepest));
        assert_eq!(Document::of(&nested(DEPTH_MAX + 1)), None);
    }
}
