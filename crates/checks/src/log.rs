//! The complete write-ahead log of a store: hard links keep its files from the moment they appear, so that compaction
//! does not delete them. They are parsed as docs/store-format.md specifies, not by the code of the store.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a revision did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The object that it is about.
    pub name: String,
    /// Whether the object went.
    pub is_gone: bool,
}

/// What each revision did that is about objects of interest.
pub type Log = BTreeMap<u64, Change>;

/// The poll interval for new files. The store removes a file only once it has 32 MiB, which takes much longer.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A log whose files are kept for as long as this lives.
pub struct SegmentCopier {
    kept: PathBuf,
    stop: Arc<AtomicBool>,
    looking: Option<JoinHandle<io::Result<()>>>,
}

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// What happened to the objects that were asked for.
    pub log: Log,
    /// Up to here the store itself has forgotten.
    pub compacted: u64,
    /// How many files it was in.
    pub files: usize,
}

impl SegmentCopier {
    /// Keeps the log files of a store in another directory of the same file system.
    pub fn start(store: &Path, kept: &Path) -> io::Result<Self> {
        fs::create_dir_all(kept)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (from, to, stopped) = (store.to_owned(), kept.to_owned(), stop.clone());
        let looking = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                keep(&from, &to)?;
                std::thread::sleep(POLL_INTERVAL);
            }
            keep(&from, &to)
        });
        Ok(Self { kept: kept.to_owned(), stop, looking: Some(looking) })
    }

    /// Reads what there is by now of the objects of a table whose keys begin so; names are what follows.
    pub fn read(&self, table: &str, prefix: &str) -> Result<Read, String> {
        let mut names: Vec<PathBuf> = log_files(&self.kept)
            .map_err(|error| error.to_string())?
            .into_iter()
            .map(|(_, path)| path)
            .collect();
        names.sort();
        let mut read = Read { files: names.len(), ..Read::default() };
        let mut expected = 1;
        for path in names {
            let bytes = fs::read(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
            let failed = |why: &str| format!("{}: {why}", path.display());
            let mut file = Input::of(&bytes).ok_or_else(|| failed("no log"))?;
            if file.first != expected {
                return Err(failed(&format!("begins with revision {}, not {expected}", file.first)));
            }
            expected = file.read(table, prefix, &mut read).map_err(|why| failed(&why))?;
        }
        Ok(read)
    }
}

impl Drop for SegmentCopier {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of the thread is ignored: the reader notices a missing file.
        let _ = self.looking.take().map(JoinHandle::join);
    }
}

fn log_files(directory: &Path) -> io::Result<Vec<(std::ffi::OsString, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if text.starts_with("log-") && text.ends_with(".ls") {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn keep(from: &Path, to: &Path) -> io::Result<()> {
    // It may not be there yet.
    let Ok(found) = log_files(from) else { return Ok(()) };
    for (name, path) in found {
        match fs::hard_link(path, to.join(name)) {
            Err(error) if !matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// A log file that is read from its front.
struct Input<'a> {
    /// The revision that it begins with.
    first: u64,
    rest: &'a [u8],
}

const FILE_HEADER_BYTES: usize = 36;
const FRAME_HEADER_BYTES: usize = 32;

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl<'a> Input<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(FILE_HEADER_BYTES)?;
        header.starts_with(b"LSHORLOG").then(|| Self { first: number(&header[24..32]), rest })
    }

    /// Reads to the end of what was written; answers with the revision that comes next.
    fn read(&mut self, table: &str, prefix: &str, read: &mut Read) -> Result<u64, String> {
        let mut expected = self.first;
        while let Some((header, rest)) = self.rest.split_at_checked(FRAME_HEADER_BYTES) {
            if !header.starts_with(b"LSFR") {
                break;
            }
            let (payload, rest) =
                rest.split_at_checked(number(&header[8..12]) as usize).ok_or("a frame is cut off")?;
            if u64::from(crc32fast::hash(payload)) != number(&header[24..28]) {
                return Err(format!("the frame before revision {expected} is damaged"));
            }
            self.rest = rest;
            let revision = number(&header[16..24]);
            match header[4] {
                1 if revision == expected => {
                    expected += number(&header[12..16]);
                    writes(payload, revision, table, prefix, &mut read.log).ok_or("a write is cut off")?;
                }
                1 => return Err(format!("revision {revision} follows, not {expected}")),
                2 => read.compacted = read.compacted.max(revision),
                _ => {}
            }
        }
        // Behind the last frame there is only room that was filled in advance.
        match self.rest.iter().all(|byte| *byte == 0) {
            true => Ok(expected),
            false => Err(format!("what follows revision {} is no frame", expected - 1)),
        }
    }
}

fn writes(mut rest: &[u8], first: u64, table: &str, prefix: &str, log: &mut Log) -> Option<()> {
    for revision in first.. {
        let Some((header, tail)) = rest.split_at_checked(9) else { break };
        let (name, tail) = tail.split_at_checked(number(&header[1..3]) as usize)?;
        let (key, tail) = tail.split_at_checked(number(&header[3..5]) as usize)?;
        (_, rest) = tail.split_at_checked(number(&header[5..9]) as usize)?;
        if name == table.as_bytes()
            && let Some(name) = std::str::from_utf8(key).ok()?.strip_prefix(prefix)
        {
            log.insert(revision, Change { name: name.to_owned(), is_gone: header[0] == 2 });
        }
    }
    rest.is_empty().then_some(())
}

#[cfg(test)]
mod tests;
