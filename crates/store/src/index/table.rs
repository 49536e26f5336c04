//! One table at every readable revision (MVCC): the current entries, old versions, and the events in between. Knows
//! nothing of other tables, locks or durability.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use super::history_event::{HistoryEvent, PackedPut};
use super::sorted::Sorted;
use super::tallies::Tallies;
use super::version::{Packer, Version};
use crate::{Event, EventKind, Measure, Measured, Range, Revision};

/// The versions and the events of one table.
pub(super) struct Table {
    /// The newest version of each key that exists.
    live: Sorted,
    /// Versions that are no longer the newest, oldest first, deletes included; only of keys that changed
    /// since the compacted revision.
    past: BTreeMap<Arc<str>, Vec<Version>>,
    /// Every event since the compacted revision.
    history: VecDeque<HistoryEvent>,
    /// How many events were dropped from the front of `history`, so that a place in it has a lasting number.
    dropped: u64,
    /// The sequence number of the first event that compression has not been tried on.
    packed: u64,
    live_bytes: u64,
    history_bytes: u64,
    tallies: Tallies,
    packer: Packer,
    /// Wakes the table's watchers, once for each group of writes.
    wake: watch::Sender<()>,
}

/// What a watcher finds behind its place in the history.
pub(super) struct Glance {
    pub(super) events: Vec<HistoryEvent>,
    /// The place behind the last event that was looked at.
    pub(super) next: u64,
    /// The revision of that event, if there was one to look at.
    pub(super) looked_at: Option<Revision>,
    /// Whether the history holds nothing more.
    pub(super) at_end: bool,
}

