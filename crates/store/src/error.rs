//! Error types, one for each operation whose causes callers distinguish.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Counter, Revision};

/// The disk did not do what was asked; cheap to clone because one failure answers a group of writes.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{action}: {source}")]
pub struct StorageError {
    /// What was being done, as a verb phrase.
    pub action: String,
    /// What the operating system said.
    pub source: Arc<io::Error>,
}

impl StorageError {
    /// Whether there is no room: the disk is full, or a file may not become larger.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self.source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }

    pub(crate) fn new(action: impl Into<String>, source: io::Error) -> StorageError {
        StorageError { action: action.into(), source: Arc::new(source) }
    }
}

/// Why a write or a compaction did not happen.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// The expectation did not hold, or there was nothing to delete.
    #[error("the key is {}", found(.current))]
    Conflict {
        /// The revision of the entry that is there, if there is one.
        current: Option<Revision>,
    },
    /// The table name, the key or the value is longer than the store takes.
    #[error("{what} of {bytes} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// Which part is too large.
        what: &'static str,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// There would be more under the first part of the key than the write allows.
    #[error("there would be {next} where at most {max} are allowed")]
    LimitReached {
        /// Which number is at its limit.
        counter: Counter,
        /// What it would become.
        next: u64,
        /// What it may be.
        max: u64,
    },
    /// The disk is full or failing. Nothing is visible to readers; after a failed sync it is unknown
    /// whether the write is found when the store is opened again.
    #[error("write to the store: {0}")]
    Storage(#[from] StorageError),
    /// A compaction asked for a revision that has not been written yet.
    #[error("revision {asked} is in the future: the newest is {newest}")]
    Future {
        /// The revision that was asked for.
        asked: Revision,
        /// The newest revision.
        newest: Revision,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

fn found(current: &Option<Revision>) -> String {
    current.map_or("not there".to_owned(), |revision| format!("at revision {revision}"))
}

/// Why a read has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The revision was compacted away.
    #[error("the revision was compacted: the oldest that can be read is {oldest}")]
    Compacted {
        /// The oldest revision that can still be read, and after which a watch can start.
        oldest: Revision,
    },
    /// The revision has not been written yet.
    #[error("the revision is in the future: the newest is {newest}")]
    Future {
        /// The newest revision.
        newest: Revision,
    },
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Compaction passed the watch before it had taken all events.
    #[error("the watch fell behind compaction: the oldest revision is {oldest}")]
    Compacted {
        /// The oldest revision after which a watch can start.
        oldest: Revision,
    },
    /// The store was closed, and everything before that has been delivered.
    #[error("the store is closed")]
    Closed,
}

/// Why a directory cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{} is in use by another process; stop that one or use another directory", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// The operating system refused something.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was being done, as a verb phrase.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file was written by a version of the store that this one does not know.
    #[error("{} has format version {found}, this program reads version {known}; use a newer version of \
             longshore", file.display())]
    Version {
        /// The file.
        file: PathBuf,
        /// Its version.
        found: u32,
        /// The version this program writes.
        known: u32,
    },
    /// Values are sealed with a key that was not given.
    #[error("{} contains values that are encrypted with key {key}, which was not given; nothing was \
             changed", file.display())]
    Encrypted {
        /// The file.
        file: PathBuf,
        /// The name of the key.
        key: String,
    },
    /// A file is damaged in a way that no crash explains.
    #[error(
        "{} is corrupt at byte {offset}: {what}; nothing was changed: restore the directory from a backup, \
         or see docs/store-format.md on keeping what precedes the damage",
        file.display()
    )]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
}
