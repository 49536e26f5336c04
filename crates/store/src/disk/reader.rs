//! Reads a file back, frame by frame, and decides whether what follows a bad frame is a torn tail or corruption.

use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use super::files::{Files, Handle};
use super::frame::{
    FILE_HEADER_BYTES, FORMAT_VERSION, FRAME_HEADER_BYTES, FileHeader, FileKind, FrameHeader, HeaderError,
};
use crate::OpenError;
use crate::encryption::Refusal;

const BUFFER_BYTES: usize = 1 << 20;

/// A file that is read from its start.
pub(super) struct FileReader {
    path: PathBuf,
    header: FileHeader,
    input: BufReader<Source>,
    payload: Vec<u8>,
    /// Where the frame that was read last begins.
    offset: u64,
    /// Where the next one begins.
    next: u64,
    len: u64,
}

/// What is wrong with what a frame holds.
pub(super) enum Wrong {
    /// It is damaged.
    Malformed(String),
    /// It is sealed and cannot be opened.
    Encrypted(Refusal),
}

/// What comes next in a file.
pub(super) enum Next<'a> {
    Frame(FrameHeader, &'a [u8]),
    /// The file ends here.
    End,
    /// There are more bytes, but they are no frame.
    Bad(&'static str),
}

impl FileReader {
    /// Opens a file and reads its header.
    pub(super) fn open(files: &dyn Files, name: &str, kind: FileKind) -> Result<FileReader, OpenError> {
        let path = files.directory().join(name);
        let fail = |source| OpenError::Io { action: "read", path: path.clone(), source };
        let file = files.open(name).map_err(fail)?;
        let len = file.len().map_err(fail)?;
        let mut input = BufReader::with_capacity(BUFFER_BYTES, Source { file, offset: 0 });
        let mut header = Vec::new();
        input.by_ref().take(FILE_HEADER_BYTES as u64).read_to_end(&mut header).map_err(fail)?;
        let header = FileHeader::decode(kind, &header).map_err(|error| match error {
            HeaderError::Damaged(what) => {
                OpenError::Corrupt { file: path.clone(), offset: 0, what: what.to_owned() }
            }
            HeaderError::Version(found) => {
                OpenError::Version { file: path.clone(), found, known: FORMAT_VERSION }
            }
        })?;
        let next = FILE_HEADER_BYTES as u64;
        Ok(FileReader { path, header, input, payload: Vec::new(), offset: 0, next, len })
    }

    pub(super) fn header(&self) -> &FileHeader {
        &self.header
    }

    pub(super) fn next(&mut self) -> Result<Next<'_>, OpenError> {
        self.offset = self.next;
        let left = self.len - self.offset;
        if left == 0 {
            return Ok(Next::End);
        }
        if left < FRAME_HEADER_BYTES as u64 {
            return Ok(Next::Bad("a frame header is cut off"));
        }
        let mut header = [0; FRAME_HEADER_BYTES];
        self.input.read_exact(&mut header).map_err(|source| self.io_error(source))?;
        let Some(header) = FrameHeader::decode(&header) else {
            return Ok(Next::Bad("a frame header does not match its checksum"));
        };
        let size = FRAME_HEADER_BYTES as u64 + u64::from(header.payload_bytes);
        if left < size {
            return Ok(Next::Bad("a frame is cut off"));
        }
        self.payload.resize(header.payload_bytes as usize, 0);
        let read = self.input.read_exact(&mut self.payload);
        read.map_err(|source| self.io_error(source))?;
        if !header.matches(&self.payload) {
            return Ok(Next::Bad("a frame does not match its checksum"));
        }
        self.next = self.offset + size;
        Ok(Next::Frame(header, &self.payload))
    }

    /// Where the frame that was read last begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// An error that names the frame that was read last.
    pub(super) fn corrupt(&self, what: impl Into<String>) -> OpenError {
        self.corrupt_at(self.offset, what)
    }

    pub(super) fn corrupt_at(&self, offset: u64, what: impl Into<String>) -> OpenError {
        OpenError::Corrupt { file: self.path.clone(), offset, what: what.into() }
    }

    /// An error about what a frame holds.
    pub(super) fn wrong(&self, wrong: Wrong) -> OpenError {
        match wrong {
            Wrong::Malformed(what) => self.corrupt(what),
            Wrong::Encrypted(Refusal::Unknown(key)) => OpenError::Encrypted { file: self.path.clone(), key },
            Wrong::Encrypted(Refusal::Changed(key)) => {
                self.corrupt(format!("a value that was encrypted with key {key} cannot be decrypted with it"))
            }
        }
    }

    /// The bytes from the frame that was read last to the end of the file.
    pub(super) fn rest(&self) -> Result<Vec<u8>, OpenError> {
        let file = &*self.input.get_ref().file;
        let mut rest = vec![0; (self.len - self.offset) as usize];
        let mut filled = 0;
        while filled < rest.len() {
            match file.read_at(&mut rest[filled..], self.offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) => return Err(self.io_error(error)),
            }
        }
        rest.truncate(filled);
        Ok(rest)
    }

    fn io_error(&self, source: io::Error) -> OpenError {
        OpenError::Io { action: "read", path: self.path.clone(), source }
    }
}

/// Where in `rest`, behind a bad frame, a good one begins. Each frame is synced before the next is written,
/// so a crash cannot leave a bad one in front of a good one: if there is one, something acknowledged was
/// damaged later.
pub(super) fn good_frame_behind(rest: &[u8]) -> Option<usize> {
    (1..rest.len()).find(|&offset| {
        let Some(header) = FrameHeader::decode(&rest[offset..]) else { return false };
        let start = offset + FRAME_HEADER_BYTES;
        let payload = rest.get(start..start.saturating_add(header.payload_bytes as usize));
        payload.is_some_and(|payload| header.matches(payload))
    })
}

/// A file as a stream.
struct Source {
    file: Box<dyn Handle>,
    offset: u64,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
