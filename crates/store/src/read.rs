//! The types of reads and watches: entries, pages and events. Knows nothing of where they are kept.

use std::sync::Arc;

use bytes::Bytes;

use crate::Revision;

/// A key with its value at some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key inside its table.
    pub key: Arc<str>,
    /// The value.
    pub value: Bytes,
    /// The revision that created the key.
    pub created: Revision,
    /// The revision that last wrote it.
    pub revision: Revision,
}

/// One write that took effect, as watchers see it. It is encoded and kept once for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key inside its table.
    pub key: Arc<str>,
    /// The revision of this write.
    pub revision: Revision,
    /// The revision that created the key.
    pub created: Revision,
    /// The value after a put, the last state at a delete.
    pub value: Bytes,
    /// The value before; `None` when this write created the key. Boxed because most entries of a store
    /// were written once, and each holds an event.
    pub previous: Option<Box<Bytes>>,
    /// Whether the key is there afterwards.
    pub kind: EventKind,
}

/// Whether a key is there after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It is there, with the event's value.
    Put,
    /// It is gone.
    Delete,
}

impl Event {
    pub(crate) fn entry(&self) -> Entry {
        Entry {
            key: self.key.clone(),
            value: self.value.clone(),
            created: self.created,
            revision: self.revision,
        }
    }

    /// The bytes that statistics count for it.
    pub(crate) fn size(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

/// How much is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many keys there are.
    pub keys: u64,
    /// How many bytes they and their values have.
    pub bytes: u64,
}

/// Which keys of a table to read, and when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range<'a> {
    /// Only keys that start with this; the empty prefix is the whole table.
    pub prefix: &'a str,
    /// Only keys that sort after this one.
    pub after: Option<&'a str>,
    /// At most so many entries.
    pub limit: Option<usize>,
    /// The table as it was at this revision; `None` is now.
    pub at: Option<Revision>,
}

/// The answer to a range read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries in key order.
    pub entries: Vec<Entry>,
    /// The revision at which all of them were read.
    pub revision: Revision,
    /// How many entries of the range follow this page.
    pub remaining: usize,
}

/// Some events of a watch, in the order of their revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The events; never empty.
    pub events: Vec<Arc<Event>>,
    /// Everything that the watch asked for up to this revision has now been delivered.
    pub revision: Revision,
}

/// How large the store is and what it has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The newest revision that readers see.
    pub revision: Revision,
    /// Reads before this revision are refused.
    pub compacted: Revision,
    /// Keys that exist now.
    pub live_keys: u64,
    /// Bytes of their keys and values.
    pub live_bytes: u64,
    /// Events that a watch can still ask for.
    pub history_events: u64,
    /// Bytes of their keys and values; those that are still live are counted in `live_bytes` too.
    pub history_bytes: u64,
    /// Bytes of log files on disk.
    pub log_bytes: u64,
    /// Bytes of the snapshot on disk.
    pub snapshot_bytes: u64,
    /// Groups of writes appended to the log.
    pub groups: u64,
    /// How often the log was forced to disk.
    pub syncs: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// The disk failed: reads go on, writes are refused until the store is opened again.
    pub refuses_writes: bool,
}
