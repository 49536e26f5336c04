//! The active log segment: appends frames, and recovers or marks the file as broken when that fails.

use std::io;

use super::files::{Files, Handle};
use super::frame::{FILE_HEADER_BYTES, FileHeader, FileKind};
use crate::{Revision, StorageError};

/// How far ahead of the log's end the file is filled with zeros: syncing bytes that overwrite others needs
/// no change of the file system's own records, which is most of what a small sync costs.
const PREALLOCATED_BYTES: u64 = 1 << 20;

/// The end of the log.
pub(super) struct Log {
    file: Box<dyn Handle>,
    first: Revision,
    /// Behind the last good frame.
    end: u64,
    /// Up to here the file has bytes, zeros from `end` on.
    filled: u64,
    room_bytes: u64,
}

/// How an append failed.
pub(super) enum AppendError {
    /// The file is as it was before: more can be appended once there is room.
    Undone(StorageError),
    /// The content of the file is unknown: the kernel may have dropped pages that it could not write.
    Broken(StorageError),
}

/// The name of the log file whose first write has this revision.
pub(super) fn name(first: Revision) -> String {
    format!("log-{first:020}.ls")
}

impl Log {
    /// Starts a file. It gets its name only when its header is durable, so no crash leaves half a header.
    pub(super) fn create(
        files: &dyn Files,
        store: u64,
        first: Revision,
        room_bytes: u64,
    ) -> Result<Log, AppendError> {
        let name = name(first);
        let temporary = format!("{name}.tmp");
        let header = FileHeader { kind: FileKind::Log, store, revision: first }.encode();
        let started = files.create(&temporary).and_then(|mut file| {
            file.write_at(&header, 0)?;
            file.sync()?;
            files.rename(&temporary, &name)?;
            Ok(file)
        });
        let file = started.map_err(|error| {
            // Only a courtesy: what is left of it is removed at the next start.
            let _ = files.remove(&temporary);
            AppendError::Undone(StorageError::new(format!("create {name}"), error))
        })?;
        files.sync_directory().map_err(|error| {
            AppendError::Broken(StorageError::new(format!("sync the name of {name}"), error))
        })?;
        Ok(Log::resume(file, first, FILE_HEADER_BYTES as u64, room_bytes))
    }

    /// Goes on with a file that ends at `end`.
    pub(super) fn resume(file: Box<dyn Handle>, first: Revision, end: u64, room_bytes: u64) -> Log {
        Log { file, first, end, filled: end, room_bytes: room_bytes.min(PREALLOCATED_BYTES) }
    }

    pub(super) fn first(&self) -> Revision {
        self.first
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Appends a frame and waits until it is on disk.
    pub(super) fn append(&mut self, frame: &[u8]) -> Result<(), AppendError> {
        let end = self.end + frame.len() as u64;
        self.make_room(end).map_err(|error| self.broken("truncate", error))?;
        if let Err(error) = self.file.write_at(frame, self.end) {
            let error = StorageError::new(self.action("append to"), error);
            self.cut_back().map_err(|error| self.broken("truncate", error))?;
            return Err(AppendError::Undone(error));
        }
        self.file.sync().map_err(|error| self.broken("sync", error))?;
        self.end = end;
        self.filled = self.filled.max(end);
        Ok(())
    }

    /// Whether there is room for a frame of this size and some more, after an append that found none: fills the file
    /// behind the end, durably.
    pub(super) fn preallocate(&mut self, bytes: usize) -> Result<(), AppendError> {
        let zeros = vec![0; bytes.max(self.room_bytes as usize)];
        if let Err(error) = self.file.write_at(&zeros, self.end) {
            let error = StorageError::new(self.action("preallocate space in"), error);
            self.cut_back().map_err(|error| self.broken("truncate", error))?;
            return Err(AppendError::Undone(error));
        }
        self.file.sync().map_err(|error| self.broken("sync", error))?;
        self.filled = self.filled.max(self.end + zeros.len() as u64);
        Ok(())
    }

    /// Gives back the room behind the end, when nothing more will be appended.
    pub(super) fn trim(&mut self) -> io::Result<()> {
        if self.filled > self.end { self.cut_back() } else { Ok(()) }
    }

    /// Fills the file up to `end` and some more. Where there is no room to spare it goes without.
    fn make_room(&mut self, end: u64) -> io::Result<()> {
        if end <= self.filled {
            return Ok(());
        }
        let zeros = vec![0; (end + self.room_bytes - self.filled) as usize];
        match self.file.write_at(&zeros, self.filled) {
            Ok(()) => self.filled += zeros.len() as u64,
            Err(_) => self.cut_back()?,
        }
        Ok(())
    }

    /// Cuts off everything behind the last good frame, durably: what was answered with an error must not
    /// be found at the next start.
    fn cut_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.filled = self.end;
        self.file.sync()
    }

    fn action(&self, verb: &str) -> String {
        format!("{verb} {}", name(self.first))
    }

    fn broken(&self, verb: &str, error: io::Error) -> AppendError {
        AppendError::Broken(StorageError::new(self.action(verb), error))
    }
}
