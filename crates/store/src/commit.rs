//! Group commit: decides which writes of a group take effect (compare-and-swap, limits), makes the group durable,
//! then publishes it to readers. Knows nothing of threads, queues or files.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::backend::Backend;
use crate::index::{Index, Record};
use crate::{Change, Entry, Event, EventKind, Expect, Revision, Tally, Write, WriteError};

/// Table names and keys have two bytes for their length on disk; this leaves room for both.
const NAME_BYTES_MAX: usize = 4096;

/// The committer: the only component that changes an index.
pub(crate) struct Committer<B> {
    pub(crate) index: Arc<Index>,
    pub(crate) backend: B,
    pub(crate) value_bytes_max: usize,
}

impl<B: Backend> Committer<B> {
    /// Decides each write against the index and the writes before it, makes those that pass durable
    /// together, and only then shows them. The answers are in the order of the writes.
    pub(crate) fn commit(&mut self, writes: &[Write]) -> Vec<Result<Revision, WriteError>> {
        let is_limited = writes.iter().any(|write| !write.limits.is_empty());
        let mut group = Group::new(&self.index, self.value_bytes_max, is_limited);
        let mut answers: Vec<_> = writes.iter().map(|write| group.decide(write)).collect();
        let records = group.records;
        if records.is_empty() {
            return answers;
        }
        match self.backend.append(&records) {
            Ok(()) => self.index.publish(&records),
            // A conflict may have been with a write that now did not happen, so every answer that depends on this
            // group becomes the error.
            Err(error) => answers.iter_mut().for_each(|answer| {
                if !matches!(answer, Err(WriteError::TooLarge { .. })) {
                    *answer = Err(error.clone().into());
                }
            }),
        }
        answers
    }

    /// Forgets the history up to `revision`; one that is compacted already stays so. Says whether
    /// there was something to forget.
    pub(crate) fn compact(&mut self, revision: Revision) -> Result<bool, WriteError> {
        let newest = self.index.revision();
        if revision > newest {
            return Err(WriteError::Future { asked: revision, newest });
        }
        if revision <= self.index.compacted() {
            return Ok(false);
        }
        self.backend.compact(revision)?;
        self.index.compact(revision);
        Ok(true)
    }
}

/// How much there is, by table and first part of keys.
type Tallies = HashMap<(Arc<str>, Box<str>), Tally>;

/// The writes of one group that take effect.
struct Group<'a> {
    index: &'a Index,
    value_bytes_max: usize,
    next: Revision,
    records: Vec<Record>,
    /// What the group has done to a key so far, by table and key.
    last: HashMap<(Arc<str>, Arc<str>), Record>,
    /// What there is when the group is written so far, by table and first part of keys; none where no write of the group
    /// has a limit.
    tallies: Option<Tallies>,
}

