//! The digest of the user's part of a template: another digest is a user change, no matter which client wrote it. The
//! algorithm must never change, because the digest is recorded on objects (R1).

use api::labels::is_bookkeeping;
use serde_json::{Map, Value};

/// How deep a template may nest before the rest counts as one leaf; API servers refuse far less.
const DEPTH_MAX: usize = 512;

/// Digest of everything but `status`, `metadata.managedFields`, `metadata.resourceVersion`,
/// `metadata.generation` and the labels and annotations that are bookkeeping. Without users' keys, an
/// absent map and an empty one are the same.
pub fn digest(object: &Value) -> String {
    let mut hash = Fnv::default();
    match object {
        Value::Object(fields) => hash.map(fields, 0, |hash, name, value| match name {
            "status" => {}
            "metadata" => hash.metadata(value),
            _ => hash.field(name, value, 1),
        }),
        other => hash.value(other, 0),
    }
    format!("{:032x}", hash.0)
}

/// FNV-1a with 128 bits: enough against accidental collisions; a user who forges one deceives only themselves.
struct Fnv(u128);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    /// A length before the text, so that no two values run into each other.
    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn field(&mut self, name: &str, value: &Value, depth: usize) {
        self.text(name);
        self.value(value, depth);
    }

    /// Sorted here, because the order of keys in a JSON map depends on how the library was built.
    fn map(&mut self, fields: &Map<String, Value>, depth: usize, each: impl Fn(&mut Fnv, &str, &Value)) {
        let mut sorted: Vec<_> = fields.iter().collect();
        sorted.sort_by(|left, right| left.0.cmp(right.0));
        self.bytes(b"{");
        if depth < DEPTH_MAX {
            for (name, value) in sorted {
                each(self, name, value);
            }
        }
        self.bytes(b"}");
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(true) => self.bytes(b"t"),
            Value::Bool(false) => self.bytes(b"f"),
            Value::Number(number) => {
                self.bytes(b"#");
                self.text(&number.to_string());
            }
            Value::String(text) => {
                self.bytes(b"\"");
                self.text(text);
            }
            Value::Array(items) => {
                self.bytes(b"[");
                if depth < DEPTH_MAX {
                    items.iter().for_each(|item| self.value(item, depth + 1));
                }
                self.bytes(b"]");
            }
            Value::Object(fields) => {
                self.map(fields, depth, |hash, name, value| hash.field(name, value, depth + 1));
            }
        }
    }

    fn metadata(&mut self, metadata: &Value) {
        let Value::Object(fields) = metadata else { return self.field("metadata", metadata, 1) };
        self.text("metadata");
        self.map(fields, 1, |hash, name, value| match name {
            "managedFields" | "resourceVersion" | "generation" => {}
            "labels" | "annotations" => hash.users_pairs(name, value),
            _ => hash.field(name, value, 2),
        });
    }

    fn users_pairs(&mut self, name: &str, value: &Value) {
        let Value::Object(pairs) = value else { return };
        let mut pairs: Vec<_> = pairs.iter().filter(|(key, _)| !is_bookkeeping(key)).collect();
        if pairs.is_empty() {
            return;
        }
        pairs.sort_by(|left, right| left.0.cmp(right.0));
        self.text(name);
        self.bytes(b"{");
        pairs.into_iter().for_each(|(key, value)| self.field(key, value, 3));
        self.bytes(b"}");
    }
}
