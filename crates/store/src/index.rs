//! The in-memory MVCC index of both backends: all tables at all revisions since the compacted one. Knows nothing of
//! durability: what is published here is already durable.

mod history_event;
mod sorted;
mod table;
mod tallies;
#[cfg(test)]
mod tests;
mod usage;
mod version;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

pub(crate) use self::history_event::HistoryEvent;
use self::table::{Garbage, Table};
use self::usage::UsageIndex;
pub(crate) use self::version::Version;
use crate::{
    Entry, Event, EventKind, Measure, Measured, Page, Range, ReadError, Revision, Stats, Tally, Usage,
};

/// Entries read for each time the lock is taken: a few hundred microseconds.
const ENTRIES_PER_LOCK: usize = 4096;
/// Events forgotten or packed for each time the lock is taken, which takes as long.
const EVENTS_PER_LOCK: usize = 64;

/// The tables behind their lock.
#[derive(Default)]
pub(crate) struct Index {
    /// Guards every table together, so that a revision means the same in all of them. It is held for
    /// memory operations only, never while something is written to disk.
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    revision: Revision,
    compacted: Revision,
    closed: bool,
    tables: BTreeMap<Arc<str>, Table>,
    usage: UsageIndex,
    /// What is derived from the values of some tables.
    measures: HashMap<Box<str>, Measure>,
}

/// A write that took effect, with the table it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) table: Arc<str>,
    pub(crate) event: Arc<Event>,
    /// What was derived from the value; zero where nothing is.
    pub(crate) measured: Measured,
}

/// What is there in a range, as the tables keep it.
pub(crate) struct Found {
    pub(crate) versions: Vec<Version>,
    /// The revision at which all of them were read.
    pub(crate) revision: Revision,
    /// How many of the range follow.
    remaining: usize,
}

/// A watcher's place, and what to look for from there on.
pub(crate) struct Cursor {
    pub(crate) table: Arc<str>,
    pub(crate) prefix: Box<str>,
    /// The number of the next event of the table to look at.
    pub(crate) place: u64,
    /// Everything up to here has been looked at.
    pub(crate) revision: Revision,
}

/// What a cursor finds when it moves on.
pub(crate) enum Step {
    Events(Vec<HistoryEvent>),
    /// Nothing that the watcher wants, but there is more to look at.
    More,
    Nothing {
        closed: bool,
    },
    Compacted {
        oldest: Revision,
    },
}