impl<'a> Group<'a> {
    fn new(index: &'a Index, value_bytes_max: usize, is_limited: bool) -> Group<'a> {
        let (next, tallies) = (index.revision() + 1, is_limited.then(HashMap::new));
        Group { index, value_bytes_max, next, records: Vec::new(), last: HashMap::new(), tallies }
    }

    fn decide(&mut self, write: &Write) -> Result<Revision, WriteError> {
        let current = self.current(write);
        check_expectation(write, current.as_ref())?;
        let event = self.event(write, current.as_ref())?;
        let revision = event.revision;
        let table = self.index.table_name(&write.table);
        let measured = self.index.measure_event(&table, &event);
        let record = Record { table, event, measured };
        self.count(write, &record, current.is_some())?;
        self.last.insert((record.table.clone(), record.event.key.clone()), record.clone());
        self.records.push(record);
        self.next = revision + 1;
        Ok(revision)
    }

    /// Counts what a write adds and takes away; refuses one that goes beyond its limits.
    fn count(&mut self, write: &Write, record: &Record, was_there: bool) -> Result<(), WriteError> {
        let (Some(tallies), Some((part, _))) = (&mut self.tallies, write.key.split_once('/')) else {
            return Ok(());
        };
        let earlier = self.last.get(&(write.table.clone(), write.key.clone()));
        let measured = || match earlier {
            Some(earlier) => earlier.measured,
            None => self.index.measured(&write.table, &write.key),
        };
        let before = Tally::of_entry(was_there.then(measured));
        let after = Tally::of_entry((record.event.kind == EventKind::Put).then_some(record.measured));
        let tally = tallies
            .entry((record.table.clone(), part.into()))
            .or_insert_with(|| self.index.tally(&record.table, part));
        let next = tally.replaced(before, after);
        if let Some(limit) = write.limits.iter().find(|limit| limit.is_exceeded(before, after, next)) {
            let (counter, max) = (limit.counter, limit.max);
            return Err(WriteError::LimitReached { counter, next: next.get(counter), max });
        }
        *tally = next;
        Ok(())
    }

    /// What is under the key when it is this write's turn.
    fn current(&self, write: &Write) -> Option<Entry> {
        match self.last.get(&(write.table.clone(), write.key.clone())) {
            Some(Record { event, .. }) => (event.kind == EventKind::Put).then(|| event.entry()),
            None => self.index.newest(&write.table, &write.key).map(|version| version.entry()),
        }
    }

    fn event(&self, write: &Write, current: Option<&Entry>) -> Result<Arc<Event>, WriteError> {
        let revision = self.next;
        let (kind, payload) = match &write.change {
            Change::Put(payload) => (EventKind::Put, payload),
            Change::Delete(payload) => (EventKind::Delete, payload),
        };
        check_size("a table name", write.table.len(), NAME_BYTES_MAX)?;
        check_size("a key", write.key.len(), NAME_BYTES_MAX)?;
        check_size("a value", payload.bytes.len(), self.value_bytes_max)?;
        Ok(event(&write.key, current, revision, kind, payload.at(revision)))
    }
}

/// What a write does to a key, given what is there before.
pub(crate) fn event(
    key: &Arc<str>,
    current: Option<&Entry>,
    revision: Revision,
    kind: EventKind,
    value: Bytes,
) -> Arc<Event> {
    Arc::new(Event {
        // All versions of a key share one allocation of it.
        key: current.map_or(key, |current| &current.key).clone(),
        revision,
        created: current.map_or(revision, |current| current.created),
        value,
        previous: current.map(|current| Box::new(current.value.clone())),
        kind,
    })
}

fn check_expectation(write: &Write, current: Option<&Entry>) -> Result<(), WriteError> {
    let current = current.map(|entry| entry.revision);
    let holds = match write.expect {
        Expect::Any => true,
        Expect::Absent => current.is_none(),
        Expect::Revision(revision) => current == Some(revision),
    };
    let nothing_to_delete = matches!(write.change, Change::Delete(_)) && current.is_none();
    if holds && !nothing_to_delete { Ok(()) } else { Err(WriteError::Conflict { current }) }
}

fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), WriteError> {
    if bytes <= limit { Ok(()) } else { Err(WriteError::TooLarge { what, bytes, limit }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Payload, StorageError};

    /// Fails once, then works.
    struct Flaky(bool);

    impl Backend for Flaky {
        fn append(&mut self, _: &[Record]) -> Result<(), StorageError> {
            let failed = std::mem::replace(&mut self.0, true);
            if failed {
                Ok(())
            } else {
                Err(StorageError::new("append", std::io::ErrorKind::StorageFull.into()))
            }
        }

        fn compact(&mut self, _: Revision) -> Result<(), StorageError> {
            Ok(())
        }

        fn close(&mut self) -> Result<(), StorageError> {
            Ok(())
        }
    }

    fn put(value: &'static str, expect: Expect) -> Write {
        let change = Change::Put(Payload::plain(value));
        Write { table: "t".into(), key: "a".into(), expect, limits: Vec::new(), change }
    }

    #[test]
    fn writes_of_one_group_see_each_other_and_fail_together() {
        let index = Arc::new(Index::default());
        let mut committer = Committer { index: index.clone(), backend: Flaky(false), value_bytes_max: 5 };
        let writes = [
            put("one", Expect::Absent),
            put("two", Expect::Absent),
            put("three", Expect::Revision(1)),
            put("too large", Expect::Any),
        ];
        let answers = committer.commit(&writes);
        assert!(
            answers[..3].iter().all(|answer| matches!(answer, Err(WriteError::Storage(_)))),
            "{answers:?}"
        );
        assert!(matches!(answers[3], Err(WriteError::TooLarge { .. })));
        assert_eq!(index.revision(), 0);
        let answers = committer.commit(&writes);
        assert!(matches!(answers[0], Ok(1)));
        assert!(matches!(answers[1], Err(WriteError::Conflict { current: Some(1) })));
        assert!(matches!(answers[2], Ok(2)));
        let newest = index.newest("t", "a").unwrap().entry();
        assert_eq!((&newest.value[..], newest.created, newest.revision), (&b"three"[..], 1, 2));
    }
}
