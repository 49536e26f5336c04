//! The store: a revisioned (MVCC), durable key-value log. Knows nothing of Kubernetes objects.
//!
//! Every write gets the next revision; reads see any revision that compaction has not passed; a watch is
//! a cursor over a table's events. The index lives in memory and serves all reads; a backend (memory or
//! disk) makes a group of writes durable before readers can see them. The file format is described in
//! `docs/store-format.md`.

mod backend;
mod commit;
mod disk;
mod encryption;
mod error;
mod index;
mod options;
mod read;
mod scan;
mod store;
mod tally;
mod watch;
mod write;
mod writer;

pub use encryption::Encryption;
pub use error::{OpenError, ReadError, StorageError, WatchError, WriteError};
pub use options::Options;
pub use read::{Batch, Entry, Event, EventKind, Page, Range, Stats, Usage};
pub use scan::Scan;
pub use store::Store;
pub use tally::{Counter, Limit, MEASURES, Measure, Measured, Tally};
pub use watch::Watch;
pub use write::{Change, Expect, Payload, Write};

/// The number of a write: 1 for the first one of a store, one more for each that follows.
pub type Revision = u64;
