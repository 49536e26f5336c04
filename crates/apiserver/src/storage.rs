//! Objects in the store: their encoding, the compaction of their history, and what the store's errors mean to clients.
//! Must not know requests.

use apimachinery::error::ApiError;
use serde_json::Value;

mod compaction;
pub(crate) mod stored;

pub(crate) use compaction::{HISTORY_BYTES_MAX, HISTORY_KEPT, compact_history};

/// Turns an error of the store into one that clients understand.
pub(crate) fn store_error(error: store::WriteError) -> ApiError {
    match error {
        store::WriteError::TooLarge { .. } => ApiError::bad_request("etcdserver: request is too large"),
        store::WriteError::Storage(error) if error.is_full() => ApiError::insufficient_storage(format!(
            "the disk of the control plane is full: {error}; hint: free some room on it, then writes succeed again \
             without a restart"
        )),
        other => ApiError::internal(other),
    }
}

/// A text field deep in an object, empty where it is not there.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
