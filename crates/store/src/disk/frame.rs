//! The bytes of the file format: file headers, frames, records. See docs/store-format.md. Knows nothing of
//! files.

use std::sync::Arc;

use bytes::Bytes;

use crate::index::Record;
use crate::{Encryption, Entry, Event, EventKind, Revision, StorageError};

/// The version of the format that this program reads and writes.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// The length of a file header.
pub(crate) const FILE_HEADER_BYTES: usize = 36;
/// The length of a frame header.
pub(crate) const FRAME_HEADER_BYTES: usize = 32;

const LOG_MAGIC: &[u8; 8] = b"LSHORLOG";
const SNAPSHOT_MAGIC: &[u8; 8] = b"LSHORSNP";
const FRAME_MAGIC: &[u8; 4] = b"LSFR";

/// Which of the two kinds of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Log,
    Snapshot,
}

/// What the first bytes of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) kind: FileKind,
    /// A random number that all files of one store share.
    pub(crate) store: u64,
    /// Of a log the revision of its first write, of a snapshot the revision it shows.
    pub(crate) revision: Revision,
}

/// Why a file header cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Damaged(&'static str),
    Version(u32),
}

impl FileHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_HEADER_BYTES);
        bytes.extend_from_slice(self.kind.magic());
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.store.to_le_bytes());
        bytes.extend_from_slice(&self.revision.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    pub(crate) fn decode(kind: FileKind, bytes: &[u8]) -> Result<FileHeader, HeaderError> {
        let mut input = Input(bytes);
        let header =
            input.take(FILE_HEADER_BYTES - 4).ok_or(HeaderError::Damaged("the header is cut off"))?;
        let crc = input.u32().ok_or(HeaderError::Damaged("the header is cut off"))?;
        let (mut fields, cut_off) = (Input(header), HeaderError::Damaged("the header is cut off"));
        if fields.take(8) != Some(kind.magic()) {
            return Err(HeaderError::Damaged("it is not a file of this store"));
        }
        let Some(version) = fields.u32() else { return Err(cut_off) };
        if version != FORMAT_VERSION {
            return Err(HeaderError::Version(version));
        }
        if crc32fast::hash(header) != crc {
            return Err(HeaderError::Damaged("the header does not match its checksum"));
        }
        let (_, Some(store), Some(revision)) = (fields.u32(), fields.u64(), fields.u64()) else {
            return Err(cut_off);
        };
        Ok(FileHeader { kind, store, revision })
    }
}

impl FileKind {
    fn magic(self) -> &'static [u8] {
        match self {
            FileKind::Log => LOG_MAGIC,
            FileKind::Snapshot => SNAPSHOT_MAGIC,
        }
    }
}

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// One group of writes; the revision is that of the first.
    Writes = 1,
    /// The history up to the revision is gone.
    Compacted = 2,
    /// The store was closed at the revision.
    Closed = 3,
    /// Some entries of a snapshot.
    Entries = 4,
    /// A snapshot ends here; the count is that of all its entries.
    End = 5,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<FrameKind> {
        use FrameKind::*;
        [Writes, Compacted, Closed, Entries, End].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// What the first bytes of a frame say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) payload_bytes: u32,
    pub(crate) count: u32,
    pub(crate) revision: Revision,
    payload_crc: u32,
}

impl FrameHeader {
    /// Reads a header; `None` when the bytes are not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<FrameHeader> {
        let (mut input, mut fields) = (Input(bytes), Input(bytes));
        let header = input.take(FRAME_HEADER_BYTES - 4)?;
        if fields.take(4)? != FRAME_MAGIC || input.u32()? != crc32fast::hash(header) {
            return None;
        }
        let kind = FrameKind::from_byte(fields.take(4)?[0])?;
        let (payload_bytes, count, revision) = (fields.u32()?, fields.u32()?, fields.u64()?);
        Some(FrameHeader { kind, payload_bytes, count, revision, payload_crc: fields.u32()? })
    }

    pub(crate) fn matches(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes as usize && crc32fast::hash(payload) == self.payload_crc
    }
}

