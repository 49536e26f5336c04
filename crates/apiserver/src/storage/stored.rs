//! The storage encoding of objects: JSON, with the resourceVersion written in by the store itself, so that the stored
//! bytes are the bytes that are sent. Must not know kinds.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use store::Payload;

/// The bytes of an object with the place where its resourceVersion goes.
pub fn payload(object: &Value) -> Payload {
    let mut bytes = Vec::with_capacity(1024);
    let mut revision_at = None;
    bytes.push(b'{');
    for (index, (key, value)) in object.as_object().into_iter().flatten().enumerate() {
        write_key(&mut bytes, index, key);
        match (key.as_str(), value) {
            ("metadata", Value::Object(metadata)) => revision_at = Some(write_metadata(&mut bytes, metadata)),
            _ => write_value(&mut bytes, value),
        }
    }
    bytes.push(b'}');
    Payload { bytes: Bytes::from(bytes), revision_at }
}

/// Writes the metadata with an empty resourceVersion and says where its digits belong.
fn write_metadata(bytes: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    bytes.extend_from_slice(b"{\"resourceVersion\":\"");
    let revision_at = bytes.len();
    bytes.push(b'"');
    for (key, value) in metadata.iter().filter(|(key, _)| *key != "resourceVersion") {
        write_key(bytes, 1, key);
        write_value(bytes, value);
    }
    bytes.push(b'}');
    revision_at
}

fn write_key(bytes: &mut Vec<u8>, index: usize, key: &str) {
    if index > 0 {
        bytes.push(b',');
    }
    write_value(bytes, key);
    bytes.push(b':');
}

fn write_value(bytes: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(&mut *bytes, value).expect("JSON values always serialise into memory");
}

/// Reads a stored object. What is stored was written by [`payload`], so a failure is damage.
pub fn parse(bytes: &[u8]) -> Value {
    read(bytes)
}

/// The few fields of an object's metadata that controllers need, read without the rest.
#[derive(Debug, Deserialize)]
pub struct Outline {
    /// The facts.
    pub metadata: OutlineMetadata,
}

/// See [`Outline`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutlineMetadata {
    /// metadata.name
    pub name: String,
    /// metadata.namespace
    pub namespace: String,
    /// metadata.uid
    pub uid: String,
    /// metadata.finalizers
    pub finalizers: Vec<String>,
    /// metadata.deletionTimestamp
    pub deletion_timestamp: Option<String>,
    /// metadata.ownerReferences
    pub owner_references: Vec<OwnerReference>,
}

/// One entry of metadata.ownerReferences.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// The owner's group and version.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name.
    pub name: String,
    /// The owner's uid: a namesake is no owner.
    pub uid: String,
    /// Whether a foreground deletion of the owner waits for this object.
    pub block_owner_deletion: bool,
}

/// Reads the outline of a stored object.
pub fn outline(bytes: &[u8]) -> Outline {
    read(bytes)
}

/// Reads the fields of a stored object that `Part` has, and skips the others.
pub fn read<Part: DeserializeOwned>(bytes: &[u8]) -> Part {
    serde_json::from_slice(bytes).expect("the store checks its bytes and holds only JSON objects")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_revision_has_a_place_at_the_root_only() {
        let object = json!({
            "apiVersion": "v1", "kind": "X",
            "metadata": { "name": "a", "resourceVersion": "7" },
            "spec": { "metadata": { "resourceVersion": "" } },
        });
        let payload = payload(&object);
        let mut bytes = payload.bytes.to_vec();
        let at = payload.revision_at.unwrap();
        bytes.splice(at..at, *b"42");
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = "42".into();
        assert_eq!(parse(&bytes), expected);
    }
}
