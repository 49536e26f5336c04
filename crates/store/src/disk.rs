//! The durable backend: a write-ahead log in segments of bounded size, and snapshots that replace old segments. The
//! format is described in docs/store-format.md. Knows nothing of the callers that wait for a write.

mod files;
mod frame;
mod log;
mod reader;
mod recover;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::files::Handle;
pub(crate) use self::files::{Files, RealFiles};
use self::frame::{FrameKind, FrameWriter};
use self::log::{AppendError, Log};
use self::recover::{Found, FoundLog};
pub(crate) use self::snapshot::{Installed, Task};
use crate::backend::Backend;
use crate::index::{Index, Record};
use crate::{Encryption, OpenError, Options, Revision, Stats, StorageError};

/// A directory with the log and the newest snapshot.
pub(crate) struct Disk {
    files: Arc<dyn Files>,
    store: u64,
    encryption: Arc<Encryption>,
    /// Up to here something on disk is not sealed as it would be now.
    stale: Option<Revision>,
    segment_bytes: u64,
    /// Log files that are complete, oldest first.
    closed: Vec<ClosedLog>,
    log: Log,
    snapshot: Option<Revision>,
    /// The newest revision in the log.
    last: Revision,
    /// Why nothing can be written until the directory is opened again.
    broken: Option<StorageError>,
    /// How large the largest write is that there was no room for; none while writes succeed.
    failed_bytes: Option<usize>,
    counters: Arc<Counters>,
}

struct ClosedLog {
    first: Revision,
    last: Revision,
    bytes: u64,
}

/// What the backend has done, for statistics.
#[derive(Default)]
pub(crate) struct Counters {
    log_bytes: AtomicU64,
    snapshot_bytes: AtomicU64,
    groups: AtomicU64,
    syncs: AtomicU64,
    snapshots: AtomicU64,
    broken: AtomicBool,
    /// Why the last write failed; none if it did not. Held for moments.
    failure: Mutex<Option<String>>,
}

impl Counters {
    pub(crate) fn fill(&self, stats: &mut Stats) {
        stats.log_bytes = self.log_bytes.load(Ordering::Relaxed);
        stats.snapshot_bytes = self.snapshot_bytes.load(Ordering::Relaxed);
        stats.groups = self.groups.load(Ordering::Relaxed);
        stats.syncs = self.syncs.load(Ordering::Relaxed);
        stats.snapshots = self.snapshots.load(Ordering::Relaxed);
        stats.refuses_writes = self.broken.load(Ordering::Relaxed);
    }

    /// Why nothing can be written any more until the store is opened again; none while that may change by itself.
    pub(crate) fn gave_up(&self) -> Option<String> {
        self.broken.load(Ordering::Acquire).then(|| self.last_failure().unwrap_or_default())
    }

    /// Why the last write failed; none if it did not.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.failure().clone()
    }

    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the outcome of a write, and logs when it changes.
    fn note(&self, failed: Option<&StorageError>) {
        let mut failure = self.failure();
        match (failure.is_some(), failed) {
            (false, Some(error)) => {
                tracing::error!(%error, "writes fail, so the store rejects them; reads still work. Check \
                    whether the disk is full");
            }
            (true, None) => tracing::info!("writes succeed again"),
            (false, None) | (true, Some(_)) => {}
        }
        *failure = failed.map(StorageError::to_string);
    }

    /// Records why nothing can be written any more until the store is opened again.
    pub(crate) fn give_up(&self, why: &str) {
        // The reason is there before another thread reads it.
        *self.failure() = Some(why.to_owned());
        self.broken.store(true, Ordering::Release);
    }
}