/// A frame that is being put together.
pub(crate) struct FrameWriter {
    bytes: Vec<u8>,
    count: u32,
}

impl FrameWriter {
    pub(crate) fn new() -> FrameWriter {
        FrameWriter { bytes: vec![0; FRAME_HEADER_BYTES], count: 0 }
    }

    /// Adds a write to a log frame.
    pub(crate) fn add_write(&mut self, record: &Record, encryption: &Encryption) -> Result<(), StorageError> {
        let event = &record.event;
        let value = encryption.close(&record.table, &event.key, &event.value)?;
        self.bytes.push(match event.kind {
            EventKind::Put => 1,
            EventKind::Delete => 2,
        });
        self.add_lengths(&record.table, &event.key, &value);
        self.add_contents(&record.table, &event.key, &value);
        Ok(())
    }

    /// Adds an entry to a snapshot frame.
    pub(crate) fn add_entry(
        &mut self,
        table: &str,
        entry: &Entry,
        encryption: &Encryption,
    ) -> Result<(), StorageError> {
        let value = encryption.close(table, &entry.key, &entry.value)?;
        self.add_lengths(table, &entry.key, &value);
        self.bytes.extend_from_slice(&entry.created.to_le_bytes());
        self.bytes.extend_from_slice(&entry.revision.to_le_bytes());
        self.add_contents(table, &entry.key, &value);
        Ok(())
    }

    /// Completes the header and hands out the whole frame.
    pub(crate) fn finish(&mut self, kind: FrameKind, revision: Revision, count: Option<u32>) -> &[u8] {
        let payload = &self.bytes[FRAME_HEADER_BYTES..];
        let mut header = Vec::with_capacity(FRAME_HEADER_BYTES);
        header.extend_from_slice(FRAME_MAGIC);
        header.extend_from_slice(&[kind as u8, 0, 0, 0]);
        header.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        header.extend_from_slice(&count.unwrap_or(self.count).to_le_bytes());
        header.extend_from_slice(&revision.to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        self.bytes[..FRAME_HEADER_BYTES].copy_from_slice(&header);
        &self.bytes
    }

    // The limits on names and values, checked before a write gets here, keep the lengths in range.
    fn add_lengths(&mut self, table: &str, key: &str, value: &[u8]) {
        self.bytes.extend_from_slice(&(table.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    }

    fn add_contents(&mut self, table: &str, key: &str, value: &[u8]) {
        self.bytes.extend_from_slice(table.as_bytes());
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }
}

/// A write as it stands in a log frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WriteRecord<'a> {
    pub(crate) kind: EventKind,
    pub(crate) table: &'a str,
    pub(crate) key: &'a str,
    pub(crate) value: &'a [u8],
}

/// Bytes that are read from the front.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// The next write of a log frame; `None` when the bytes are not one.
    pub(crate) fn write(&mut self) -> Option<WriteRecord<'a>> {
        let kind = match self.take(1)?[0] {
            1 => EventKind::Put,
            2 => EventKind::Delete,
            _ => return None,
        };
        let (table, key, value) = (self.u16()?, self.u16()?, self.u32()?);
        Some(WriteRecord {
            kind,
            table: self.text(table)?,
            key: self.text(key)?,
            value: self.take(value as usize)?,
        })
    }

    /// The next entry of a snapshot frame with its table; `None` when the bytes are not one.
    pub(crate) fn entry(&mut self) -> Option<(&'a str, Event)> {
        let (table, key, value) = (self.u16()?, self.u16()?, self.u32()?);
        let (created, revision) = (self.u64()?, self.u64()?);
        let (table, key) = (self.text(table)?, Arc::from(self.text(key)?));
        let value = Bytes::copy_from_slice(self.take(value as usize)?);
        Some((table, Event { key, revision, created, value, previous: None, kind: EventKind::Put }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn text(&mut self, bytes: u16) -> Option<&'a str> {
        std::str::from_utf8(self.take(bytes.into())?).ok()
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}
