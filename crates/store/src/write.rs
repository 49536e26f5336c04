//! A write request: the change, and its precondition (compare-and-swap). Knows nothing of how or where it is stored.

use std::sync::Arc;

use bytes::Bytes;

use crate::{Limit, Revision};

/// One change of one key, made only if its expectation holds.
#[derive(Clone, Debug)]
pub struct Write {
    /// The table; it comes into being with its first key.
    pub table: Arc<str>,
    /// The key inside the table.
    pub key: Arc<str>,
    /// What must be there for the change to be made.
    pub expect: Expect,
    /// How much there may be in the table under the first part of the key, if the change adds to it.
    pub limits: Vec<Limit>,
    /// The change itself.
    pub change: Change,
}

/// What a write wants to find under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there, or nothing.
    Any,
    /// Nothing.
    Absent,
    /// The entry that was last written at this revision.
    Revision(Revision),
}

/// What happens to the key.
#[derive(Clone, Debug)]
pub enum Change {
    /// The key gets this value.
    Put(Payload),
    /// The key goes away; the payload is the last state that watchers are shown. Deleting a key that is
    /// not there is a conflict, because there would be nothing to show.
    Delete(Payload),
}

/// The bytes of a value, with the place where the store writes the revision it assigns.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The value without its revision.
    pub bytes: Bytes,
    /// Where the decimal digits of the revision are inserted; an offset past the end means the end.
    pub revision_at: Option<usize>,
}

impl Change {
    pub(crate) fn payload(&self) -> &Payload {
        match self {
            Change::Put(payload) | Change::Delete(payload) => payload,
        }
    }
}

impl Payload {
    /// A payload that is stored as it is.
    pub fn plain(bytes: impl Into<Bytes>) -> Payload {
        Payload { bytes: bytes.into(), revision_at: None }
    }

    /// The bytes as they are stored under `revision`.
    ///
    /// Always a copy of exact size: the caller's bytes may be a slice of a much larger buffer, which an
    /// entry that lives for months must not keep alive.
    pub fn at(&self, revision: Revision) -> Bytes {
        let Some(offset) = self.revision_at else { return Bytes::copy_from_slice(&self.bytes) };
        let digits = revision.to_string();
        let (before, after) = self.bytes.split_at(offset.min(self.bytes.len()));
        let mut bytes = Vec::with_capacity(self.bytes.len() + digits.len());
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(after);
        Bytes::from(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &'static str, revision_at: Option<usize>, expected: &str) {
        let payload = Payload { bytes: Bytes::from_static(bytes.as_bytes()), revision_at };
        assert_eq!(payload.at(1205), expected.as_bytes());
    }

    #[test]
    fn the_revision_is_inserted_where_asked() {
        check("plain", None, "plain");
        check("[]", Some(1), "[1205]");
        check("", Some(0), "1205");
        check("rv", Some(2), "rv1205");
        check("rv", Some(99), "rv1205");
    }
}