impl Index {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("no code panics while it changes the index")
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect("no code panics while it changes the index")
    }

    pub(crate) fn revision(&self) -> Revision {
        self.read().revision
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.read().compacted
    }

    pub(crate) fn newest(&self, table: &str, key: &str) -> Option<Version> {
        self.read().tables.get(table)?.newest(key).cloned()
    }

    /// The table's own name, so that all of its records share one allocation.
    pub(crate) fn table_name(&self, table: &Arc<str>) -> Arc<str> {
        self.read().tables.get_key_value(table).map_or(table, |(name, _)| name).clone()
    }

    pub(crate) fn get_at(&self, table: &str, key: &str, at: Revision) -> Result<Option<Entry>, ReadError> {
        let version = {
            let state = self.read();
            state.check_readable(at)?;
            state.tables.get(table).and_then(|table| table.version_at(key, at)).cloned()
        };
        Ok(version.map(|version| version.entry()))
    }

    /// The entries of a range, all of the same revision.
    pub(crate) fn range(&self, table: &str, range: Range<'_>) -> Result<Page, ReadError> {
        let found = self.found(table, range)?;
        // The lock is free: unpacking takes its time.
        let entries = found.versions.iter().map(Version::entry).collect();
        Ok(Page { entries, revision: found.revision, remaining: found.remaining })
    }

    /// Reads a range in slices, so that a list of a large table does not hold up the writer. All slices are
    /// read at the revision of the first.
    pub(crate) fn found(&self, table: &str, range: Range<'_>) -> Result<Found, ReadError> {
        let wanted = range.limit.unwrap_or(usize::MAX);
        let mut found =
            self.read().find(table, &Range { limit: Some(wanted.min(ENTRIES_PER_LOCK)), ..range })?;
        while found.remaining > 0 && found.versions.len() < wanted {
            let after = found.versions.last().map(|version| version.key().clone());
            let limit = Some(ENTRIES_PER_LOCK.min(wanted - found.versions.len()));
            let slice =
                Range { after: after.as_deref(), limit, at: Some(found.revision), prefix: range.prefix };
            let slice = self.read().find(table, &slice);
            match slice {
                Ok(slice) => {
                    found.versions.extend(slice.versions);
                    found.remaining = slice.remaining;
                }
                // Compaction came between two slices of a reader who did not ask for a revision.
                Err(_) if range.at.is_none() => return self.read().find(table, &range),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    pub(crate) fn tables(&self) -> Vec<Arc<str>> {
        let state = self.read();
        state.tables.iter().filter(|(_, table)| !table.is_empty()).map(|(name, _)| name.clone()).collect()
    }

    /// Makes durable writes visible, all at once, and wakes the watchers of the tables they touched.
    pub(crate) fn publish(&self, records: &[Record]) {
        let mut touched: Vec<&Arc<str>> = records.iter().map(|record| &record.table).collect();
        touched.sort_unstable();
        touched.dedup();
        let mut state = self.write();
        for record in records {
            state.apply(record);
        }
        let wakes: Vec<_> = touched.into_iter().filter_map(|name| state.tables[name].wake()).collect();
        // Woken watchers take the lock.
        drop(state);
        for wake in wakes {
            wake.send_replace(());
        }
    }

    /// Takes over an entry of a snapshot.
    pub(crate) fn restore(&self, record: Record) {
        let mut state = self.write();
        state.table(&record.table).restore(&record.event, record.measured);
        state.usage.count(&record.event.key, Some(record.event.size()), None);
    }

    /// Starts at the revision of a snapshot, whose history is gone.
    pub(crate) fn start_at(&self, revision: Revision) {
        let mut state = self.write();
        state.revision = revision;
        state.compacted = revision;
    }

    /// Refuses reads before `revision` from now on and forgets, bit by bit, what only they needed.
    pub(crate) fn compact(&self, revision: Revision) {
        let names: Vec<Arc<str>> = {
            let mut state = self.write();
            state.compacted = state.compacted.max(revision);
            state.tables.keys().cloned().collect()
        };
        for name in names {
            while self.compact_slice(&name, revision) {}
        }
        self.write().tables.retain(|_, table| !table.is_idle());
    }

    fn compact_slice(&self, name: &str, revision: Revision) -> bool {
        let garbage = match self.write().tables.get_mut(name) {
            Some(table) => table.compact(revision, EVENTS_PER_LOCK),
            None => Garbage::default(),
        };
        // The lock is free again: dropping thousands of values takes its time.
        !garbage.events.is_empty()
    }

    /// Packs, bit by bit, all events but the newest `whole` of each table.
    pub(crate) fn pack(&self, whole: usize) {
        for name in self.table_names() {
            while self.pack_slice(&name, whole) {}
        }
    }

    fn pack_slice(&self, name: &str, whole: usize) -> bool {
        let garbage = match self.write().tables.get_mut(name) {
            Some(table) => table.pack(whole, EVENTS_PER_LOCK),
            None => Garbage::default(),
        };
        !garbage.events.is_empty()
    }

    pub(crate) fn cursor(
        &self,
        table: &str,
        prefix: &str,
        after: Revision,
    ) -> Result<(Cursor, watch::Receiver<()>), ReadError> {
        let mut state = self.write();
        state.check_readable(after)?;
        let name: Arc<str> = table.into();
        let table = state.table(&name);
        let place = table.place_after(after);
        Ok((Cursor { table: name, prefix: prefix.into(), place, revision: after }, table.subscribe()))
    }

    /// Moves a cursor on by a bounded number of events.
    pub(crate) fn advance(&self, cursor: &mut Cursor, take_max: usize) -> Step {
        let state = self.read();
        let compacted = Step::Compacted { oldest: state.compacted };
        let Some(table) = state.tables.get(&cursor.table) else { return compacted };
        let Some(glance) = table.glance(cursor.place, &cursor.prefix, ENTRIES_PER_LOCK, take_max) else {
            return compacted;
        };
        cursor.place = glance.next;
        let looked_at = if glance.at_end { Some(state.revision) } else { glance.looked_at };
        cursor.revision = looked_at.unwrap_or(cursor.revision);
        match glance {
            glance if !glance.events.is_empty() => Step::Events(glance.events),
            glance if !glance.at_end => Step::More,
            _ => Step::Nothing { closed: state.closed },
        }
    }

    /// Ends all watches once they have seen everything.
    pub(crate) fn close(&self) {
        // Also called while a thread unwinds; with a poisoned lock there is no watcher left to wake.
        let Ok(mut state) = self.state.write() else { return };
        state.closed = true;
        for wake in state.tables.values().filter_map(Table::wake) {
            wake.send_replace(());
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.read().closed
    }

    /// The entries of a table at a revision that follow `after`, up to about `bytes_max`.
    pub(crate) fn slice_at(
        &self,
        table: &str,
        after: Option<&str>,
        at: Revision,
        bytes_max: u64,
    ) -> Vec<Version> {
        let state = self.read();
        state.tables.get(table).map_or_else(Vec::new, |table| table.slice_at(after, at, bytes_max))
    }

    /// The names of all tables, with those that hold nothing now.
    pub(crate) fn table_names(&self) -> Vec<Arc<str>> {
        self.read().tables.keys().cloned().collect()
    }

    /// Derives numbers from the values of a table from now on, and from those that are there.
    pub(crate) fn measure(&self, table: &str, measure: Measure) {
        let mut state = self.write();
        state.measures.insert(table.into(), measure);
        if let Some(table) = state.tables.get_mut(table) {
            table.measure(measure);
        }
    }

    /// What is derived from the value that an event brings.
    pub(crate) fn measure_event(&self, table: &str, event: &Event) -> Measured {
        let measure = self.read().measures.get(table).copied();
        // The lock is free: reading a value takes its time.
        measure
            .filter(|_| event.kind == EventKind::Put)
            .map_or_else(Measured::default, |measure| measure(&event.value))
    }

    /// What was derived from the value of a key.
    pub(crate) fn measured(&self, table: &str, key: &str) -> Measured {
        self.read().tables.get(table).map_or_else(Measured::default, |table| table.tallies().measured(key))
    }

    pub(crate) fn tally(&self, table: &str, part: &str) -> Tally {
        self.read().tables.get(table).map_or_else(Tally::default, |table| table.tallies().of(part))
    }

    pub(crate) fn usage(&self, part: &str) -> Usage {
        self.read().usage.of(part)
    }

    pub(crate) fn total_usage(&self) -> Usage {
        self.read().usage.total()
    }

    pub(crate) fn largest_usages(
        &self,
        count: usize,
        rank: impl Fn(&str, Usage) -> u64,
    ) -> Vec<(Box<str>, Usage)> {
        self.read().usage.largest(count, rank)
    }

    pub(crate) fn stats(&self) -> Stats {
        let state = self.read();
        let mut stats = Stats { revision: state.revision, compacted: state.compacted, ..Stats::default() };
        for table in state.tables.values() {
            let ((keys, bytes), (events, event_bytes)) = (table.live(), table.history());
            stats.live_keys += keys;
            stats.live_bytes += bytes;
            stats.history_events += events;
            stats.history_bytes += event_bytes;
        }
        stats
    }
}

impl State {
    fn check_readable(&self, at: Revision) -> Result<(), ReadError> {
        if at < self.compacted {
            return Err(ReadError::Compacted { oldest: self.compacted });
        }
        if at > self.revision {
            return Err(ReadError::Future { newest: self.revision });
        }
        Ok(())
    }

    fn table(&mut self, name: &Arc<str>) -> &mut Table {
        self.tables.entry(name.clone()).or_insert_with(Table::new)
    }

    fn apply(&mut self, record: &Record) {
        self.revision = record.event.revision;
        let replaced = self.table(&record.table).apply(record.event.clone(), record.measured);
        let added = (record.event.kind == EventKind::Put).then(|| record.event.size());
        self.usage.count(&record.event.key, added, replaced);
    }

    fn find(&self, table: &str, range: &Range<'_>) -> Result<Found, ReadError> {
        let revision = range.at.unwrap_or(self.revision);
        self.check_readable(revision)?;
        let (versions, remaining) =
            self.tables.get(table).map_or((Vec::new(), 0), |table| table.page(range, revision));
        Ok(Found { versions, revision, remaining })
    }
}