/// What is no longer needed.
#[derive(Default)]
pub(super) struct Garbage {
    pub(super) events: Vec<HistoryEvent>,
    pub(super) versions: Vec<Version>,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            live: Sorted::default(),
            past: BTreeMap::new(),
            history: VecDeque::new(),
            dropped: 0,
            packed: 0,
            live_bytes: 0,
            history_bytes: 0,
            tallies: Tallies::default(),
            packer: Packer::default(),
            wake: watch::Sender::new(()),
        }
    }

    pub(super) fn newest(&self, key: &str) -> Option<&Version> {
        self.live.get(key)
    }

    /// The version of `key` at a revision that is not compacted.
    pub(super) fn version_at(&self, key: &str, at: Revision) -> Option<&Version> {
        if let Some(version) = self.live.get(key).filter(|version| version.revision() <= at) {
            return Some(version);
        }
        visible(self.past.get(key)?, at)
    }

    /// Adds an entry of a snapshot: it exists, but has no event in the history.
    pub(super) fn restore(&mut self, entry: &Event, measured: Measured) {
        self.live_bytes += entry.size();
        self.tallies.count(&entry.key, Some(measured), false);
        self.live.insert(self.packer.settle(entry));
    }

    /// Adds the next event of this table; answers with the size of the entry that it replaces or takes away.
    pub(super) fn apply(&mut self, event: Arc<Event>, measured: Measured) -> Option<u64> {
        let replaced = match event.kind {
            EventKind::Put => {
                self.live_bytes += event.size();
                self.live.insert(Version::Event(event.clone()))
            }
            EventKind::Delete => self.live.remove(&event.key),
        };
        let replaced_bytes = replaced.as_ref().map(Version::size);
        let now = (event.kind == EventKind::Put).then_some(measured);
        self.tallies.count(&event.key, now, replaced.is_some());
        if let Some(replaced) = replaced {
            self.live_bytes -= replaced.size();
            let versions = self.past.entry(event.key.clone()).or_default();
            versions.push(replaced);
        }
        if event.kind == EventKind::Delete {
            self.past.entry(event.key.clone()).or_default().push(Version::Event(event.clone()));
        }
        self.history_bytes += event.size();
        self.history.push_back(HistoryEvent::Whole(event));
        replaced_bytes
    }

    /// Counts all keys anew, with what is derived from their values.
    pub(super) fn measure(&mut self, measure: Measure) {
        let start = self.live.place(|_| false);
        for version in self.live.iter_from(start) {
            self.tallies.count(version.key(), Some(measure(&version.entry().value)), true);
        }
    }

    pub(super) fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    /// What wakes the table's watchers, if it has any.
    pub(super) fn wake(&self) -> Option<watch::Sender<()>> {
        (self.wake.receiver_count() > 0).then(|| self.wake.clone())
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.wake.subscribe()
    }

    /// Whether nothing would be lost if the table were forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.history.is_empty() && self.wake.receiver_count() == 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live.len() == 0
    }

    pub(super) fn live(&self) -> (u64, u64) {
        (self.live.len() as u64, self.live_bytes)
    }

    pub(super) fn history(&self) -> (u64, u64) {
        (self.history.len() as u64, self.history_bytes)
    }

    /// The place in the history behind everything up to `revision`.
    pub(super) fn place_after(&self, revision: Revision) -> u64 {
        self.dropped + self.history.partition_point(|event| event.revision() <= revision) as u64
    }

    /// Looks at up to `look_max` events from `place` on and takes up to `take_max` whose keys start with
    /// `prefix`; `None` when compaction has passed the place.
    pub(super) fn glance(
        &self,
        place: u64,
        prefix: &str,
        look_max: usize,
        take_max: usize,
    ) -> Option<Glance> {
        let skip = usize::try_from(place.checked_sub(self.dropped)?).ok()?;
        let mut glance = Glance { events: Vec::new(), next: place, looked_at: None, at_end: false };
        for event in self.history.range(skip.min(self.history.len())..).take(look_max) {
            if event.key().starts_with(prefix) {
                if glance.events.len() == take_max {
                    return Some(glance);
                }
                glance.events.push(event.clone());
            }
            glance.next += 1;
            glance.looked_at = Some(event.revision());
        }
        glance.at_end = glance.next == self.dropped + self.history.len() as u64;
        Some(glance)
    }

    /// Forgets up to `events_max` events up to `revision` and the versions that only they needed. Returns
    /// what the caller drops once it holds no lock; an answer without events means that nothing is left to forget.
    pub(super) fn compact(&mut self, revision: Revision, events_max: usize) -> Garbage {
        let mut garbage = Garbage::default();
        for _ in 0..events_max {
            if self.history.front().is_none_or(|event| event.revision() > revision) {
                break;
            }
            let Some(event) = self.history.pop_front() else { break };
            self.dropped += 1;
            self.history_bytes -= event.size();
            self.compact_key(event.key(), revision, &mut garbage.versions);
            garbage.events.push(event);
        }
        if self.history.len() < self.history.capacity() / 4 {
            self.history.shrink_to(self.history.len() * 2);
        }
        garbage
    }

    /// Packs up to `events_max` events that have not been tried yet, but for the newest `whole`, and the versions that
    /// they brought. Returns what the caller drops once it holds no lock; an answer without events means that nothing
    /// is left to pack.
    pub(super) fn pack(&mut self, whole: usize, events_max: usize) -> Garbage {
        let mut garbage = Garbage::default();
        let end = self.dropped + self.history.len().saturating_sub(whole) as u64;
        let start = self.packed.max(self.dropped);
        for place in (start..end).take(events_max) {
            self.packed = place + 1;
            let index =
                usize::try_from(place - self.dropped).expect("it is less than the length of the history");
            let HistoryEvent::Whole(event) = self.history[index].clone() else { continue };
            // There are few deletes, and what they leave behind says that they are deletes.
            if event.kind == EventKind::Put {
                let told = self.pack_put(&event, &mut garbage.versions);
                self.history[index] = HistoryEvent::Packed(Arc::new(told));
            }
            garbage.events.push(HistoryEvent::Whole(event));
        }
        garbage
    }

    fn pack_put(&mut self, event: &Event, garbage: &mut Vec<Version>) -> PackedPut {
        let version = self.packer.settle(event);
        let mut earlier = None;
        if let Some(versions) = self.past.get_mut(&event.key) {
            let place = versions.partition_point(|version| version.revision() < event.revision);
            earlier = versions[..place].last().filter(|version| version.is_there()).cloned();
            if let Some(own) = versions.get_mut(place).filter(|own| own.revision() == event.revision) {
                garbage.push(std::mem::replace(own, version.clone()));
            }
        }
        if self.live.get(&event.key).is_some_and(|live| live.revision() == event.revision) {
            garbage.extend(self.live.insert(version.clone()));
        }
        // What is compacted is known to the event alone.
        let previous = event.previous.as_ref().map(|value| {
            let alone = || Event { value: Bytes::clone(value), previous: None, ..event.clone() };
            earlier.unwrap_or_else(|| self.packer.settle(&alone()))
        });
        PackedPut { version, previous }
    }

    fn compact_key(&mut self, key: &Arc<str>, revision: Revision, garbage: &mut Vec<Version>) {
        let live = self.live.get(key);
        let superseded = live.is_some_and(|version| version.revision() <= revision);
        if let Some(Version::Event(event)) = live.filter(|_| superseded) {
            let settled = self.packer.settle(event);
            garbage.extend(self.live.insert(settled));
        }
        let Some(versions) = self.past.get_mut(key) else { return };
        let reached = versions.partition_point(|version| version.revision() <= revision);
        // The newest version up to `revision` is still read at `revision`, unless it says "deleted".
        let keeps = !superseded && reached > 0 && versions[reached - 1].is_there();
        garbage.extend(versions.drain(..if keeps { reached - 1 } else { reached }));
        if keeps && let Version::Event(event) = &versions[0] {
            versions[0] = self.packer.settle(event);
        }
        if versions.is_empty() {
            self.past.remove(key);
        }
    }

    /// Up to `limit` versions of a range and how many follow, at a revision that is not compacted.
    pub(super) fn page(&self, range: &Range<'_>, at: Revision) -> (Vec<Version>, usize) {
        let unchanged = self.history.back().is_none_or(|event| event.revision() <= at);
        if unchanged { self.page_now(range) } else { self.page_then(range, at) }
    }

    fn page_now(&self, range: &Range<'_>) -> (Vec<Version>, usize) {
        let start = self.live.place(|key| is_before(key, range));
        let end = self.live.place(|key| key < range.prefix || key.starts_with(range.prefix));
        let count = self.live.rank(end).saturating_sub(self.live.rank(start));
        let taken = range.limit.map_or(count, |limit| limit.min(count));
        let versions = self.live.iter_from(start).take(taken).cloned().collect();
        (versions, count - taken)
    }

    fn page_then(&self, range: &Range<'_>, at: Revision) -> (Vec<Version>, usize) {
        let limit = range.limit.unwrap_or(usize::MAX);
        let mut versions = Vec::new();
        for (index, version) in self.versions_then(range, at).enumerate() {
            if index == limit {
                return (versions, self.count_then(range, at) - index);
            }
            versions.push(version.clone());
        }
        (versions, 0)
    }

    /// The versions of a range at a revision: the live keys and the keys with a past, merged in key order.
    fn versions_then<'a>(
        &'a self,
        range: &'a Range<'a>,
        at: Revision,
    ) -> impl Iterator<Item = &'a Version> + 'a {
        let start = self.live.place(|key| is_before(key, range));
        let mut live = self.live.iter_from(start).peekable();
        let from = match range.after {
            Some(after) if after >= range.prefix => Bound::Excluded(after),
            _ => Bound::Included(range.prefix),
        };
        let mut past = self.past.range::<str, _>((from, Bound::Unbounded)).peekable();
        std::iter::from_fn(move || {
            let from_live = live.peek().map(|version| version.key());
            let from_past = past.peek().map(|(key, _)| *key);
            let key = match (from_live, from_past) {
                (Some(one), Some(other)) => one.min(other),
                (one, other) => one.or(other)?,
            };
            let newest = live.next_if(|version| version.key() == key);
            let older = past.next_if(|(other, _)| *other == key);
            let newest = newest.filter(|version| version.revision() <= at);
            let version = newest.or_else(|| visible(older?.1, at));
            key.starts_with(range.prefix).then_some(version)
        })
        .flatten()
    }

    /// How many keys of a range were there at a revision: the keys there now, corrected for each key that
    /// changed since; or one by one where more changed than there are keys.
    fn count_then(&self, range: &Range<'_>, at: Revision) -> usize {
        let start = self.live.rank(self.live.place(|key| is_before(key, range)));
        let end = self.live.place(|key| key < range.prefix || key.starts_with(range.prefix));
        let now = self.live.rank(end).saturating_sub(start);
        let since = self.history.partition_point(|event| event.revision() <= at);
        if self.history.len() - since > now {
            return self.versions_then(range, at).count();
        }
        let changed = self.history.range(since..).map(HistoryEvent::key);
        let changed: std::collections::BTreeSet<&Arc<str>> =
            changed.filter(|key| !is_before(key, range) && key.starts_with(range.prefix)).collect();
        let there_now = changed.iter().filter(|key| self.live.get(key).is_some()).count();
        let there_then = changed.iter().filter(|key| self.version_at(key, at).is_some()).count();
        now - there_now + there_then
    }

    /// The entries at a revision whose keys follow `after`, until they are `bytes_max` large or the table ends.
    pub(super) fn slice_at(&self, after: Option<&str>, at: Revision, bytes_max: u64) -> Vec<Version> {
        let mut bytes = 0;
        let range = Range { after, ..Range::default() };
        let within = |version: &&Version| {
            let fits = bytes < bytes_max;
            bytes += version.size();
            fits
        };
        self.versions_then(&range, at).take_while(within).cloned().collect()
    }
}

fn is_before(key: &str, range: &Range<'_>) -> bool {
    key < range.prefix || range.after.is_some_and(|after| key <= after)
}

/// The last version up to a revision, unless it says "deleted".
fn visible(versions: &[Version], at: Revision) -> Option<&Version> {
    let reached = versions.partition_point(|version| version.revision() <= at);
    versions[..reached].last().filter(|version| version.is_there())
}
