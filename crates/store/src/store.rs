//! The store handle: reads go to the index, writes to the committer of the backend.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::backend::Memory;
use crate::commit::Committer;
use crate::disk::{self, Counters, RealFiles};
use crate::index::Index;
use crate::writer::Writer;
use crate::{
    Encryption, Entry, Measure, OpenError, Options, Page, Range, ReadError, Revision, Scan, Stats,
    StorageError, Tally, Usage, Watch, Write, WriteError,
};

/// A revisioned key-value store; clones are handles of the same one.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    index: Arc<Index>,
    committing: Committing,
}

enum Committing {
    /// The caller commits, alone in its group. The lock makes writes one after the other.
    Inline(Mutex<Committer<Memory>>),
    /// A thread commits whatever is waiting as one group.
    Thread { writer: Writer, counters: Arc<Counters> },
}

impl Store {
    /// A store that lives as long as its handles. Writes are done before the call first yields, so a
    /// simulation on a paused clock stays deterministic.
    pub fn in_memory() -> Store {
        let index = Arc::new(Index::default());
        let value_bytes_max = Options::default().value_bytes_max;
        let committer = Committer { index: index.clone(), backend: Memory, value_bytes_max };
        Store { inner: Arc::new(Inner { index, committing: Committing::Inline(Mutex::new(committer)) }) }
    }

    /// Opens the store in a directory, which is created if it is not there. Blocks until all of it is in
    /// memory.
    pub fn open(directory: &Path, options: Options) -> Result<Store, OpenError> {
        Store::open_encrypted(directory, options, Encryption::none())
    }

    /// The same, with encryption at rest for some tables. Values that are not encrypted with the first key yet are
    /// rewritten once their history is compacted.
    pub fn open_encrypted(
        directory: &Path,
        options: Options,
        encryption: Encryption,
    ) -> Result<Store, OpenError> {
        Store::open_files(RealFiles::lock(directory)?, options, encryption)
    }

    pub(crate) fn open_files(
        files: impl disk::Files + 'static,
        options: Options,
        encryption: Encryption,
    ) -> Result<Store, OpenError> {
        let index = Arc::new(Index::default());
        let disk = disk::open(Arc::new(files), &options, Arc::new(encryption), &index)?;
        let counters = disk.counters();
        let value_bytes_max = options.value_bytes_max;
        let committer = Committer { index: index.clone(), backend: disk, value_bytes_max };
        let writer = Writer::start(committer)?;
        Ok(Store { inner: Arc::new(Inner { index, committing: Committing::Thread { writer, counters } }) })
    }

    /// Makes a change durable and returns its revision; readers see it no earlier. If the future is
    /// dropped, the write may or may not happen.
    pub async fn write(&self, write: Write) -> Result<Revision, WriteError> {
        match &self.inner.committing {
            Committing::Inline(committer) => self.inline(committer, |committer| {
                committer.commit(&[write]).pop().unwrap_or(Err(WriteError::Closed))
            }),
            Committing::Thread { writer, counters } => {
                writer.write(write).await.map_err(|error| match (error, counters.gave_up()) {
                    (WriteError::Closed, Some(why)) => {
                        StorageError::new("write", std::io::Error::other(why)).into()
                    }
                    (error, _) => error,
                })
            }
        }
    }

    /// Forgets all history up to `revision`: older reads and watches from there answer "compacted". On
    /// disk it returns when the space is free again, if enough had gathered to be worth freeing.
    pub async fn compact(&self, revision: Revision) -> Result<(), WriteError> {
        match &self.inner.committing {
            Committing::Inline(committer) => {
                self.inline(committer, |committer| committer.compact(revision).map(|_| ()))
            }
            Committing::Thread { writer, .. } => writer.compact(revision).await,
        }
    }

    /// Compresses the history without forgetting anything, except for the newest `whole` events of each table, which
    /// watchers are about to read. Takes a few microseconds for each write since the last time, so it must not run on
    /// a thread that others wait for.
    pub fn pack(&self, whole: usize) {
        self.inner.index.pack(whole);
    }

    /// Finishes the writes that wait, refuses all later ones, ends the watches and releases the directory.
    pub async fn close(self) -> Result<(), StorageError> {
        match &self.inner.committing {
            Committing::Inline(_) => {
                self.inner.index.close();
                Ok(())
            }
            Committing::Thread { writer, .. } => writer.close().await,
        }
    }

