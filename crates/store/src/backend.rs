//! The storage backend trait (append, compact, close), and the in-memory backend.

use crate::index::Record;
use crate::{Revision, StorageError};

/// Keeps writes so that they are found again.
pub(crate) trait Backend: Send {
    /// Makes all of `records` durable, or none of them. Their revisions follow those of the last call
    /// that succeeded without a gap.
    fn append(&mut self, records: &[Record]) -> Result<(), StorageError>;

    /// Makes it durable that the history up to `revision` is gone.
    fn compact(&mut self, revision: Revision) -> Result<(), StorageError>;

    /// Says that nothing more comes.
    fn close(&mut self) -> Result<(), StorageError>;
}

/// Keeps nothing beyond the index: for tests, simulations and throw-away control planes.
pub(crate) struct Memory;

impl Backend for Memory {
    fn append(&mut self, _: &[Record]) -> Result<(), StorageError> {
        Ok(())
    }

    fn compact(&mut self, _: Revision) -> Result<(), StorageError> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), StorageError> {
        Ok(())
    }
}
