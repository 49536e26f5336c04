//! Snapshots: rewrites the live entries so that old log segments can be deleted. Runs beside the writer: it reads the
//! index at a compacted revision, in slices, and touches no file that the writer writes.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::files::{Files, Handle};
use super::frame::{FileHeader, FileKind, FrameKind, FrameWriter, Input};
use super::reader::{FileReader, Next, Wrong};
use crate::index::{Index, Record};
use crate::{Encryption, OpenError, Revision, StorageError};

/// About how large a frame of entries is.
const FRAME_BYTES: u64 = 1 << 20;
/// How much is written between syncs, so that the log's own syncs never wait for a large backlog.
const SYNC_FRAMES: usize = 4;

/// A snapshot that is to be written.
pub(crate) struct Task {
    pub(super) files: Arc<dyn Files>,
    pub(super) store: u64,
    pub(super) encryption: Arc<Encryption>,
    /// The revision to show; it stays readable until the task is done.
    pub(super) revision: Revision,
    /// The files that are obsolete once the snapshot is durable.
    pub(super) obsolete: Vec<String>,
}

/// A snapshot that is there.
pub(crate) struct Installed {
    pub(super) revision: Revision,
    pub(super) bytes: u64,
}

/// The name of the snapshot of a revision.
pub(super) fn name(revision: Revision) -> String {
    format!("snapshot-{revision:020}.ls")
}

impl Task {
    /// Writes the snapshot, gives it its name once it is durable, and removes what it replaces. A crash at
    /// any point leaves either the old files or the new one complete.
    pub(crate) fn run(self, index: &Index, stop: &AtomicBool) -> Result<Installed, StorageError> {
        let name = name(self.revision);
        let temporary = format!("{name}.tmp");
        let written = self.write(&temporary, index, stop).and_then(|bytes| {
            self.files.rename(&temporary, &name)?;
            self.files.sync_directory()?;
            Ok(bytes)
        });
        let bytes = written.map_err(|error| {
            // Only a courtesy: what is left of it is removed at the next start.
            let _ = self.files.remove(&temporary);
            StorageError::new(format!("write {name}"), error)
        })?;
        for obsolete in &self.obsolete {
            match self.files.remove(obsolete) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StorageError::new(format!("remove {obsolete}"), error));
                }
                _ => {}
            }
        }
        Ok(Installed { revision: self.revision, bytes })
    }

    fn write(&self, name: &str, index: &Index, stop: &AtomicBool) -> io::Result<u64> {
        let mut file = self.files.create(name)?;
        let header = FileHeader { kind: FileKind::Snapshot, store: self.store, revision: self.revision };
        let mut output = Output { file: &mut *file, bytes: 0, frames: 0 };
        output.write(&header.encode())?;
        let mut count = 0;
        for table in index.table_names() {
            count += self.write_table(&table, index, stop, &mut output)?;
        }
        output.write(FrameWriter::new().finish(FrameKind::End, self.revision, Some(count)))?;
        output.file.sync()?;
        Ok(output.bytes)
    }

    fn write_table(
        &self,
        table: &str,
        index: &Index,
        stop: &AtomicBool,
        output: &mut Output<'_>,
    ) -> io::Result<u32> {
        let mut count = 0;
        let mut after: Option<Arc<str>> = None;
        loop {
            let entries = index.slice_at(table, after.as_deref(), self.revision, FRAME_BYTES);
            let Some(last) = entries.last() else { return Ok(count) };
            if stop.load(Ordering::Relaxed) {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "the store is being closed"));
            }
            after = Some(last.key().clone());
            count += entries.len() as u32;
            let mut frame = FrameWriter::new();
            for version in &entries {
                frame.add_entry(table, &version.entry(), &self.encryption).map_err(io::Error::other)?;
            }
            output.write(frame.finish(FrameKind::Entries, self.revision, None))?;
        }
    }
}

struct Output<'a> {
    file: &'a mut dyn Handle,
    bytes: u64,
    frames: usize,
}

impl Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.bytes)?;
        self.bytes += bytes.len() as u64;
        self.frames += 1;
        if self.frames.is_multiple_of(SYNC_FRAMES) { self.file.sync() } else { Ok(()) }
    }
}

/// Fills an empty index from a snapshot and says how large the file is and which store it belongs to. It was
/// durable before it had its name, so anything wrong with it is damage.
pub(super) fn load(
    files: &dyn Files,
    revision: Revision,
    index: &Index,
    encryption: &Encryption,
) -> Result<(u64, u64), OpenError> {
    let mut reader = FileReader::open(files, &name(revision), FileKind::Snapshot)?;
    if reader.header().revision != revision {
        return Err(reader.corrupt("the header names another revision than the file name"));
    }
    let mut count = 0;
    loop {
        let what = match reader.next()? {
            Next::Frame(header, payload) if header.kind == FrameKind::Entries => {
                count += header.count;
                match restore(payload, header.count, index, encryption) {
                    Ok(()) => continue,
                    Err(wrong) => return Err(reader.wrong(wrong)),
                }
            }
            Next::Frame(header, _) if header.kind == FrameKind::End && header.count == count => break,
            Next::Frame(..) => "a frame does not belong here",
            Next::End => "the end is missing",
            Next::Bad(what) => what,
        };
        return Err(reader.corrupt(what));
    }
    index.start_at(revision);
    Ok((reader.len(), reader.header().store))
}

fn restore(payload: &[u8], count: u32, index: &Index, encryption: &Encryption) -> Result<(), Wrong> {
    let malformed = || Wrong::Malformed("an entry is malformed".to_owned());
    let mut input = Input(payload);
    for _ in 0..count {
        let (table, mut event) = input.entry().ok_or_else(malformed)?;
        if let Cow::Owned(value) =
            encryption.decrypt(table, &event.key, &event.value).map_err(Wrong::Encrypted)?
        {
            event.value = value.into();
        }
        let table = index.table_name(&Arc::from(table));
        // What is derived from values is handed in when everything is there.
        index.restore(Record { table, event: Arc::new(event), measured: Default::default() });
    }
    input.is_empty().then_some(()).ok_or_else(malformed)
}