/// Opens a directory and fills an empty index from it.
pub(crate) fn open(
    files: Arc<dyn Files>,
    options: &Options,
    encryption: Arc<Encryption>,
    index: &Index,
) -> Result<Disk, OpenError> {
    let mut found = recover::recover(&*files, index, &encryption)?;
    let last = index.revision();
    let store = found.store.unwrap_or_else(|| RandomState::new().hash_one(0));
    // The names that recovery went by must be durable before anything is removed or added because of them.
    files.sync_directory().map_err(io_error("sync", files.directory().to_owned()))?;
    for name in &found.obsolete {
        files.remove(name).map_err(io_error("remove", files.directory().join(name)))?;
    }
    let log = open_log(&*files, &mut found, store, last, options.segment_bytes)?;
    let mut closed: Vec<ClosedLog> = Vec::new();
    let nexts = found.logs.iter().skip(1).map(|log| log.first).chain([log.first()]);
    for (log, next) in found.logs.iter().zip(nexts) {
        closed.push(ClosedLog { first: log.first, last: next - 1, bytes: log.len });
    }
    let counters = Arc::new(Counters::default());
    counters.snapshot_bytes.store(found.snapshot.map_or(0, |(_, bytes)| bytes), Ordering::Relaxed);
    let snapshot = found.snapshot.map(|(revision, _)| revision);
    let segment_bytes = options.segment_bytes;
    let stale = encryption.is_stale().then_some(last);
    let mut disk = Disk {
        files,
        store,
        encryption,
        stale,
        segment_bytes,
        closed,
        log,
        snapshot,
        last,
        broken: None,
        failed_bytes: None,
        counters,
    };
    if stale.is_some() {
        // The stale data then has log files of its own, which can be deleted as soon as their history is compacted.
        disk.rotate();
    }
    disk.count_log_bytes();
    Ok(disk)
}

/// Goes on with the newest log file, without the tail that a crash may have left, or starts the first one.
fn open_log(
    files: &dyn Files,
    found: &mut Found,
    store: u64,
    last: Revision,
    segment_bytes: u64,
) -> Result<Log, OpenError> {
    let Some(newest) = found.logs.pop() else {
        return Log::create(files, store, last + 1, segment_bytes).map_err(|error| {
            let (AppendError::Undone(error) | AppendError::Broken(error)) = error;
            let source = io::Error::new(error.source.kind(), error.to_string());
            OpenError::Io { action: "start a log in", path: files.directory().to_owned(), source }
        });
    };
    let name = log::name(newest.first);
    let path = files.directory().join(&name);
    let mut file = files.open(&name).map_err(io_error("open", path.clone()))?;
    if newest.len > newest.end {
        file.set_len(newest.end).map_err(io_error("truncate the torn end of", path.clone()))?;
    }
    settle(&mut *file, &newest).map_err(io_error("sync", path))?;
    Ok(Log::resume(file, newest.first, newest.end, segment_bytes))
}

