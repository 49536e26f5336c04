//! Crash recovery on open: which files of a directory are valid, where the log ends, and whether that end is a torn
//! write or corruption. Changes nothing before it knows.

use std::sync::Arc;

use super::files::Files;
use super::frame::{FileKind, FrameHeader, FrameKind, Input};
use super::reader::{FileReader, Next, Wrong, good_frame_behind};
use super::{log, snapshot};
use crate::index::{Index, Record};
use crate::{Encryption, EventKind, OpenError, Revision, commit};

/// What was found.
pub(super) struct Found {
    /// The number that all files of the store share; `None` when there are no files.
    pub(super) store: Option<u64>,
    pub(super) snapshot: Option<(Revision, u64)>,
    /// The log files that count, oldest first.
    pub(super) logs: Vec<FoundLog>,
    /// Obsolete files that a crash left behind.
    pub(super) obsolete: Vec<String>,
}

/// One log file.
pub(super) struct FoundLog {
    pub(super) first: Revision,
    /// Behind the last good frame.
    pub(super) end: u64,
    /// The length of the file.
    pub(super) len: u64,
    /// Where the last good frame begins, if there is one.
    pub(super) last_frame: Option<u64>,
}

/// Fills an empty index from the files of a directory.
pub(super) fn recover(files: &dyn Files, index: &Index, encryption: &Encryption) -> Result<Found, OpenError> {
    let names = list(files)?;
    let mut found = Found { store: None, snapshot: None, logs: Vec::new(), obsolete: names.temporary };
    let (mut snapshots, mut logs) = (names.snapshots, names.logs);
    if let Some(revision) = snapshots.pop() {
        let (bytes, store) = snapshot::load(files, revision, index, encryption)?;
        found.snapshot = Some((revision, bytes));
        found.store = Some(store);
    }
    found.obsolete.extend(snapshots.into_iter().map(snapshot::name));
    // A log file is needed unless the next one begins no later than just behind the snapshot.
    let reached = index.revision().saturating_add(1);
    let covered = logs.iter().skip(1).take_while(|first| **first <= reached).count();
    found.obsolete.extend(logs.drain(..covered).map(log::name));
    if logs.is_empty() && found.snapshot.is_some() {
        let what = "the log that follows the newest snapshot is missing".to_owned();
        return Err(OpenError::Corrupt { file: files.directory().to_owned(), offset: 0, what });
    }
    let mut expected = logs.first().copied().unwrap_or(1);
    if expected > reached {
        let what = format!("the log begins at revision {expected}, the writes from {reached} on are missing");
        let file = files.directory().join(log::name(expected));
        return Err(OpenError::Corrupt { file, offset: 0, what });
    }
    let newest = logs.len().saturating_sub(1);
    for (position, first) in logs.into_iter().enumerate() {
        let mut replay = Replay::open(files, first, expected, &mut found.store, (index, encryption))?;
        found.logs.push(replay.run(position == newest)?);
        expected = replay.expected;
        // A snapshot shows what was durable in the log before, so no crash takes it from there again.
        if position == newest && expected < reached {
            let what = format!("the log ends before revision {expected}, the snapshot shows {}", reached - 1);
            return Err(replay.reader.corrupt(what));
        }
    }
    Ok(found)
}

struct Names {
    snapshots: Vec<Revision>,
    logs: Vec<Revision>,
    temporary: Vec<String>,
}

fn list(files: &dyn Files) -> Result<Names, OpenError> {
    let path = files.directory().to_owned();
    let names = files.list().map_err(|source| OpenError::Io { action: "list", path, source })?;
    let revisions = |prefix: &str, spell: fn(Revision) -> String| -> Vec<Revision> {
        let middle = |name: &String| name.strip_prefix(prefix)?.strip_suffix(".ls")?.parse().ok();
        let named = names.iter().filter_map(|name| Some((name, middle(name)?)));
        named
            .filter(|(name, revision)| *revision > 0 && **name == spell(*revision))
            .map(|(_, revision)| revision)
            .collect()
    };
    let mut snapshots = revisions("snapshot-", snapshot::name);
    let mut logs = revisions("log-", log::name);
    snapshots.sort_unstable();
    logs.sort_unstable();
    Ok(Names {
        snapshots,
        logs,
        temporary: names.into_iter().filter(|name| name.ends_with(".ls.tmp")).collect(),
    })
}