    /// The newest version of a key.
    pub fn get(&self, table: &str, key: &str) -> Option<Entry> {
        Some(self.inner.index.newest(table, key)?.entry())
    }

    /// A key as it was at a revision.
    pub fn get_at(&self, table: &str, key: &str, at: Revision) -> Result<Option<Entry>, ReadError> {
        self.inner.index.get_at(table, key, at)
    }

    /// The entries of a range in key order, all of the same revision.
    pub fn range(&self, table: &str, range: Range<'_>) -> Result<Page, ReadError> {
        self.inner.index.range(table, range)
    }

    /// The same, for callers that read entries one at a time.
    pub fn scan(&self, table: &str, range: Range<'_>) -> Result<Scan, ReadError> {
        self.inner.index.found(table, range).map(Scan::new)
    }

    /// The tables that hold at least one key, in order.
    pub fn tables(&self) -> Vec<Arc<str>> {
        self.inner.index.tables()
    }

    /// Follows the keys of a table that start with `prefix`, from the first event after a revision.
    pub fn watch(&self, table: &str, prefix: &str, after: Revision) -> Result<Watch, ReadError> {
        let (cursor, wake) = self.inner.index.cursor(table, prefix, after)?;
        Ok(Watch::new(self.inner.index.clone(), cursor, wake))
    }

    /// The newest revision that readers see.
    pub fn revision(&self) -> Revision {
        self.inner.index.revision()
    }

    /// The oldest revision that can be read and after which a watch can start.
    pub fn compacted(&self) -> Revision {
        self.inner.index.compacted()
    }

    /// Derives numbers from the values of a table, those that are there and all that come, which tallies sum up. Reads the
    /// whole table once.
    pub fn measure(&self, table: &str, measure: Measure) {
        self.inner.index.measure(table, measure);
    }

    /// What there is in one table under keys whose first part, up to a slash, is this one.
    pub fn tally(&self, table: &str, part: &str) -> Tally {
        self.inner.index.tally(table, part)
    }

    /// How much there is in all tables under keys whose first part, up to a slash, is this one.
    pub fn usage(&self, part: &str) -> Usage {
        self.inner.index.usage(part)
    }

    /// How much there is in all tables.
    pub fn total_usage(&self) -> Usage {
        self.inner.index.total_usage()
    }

    /// The first parts of keys that rank highest by how much there is under them, the highest first. Those of rank 0 are
    /// left out.
    pub fn largest_usages(&self, count: usize, rank: impl Fn(&str, Usage) -> u64) -> Vec<(Box<str>, Usage)> {
        self.inner.index.largest_usages(count, rank)
    }

    /// How large the store is and what it has done.
    pub fn stats(&self) -> Stats {
        let mut stats = self.inner.index.stats();
        if let Committing::Thread { counters, .. } = &self.inner.committing {
            counters.fill(&mut stats);
        }
        stats
    }

    /// Why nothing can be written now; none as long as writes succeed.
    pub fn write_failure(&self) -> Option<String> {
        match &self.inner.committing {
            Committing::Inline(_) => None,
            Committing::Thread { counters, .. } => counters.last_failure(),
        }
    }

    /// Why nothing can be written until the store is opened again: its writer panicked, or a sync failed. None while
    /// writes succeed or may succeed again by themselves, as they do after a disk was full.
    pub fn gave_up(&self) -> Option<String> {
        match &self.inner.committing {
            Committing::Inline(_) => None,
            Committing::Thread { counters, .. } => counters.gave_up(),
        }
    }

    /// Probes whether failed writes would succeed now, so that [`Self::write_failure`] stays accurate while no client
    /// writes.
    pub async fn try_writing_again(&self) {
        if let Committing::Thread { writer, .. } = &self.inner.committing
            && self.write_failure().is_some()
        {
            // A store that has been closed says so itself.
            let _ = writer.try_again().await;
        }
    }

    fn inline<T>(
        &self,
        committer: &Mutex<Committer<Memory>>,
        act: impl FnOnce(&mut Committer<Memory>) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        if self.inner.index.is_closed() {
            return Err(WriteError::Closed);
        }
        act(&mut committer.lock().expect("no code panics while it commits"))
    }
}

impl Drop for Inner {
    /// A store on disk ends its watches when its thread ends, one in memory here.
    fn drop(&mut self) {
        self.index.close();
    }
}
