//! The writes that follow from reconciling one object. Reconciling is a pure function of the cache; the runtime does
//! the writing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::key::{Key, Kind};

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// A new object.
    Create { kind: Kind, object: Value },
    /// A JSON patch of an object, pinned to the state that was reconciled.
    Patch { key: Key, part: Part, patch: Value, last: bool },
    /// The end of an object, at once.
    Delete { key: Key, uid: String },
    /// A pod gets its node.
    Bind { key: Key, node: String },
}

/// Which part of an object a patch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Whole,
    Status,
}

/// The result of reconciling one object.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    pub writes: Vec<Write>,
    /// When to reconcile again although nothing changed.
    pub again: Option<Duration>,
}

impl Plan {
    /// Nothing is to be done.
    pub fn nothing() -> Plan {
        Plan::default()
    }

    /// One write, and nothing else.
    pub fn one(write: Write) -> Plan {
        Plan { writes: vec![write], again: None }
    }
}

impl From<Vec<Write>> for Plan {
    fn from(writes: Vec<Write>) -> Plan {
        Plan { writes, again: None }
    }
}

/// The write that gives an object this status, if it has another one. It is the last word: the object
/// needs no further reconcile because of it.
pub fn status(key: &Key, object: &Value, status: Value) -> Option<Write> {
    (object["status"] != status).then(|| {
        let patch = json!([pin(object), { "op": "add", "path": "/status", "value": status }]);
        Write::Patch { key: key.clone(), part: Part::Status, patch, last: true }
    })
}

/// The first operation of a patch: it fails if the object has changed since it was reconciled.
pub fn pin(object: &Value) -> Value {
    pin_at(object["metadata"]["resourceVersion"].as_str().unwrap_or_default())
}

/// See [`pin`].
pub fn pin_at(revision: &str) -> Value {
    json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": revision })
}

/// The operation that sets an annotation, given the annotations that are there.
pub fn annotate(metadata: &Value, name: &str, value: &str) -> Value {
    match metadata["annotations"].is_object() {
        true => {
            let path = format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"));
            json!({ "op": "add", "path": path, "value": value })
        }
        false => json!({ "op": "add", "path": "/metadata/annotations", "value": { name: value } }),
    }
}