/// One log file on its way into the index.
struct Replay<'a> {
    reader: FileReader,
    index: &'a Index,
    encryption: &'a Encryption,
    first: Revision,
    /// The revision that the next group of writes must begin with.
    expected: Revision,
}

impl<'a> Replay<'a> {
    fn open(
        files: &dyn Files,
        first: Revision,
        expected: Revision,
        store: &mut Option<u64>,
        (index, encryption): (&'a Index, &'a Encryption),
    ) -> Result<Replay<'a>, OpenError> {
        let reader = FileReader::open(files, &log::name(first), FileKind::Log)?;
        let header = *reader.header();
        if header.revision != first {
            return Err(reader.corrupt("the header names another revision than the file name"));
        }
        if first != expected {
            return Err(reader.corrupt(format!("it begins at revision {first}, but {expected} comes next")));
        }
        if *store.get_or_insert(header.store) != header.store {
            return Err(reader.corrupt("it belongs to another store"));
        }
        Ok(Replay { reader, index, encryption, first, expected })
    }

    /// Reads the file to its end. Only the newest file can end in a frame that a crash cut short.
    fn run(&mut self, newest: bool) -> Result<FoundLog, OpenError> {
        let mut last_frame = None;
        loop {
            let what = match self.reader.next()? {
                Next::Frame(header, payload) => {
                    match apply(self.index, self.encryption, &mut self.expected, &header, payload) {
                        Ok(()) => {
                            last_frame = Some(self.reader.offset());
                            continue;
                        }
                        Err(wrong) => return Err(self.reader.wrong(wrong)),
                    }
                }
                Next::End => break,
                Next::Bad(what) => match self.damage(newest)? {
                    None => break,
                    Some(evidence) => format!("{what}, and {evidence}"),
                },
            };
            return Err(self.reader.corrupt(what));
        }
        Ok(FoundLog { first: self.first, end: self.reader.offset(), len: self.reader.len(), last_frame })
    }

    /// Why the bytes behind the last good frame are not what a crash leaves; `None` when they are.
    fn damage(&self, newest: bool) -> Result<Option<String>, OpenError> {
        let rest = self.reader.rest()?;
        if newest {
            let behind = good_frame_behind(&rest);
            let at = |offset| self.reader.offset() + offset as u64;
            return Ok(behind.map(|offset| format!("a good frame follows at byte {}", at(offset))));
        }
        let zeros = rest.iter().all(|byte| *byte == 0);
        Ok((!zeros).then(|| "another log file follows".to_owned()))
    }
}

fn apply(
    index: &Index,
    encryption: &Encryption,
    expected: &mut Revision,
    header: &FrameHeader,
    payload: &[u8],
) -> Result<(), Wrong> {
    match header.kind {
        FrameKind::Writes if header.revision == *expected => {
            *expected = expected.saturating_add(header.count.into());
            publish(index, encryption, header, payload)
        }
        FrameKind::Writes => {
            Err(Wrong::Malformed(format!("revision {} follows, not {expected}", header.revision)))
        }
        FrameKind::Compacted if header.revision < *expected => {
            if header.revision > index.compacted() {
                index.compact(header.revision);
            }
            Ok(())
        }
        FrameKind::Closed if header.revision.checked_add(1) == Some(*expected) => Ok(()),
        _ => Err(Wrong::Malformed("a frame does not belong here".to_owned())),
    }
}

/// Shows the writes of a frame that a snapshot does not already hold.
fn publish(
    index: &Index,
    encryption: &Encryption,
    header: &FrameHeader,
    payload: &[u8],
) -> Result<(), Wrong> {
    let malformed = || Wrong::Malformed("a record is malformed".to_owned());
    let mut input = Input(payload);
    for revision in (header.revision..).take(header.count as usize) {
        let write = input.write().ok_or_else(malformed)?;
        if revision <= index.revision() {
            continue;
        }
        let current = index.newest(write.table, write.key).map(|version| version.entry());
        if write.kind == EventKind::Delete && current.is_none() {
            return Err(malformed());
        }
        let value = encryption.decrypt(write.table, write.key, write.value).map_err(Wrong::Encrypted)?;
        let value = bytes::Bytes::copy_from_slice(&value);
        let event = commit::event(&Arc::from(write.key), current.as_ref(), revision, write.kind, value);
        let table = index.table_name(&Arc::from(write.table));
        // What is derived from values is handed in when everything is there.
        index.publish(&[Record { table, event, measured: Default::default() }]);
    }
    input.is_empty().then_some(()).ok_or_else(malformed)
}