/// Makes the last frame durable before readers see what it holds. The process that wrote it may have died before its
/// sync; or the sync may have failed, and then only rewriting the frame makes a later sync write it.
fn settle(file: &mut dyn Handle, newest: &FoundLog) -> io::Result<()> {
    let Some(offset) = newest.last_frame else { return Ok(()) };
    let mut frame = vec![0; (newest.end - offset) as usize];
    let mut filled = 0;
    while filled < frame.len() {
        match file.read_at(&mut frame[filled..], offset + filled as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    file.write_at(&frame, offset)?;
    file.sync()
}

fn io_error(action: &'static str, path: PathBuf) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io { action, path, source }
}

impl Disk {
    pub(crate) fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.files.directory().to_owned()
    }

    /// The snapshot to write now that everything up to `revision` is compacted; `None` while the log that
    /// it would replace is small beside what it would write.
    pub(crate) fn snapshot_due(&self, revision: Revision, live_bytes: u64) -> Option<Task> {
        let dead = self.closed.iter().take_while(|log| log.last <= revision);
        let dead_bytes: u64 = dead.clone().map(|log| log.bytes).sum();
        let is_stale = self.stale.is_some_and(|stale| stale <= revision) && self.snapshot != Some(revision);
        if !is_stale && dead_bytes < self.segment_bytes.max(live_bytes / 2) {
            return None;
        }
        let old = self.snapshot.map(snapshot::name);
        let obsolete = dead.map(|log| log::name(log.first)).chain(old).collect();
        let (files, encryption) = (self.files.clone(), self.encryption.clone());
        Some(Task { files, store: self.store, encryption, revision, obsolete })
    }

    /// Takes note of a snapshot that is there and of the log files that went.
    pub(crate) fn installed(&mut self, installed: &Installed) {
        self.snapshot = Some(installed.revision);
        self.closed.retain(|log| log.last > installed.revision);
        if self.stale.take_if(|stale| *stale <= installed.revision).is_some() {
            tracing::info!("everything on disk is encrypted with the newest key");
        }
        self.counters.snapshot_bytes.store(installed.bytes, Ordering::Relaxed);
        self.counters.snapshots.fetch_add(1, Ordering::Relaxed);
        self.count_log_bytes();
    }

    fn append_frame(&mut self, frame: &[u8]) -> Result<(), StorageError> {
        self.check_broken()?;
        self.rotate_if_full();
        self.check_broken()?;
        let appended = self.log.append(frame);
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.count_log_bytes();
        let appended = appended.map_err(|error| self.note(error));
        self.note_outcome(frame.len(), appended.as_ref().err());
        appended
    }

    /// Notes how a write went. One that succeeds says nothing about a larger one that did not: a disk that is nearly full
    /// takes small writes, and is still too full.
    fn note_outcome(&mut self, bytes: usize, failed: Option<&StorageError>) {
        match (failed, self.failed_bytes) {
            (Some(_), before) => self.failed_bytes = before.max(Some(bytes)),
            (None, Some(before)) if bytes < before => return,
            (None, _) => self.failed_bytes = None,
        }
        self.counters.note(failed);
    }

    /// Looks whether writes that failed for want of room would succeed now.
    pub(crate) fn try_again(&mut self) {
        if let (None, Some(bytes)) = (&self.broken, self.failed_bytes) {
            let found = self.log.preallocate(bytes).map_err(|error| self.note(error));
            self.note_outcome(bytes, found.as_ref().err());
        }
    }

    fn check_broken(&self) -> Result<(), StorageError> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Starts a new log file behind a full one. Without one the old file goes on growing, which is no
    /// reason to refuse a write.
    fn rotate_if_full(&mut self) {
        if self.log.end() >= self.segment_bytes {
            self.rotate();
        }
    }

    /// Starts a new log file, unless there is nothing in this one.
    fn rotate(&mut self) {
        if self.log.first() > self.last {
            return;
        }
        match Log::create(&*self.files, self.store, self.last + 1, self.segment_bytes) {
            Ok(log) => {
                let mut full = std::mem::replace(&mut self.log, log);
                // Zeros behind the end of a full file are as good as no zeros.
                let _ = full.trim();
                self.closed.push(ClosedLog { first: full.first(), last: self.last, bytes: full.end() });
            }
            Err(error) => _ = self.note(error),
        }
    }

    /// Remembers an error after which the state of the disk is unknown.
    fn note(&mut self, error: AppendError) -> StorageError {
        match error {
            AppendError::Undone(error) => error,
            AppendError::Broken(error) => {
                tracing::error!(%error, "the store rejects all writes until it is reopened");
                let action = format!("{} (the store rejects all writes until it is reopened)", error.action);
                let error = StorageError { action, ..error };
                self.broken = Some(error.clone());
                self.counters.give_up(&error.to_string());
                error
            }
        }
    }

    fn count_log_bytes(&self) {
        let closed: u64 = self.closed.iter().map(|log| log.bytes).sum();
        self.counters.log_bytes.store(closed + self.log.end(), Ordering::Relaxed);
    }
}

impl Backend for Disk {
    fn append(&mut self, records: &[Record]) -> Result<(), StorageError> {
        let mut frame = FrameWriter::new();
        records.iter().try_for_each(|record| frame.add_write(record, &self.encryption))?;
        self.append_frame(frame.finish(FrameKind::Writes, self.last + 1, None))?;
        self.last += records.len() as u64;
        self.counters.groups.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn compact(&mut self, revision: Revision) -> Result<(), StorageError> {
        self.append_frame(FrameWriter::new().finish(FrameKind::Compacted, revision, None))
    }

    fn close(&mut self) -> Result<(), StorageError> {
        if self.broken.is_some() {
            // The failed write has already returned the error to its caller.
            return Ok(());
        }
        self.append_frame(FrameWriter::new().finish(FrameKind::Closed, self.last, None))?;
        self.log.trim().map_err(|error| StorageError::new("trim the log", error))
    }
}
