//! Random operations against a model that is too simple to be wrong: the list of all writes. Both backends;
//! the one on disk is closed and opened again at random points, with files so small that it keeps starting
//! new ones and writing snapshots.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use store::{
    Change, Event, EventKind, Expect, Options, Payload, Range, ReadError, Revision, Store, Watch, WatchError,
    Write, WriteError,
};

const OPTIONS: Options = Options { segment_bytes: 512, value_bytes_max: 1 << 20 };
const TABLES: [&str; 2] = ["pods", "nodes"];
const KEYS: [&str; 7] = ["a", "a/1", "a/2", "a/2/x", "b/1", "b/2", "c"];
const PREFIXES: [&str; 5] = ["", "a", "a/", "b/", "nothing"];

#[derive(Clone, Debug)]
enum Operation {
    Write {
        table: usize,
        key: usize,
        delete: bool,
        expect: Wanted,
        value: usize,
    },
    /// Compacts to so many revisions before the newest.
    Compact(u64),
    /// Packs all but so many events of each table.
    Pack(usize),
    Range {
        table: usize,
        prefix: usize,
        after: Option<usize>,
        limit: Option<usize>,
        ago: Option<u64>,
    },
    Get {
        table: usize,
        key: usize,
        ago: u64,
    },
    Watch {
        table: usize,
        prefix: usize,
        ago: u64,
    },
    Take(usize),
    Progress(usize),
    Reopen {
        close: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Any,
    Absent,
    Current,
    Stale,
}

fn operation() -> impl Strategy<Value = Operation> {
    let (table, key, prefix, ago) = (0..TABLES.len(), 0..KEYS.len(), 0..PREFIXES.len(), 0..14u64);
    let expect = prop_oneof![4 => Just(Wanted::Any), 1 => Just(Wanted::Absent), 2 => Just(Wanted::Current), 1 => Just(Wanted::Stale)];
    let write = (table.clone(), key.clone(), prop::bool::weighted(0.3), expect, 0..600usize);
    let after = prop::option::of(key.clone());
    let range =
        (table.clone(), prefix.clone(), after, prop::option::of(0..5usize), prop::option::of(ago.clone()));
    prop_oneof![
        10 => write.prop_map(|(table, key, delete, expect, value)| Operation::Write { table, key, delete, expect, value }),
        1 => ago.clone().prop_map(Operation::Compact),
        2 => (0..4usize).prop_map(Operation::Pack),
        4 => range.prop_map(|(table, prefix, after, limit, ago)| Operation::Range { table, prefix, after, limit, ago }),
        2 => (table.clone(), key, ago.clone()).prop_map(|(table, key, ago)| Operation::Get { table, key, ago }),
        2 => (table, prefix, ago).prop_map(|(table, prefix, ago)| Operation::Watch { table, prefix, ago }),
        3 => (0..4usize).prop_map(Operation::Take),
        1 => (0..4usize).prop_map(Operation::Progress),
        1 => any::<bool>().prop_map(|close| Operation::Reopen { close }),
    ]
}

/// Every write that took effect, and how much of it is forgotten.
#[derive(Default)]
struct Model {
    writes: Vec<(usize, Event)>,
    compacted: Revision,
}

type State = BTreeMap<String, (Vec<u8>, Revision, Revision)>;

impl Model {
    fn revision(&self) -> Revision {
        self.writes.len() as Revision
    }

    fn state(&self, table: usize, at: Revision) -> State {
        let mut state = State::new();
        for (_, event) in self.writes[..at as usize].iter().filter(|(other, _)| *other == table) {
            match event.kind {
                EventKind::Put => {
                    let entry = (event.value.to_vec(), event.created, event.revision);
                    state.insert(event.key.to_string(), entry);
                }
                EventKind::Delete => _ = state.remove(&*event.key),
            }
        }
        state
    }

    fn readable(&self, at: Revision) -> Result<Revision, ReadError> {
        if at < self.compacted { Err(ReadError::Compacted { oldest: self.compacted }) } else { Ok(at) }
    }

    /// The events of a table after a revision.
    fn events(&self, table: usize, after: Revision) -> impl Iterator<Item = &Event> {
        self.writes[after as usize..].iter().filter(move |(other, _)| *other == table).map(|(_, event)| event)
    }
}

struct Watcher {
    watch: Watch,
    table: usize,
    prefix: &'static str,
    /// All events up to here have been looked at.
    seen: Revision,
}

struct World<'a> {
    store: Store,
    directory: Option<&'a Path>,
    model: Model,
    watchers: Vec<Watcher>,
}

impl World<'_> {
    async fn run(&mut self, operation: &Operation) {
        let newest = self.model.revision();
        match *operation {
            Operation::Write { table, key, delete, expect, value } => {
                self.write(table, key, delete, expect, value).await;
            }
            Operation::Compact(ago) => self.compact(newest.saturating_sub(ago)).await,
            Operation::Pack(whole) => self.store.pack(whole),
            Operation::Range { table, prefix, after, limit, ago } => {
                let (prefix, after) = (PREFIXES[prefix], after.map(|key| KEYS[key]));
                let at = ago.map(|ago| newest.saturating_sub(ago));
                self.range(table, Range { prefix, after, limit, at });
            }
            Operation::Get { table, key, ago } => self.get(table, KEYS[key], newest.saturating_sub(ago)),
            Operation::Watch { table, prefix, ago } => {
                self.watch(table, PREFIXES[prefix], newest.saturating_sub(ago));
            }
            Operation::Take(watcher) => self.take(watcher).await,
            Operation::Progress(watcher) => self.progress(watcher),
            Operation::Reopen { close } => self.reopen(close).await,
        }
        assert_eq!(self.store.revision(), self.model.revision());
        assert_eq!(self.store.compacted(), self.model.compacted);
    }

    async fn write(&mut self, table: usize, key: usize, delete: bool, wanted: Wanted, length: usize) {
        let key = KEYS[key];
        let revision = self.model.revision() + 1;
        let state = self.model.state(table, revision - 1);
        let current = state.get(key);
        let current_revision = current.map(|(_, _, revision)| *revision);
        let expect = match wanted {
            Wanted::Any => Expect::Any,
            Wanted::Absent => Expect::Absent,
            Wanted::Current => current_revision.map_or(Expect::Absent, Expect::Revision),
            Wanted::Stale => Expect::Revision(current_revision.map_or(1, |revision| revision - 1)),
        };
        let payload = Payload { bytes: "x".repeat(length).into(), revision_at: Some(length / 2) };
        let change = if delete { Change::Delete(payload) } else { Change::Put(payload) };
        let limits = Vec::new();
        let write = Write { table: TABLES[table].into(), key: key.into(), expect, limits, change };
        let outcome = self.store.write(write).await;
        let holds = match expect {
            Expect::Any => true,
            Expect::Absent => current.is_none(),
            Expect::Revision(revision) => current_revision == Some(revision),
        };
        if !holds || (delete && current.is_none()) {
            let found = outcome.expect_err("the expectation does not hold");
            assert!(matches!(found, WriteError::Conflict { current } if current == current_revision));
            return;
        }
        assert_eq!(outcome.expect("the expectation holds"), revision);
        let value = format!("{}{revision}{}", "x".repeat(length / 2), "x".repeat(length - length / 2));
        let event = Event {
            key: key.into(),
            revision,
            created: current.map_or(revision, |(_, created, _)| *created),
            value: value.into(),
            previous: current.map(|(value, ..)| Box::new(value.clone().into())),
            kind: if delete { EventKind::Delete } else { EventKind::Put },
        };
        self.model.writes.push((table, event));
    }

    async fn compact(&mut self, revision: Revision) {
        self.store.compact(revision).await.expect("the revision exists");
        self.model.compacted = self.model.compacted.max(revision);
    }

    fn range(&self, table: usize, range: Range<'_>) {
        let at = self.model.readable(range.at.unwrap_or(self.model.revision()));
        let found = self.store.range(TABLES[table], range);
        let Ok(at) = at else { return assert_eq!(found.err(), at.err()) };
        let found = found.expect("the revision can be read");
        let mut expected = self.model.state(table, at);
        expected
            .retain(|key, _| key.starts_with(range.prefix) && range.after.is_none_or(|after| &**key > after));
        let taken = range.limit.unwrap_or(usize::MAX).min(expected.len());
        assert_eq!((found.revision, found.remaining), (at, expected.len() - taken), "{range:?}");
        let found = found.entries.into_iter();
        let found: Vec<_> = found
            .map(|entry| (entry.key.to_string(), (entry.value.to_vec(), entry.created, entry.revision)))
            .collect();
        assert_eq!(found, expected.into_iter().take(taken).collect::<Vec<_>>(), "{range:?}");
    }

    fn get(&self, table: usize, key: &str, at: Revision) {
        let shape = |entry: store::Entry| (entry.value.to_vec(), entry.created, entry.revision);
        let state = |at| self.model.state(table, at).remove(key);
        let newest = self.store.get(TABLES[table], key).map(shape);
        assert_eq!(newest, state(self.model.revision()));
        let found = self.store.get_at(TABLES[table], key, at).map(|entry| entry.map(shape));
        assert_eq!(found, self.model.readable(at).map(state));
    }

    fn watch(&mut self, table: usize, prefix: &'static str, after: Revision) {
        let watch = self.store.watch(TABLES[table], prefix, after);
        match self.model.readable(after) {
            Err(error) => assert_eq!(watch.err(), Some(error)),
            Ok(seen) => {
                let watch = watch.unwrap_or_else(|error| panic!("{error}"));
                self.watchers.push(Watcher { watch, table, prefix, seen });
            }
        }
    }

    /// Takes all that waits for a watcher, and checks that nothing more comes.
    async fn take(&mut self, watcher: usize) {
        let Some(watcher) = self.watchers.get_mut(watcher) else { return };
        let newest = self.model.revision();
        if self.model.events(watcher.table, watcher.seen).any(|event| event.revision <= self.model.compacted)
        {
            let oldest = self.model.compacted;
            assert_eq!(watcher.watch.next().await.err(), Some(WatchError::Compacted { oldest }));
            return;
        }
        let expected = self.model.events(watcher.table, watcher.seen);
        let expected: Vec<&Event> = expected.filter(|event| event.key.starts_with(watcher.prefix)).collect();
        if !expected.is_empty() {
            let batch = watcher.watch.next().await.expect("events are waiting");
            assert_eq!(batch.events.iter().map(|event| &**event).collect::<Vec<_>>(), expected);
            assert_eq!(batch.revision, newest);
        }
        tokio::select! {
            biased;
            batch = watcher.watch.next() => panic!("no write caused {batch:?}"),
            () = std::future::ready(()) => {}
        }
        watcher.seen = newest;
    }

    fn progress(&mut self, watcher: usize) {
        let Some(watcher) = self.watchers.get_mut(watcher) else { return };
        let mut events = self.model.events(watcher.table, watcher.seen).peekable();
        if events.peek().is_some_and(|event| event.revision <= self.model.compacted) {
            return;
        }
        let (mut expected, prefix) = (watcher.seen, watcher.prefix);
        while let Some(event) = events.next_if(|event| !event.key.starts_with(prefix)) {
            expected = event.revision;
        }
        if events.peek().is_none() {
            expected = self.model.revision();
        }
        assert_eq!(watcher.watch.revision(), expected);
        watcher.seen = expected;
    }

    /// Closes the store, lets the watchers take what is left, and opens it again.
    async fn reopen(&mut self, close: bool) {
        let Some(directory) = self.directory else { return };
        let store = std::mem::replace(&mut self.store, Store::in_memory());
        if close {
            store.close().await.expect("the disk is well");
        } else {
            drop(store);
        }
        for watcher in &mut self.watchers {
            while let Ok(batch) = watcher.watch.next().await {
                assert!(batch.revision <= self.model.revision());
            }
        }
        self.store = Store::open(directory, OPTIONS).expect("the files are intact");
        for watcher in std::mem::take(&mut self.watchers) {
            self.watch(watcher.table, watcher.prefix, watcher.seen);
        }
    }

    /// Reads everything that can be read.
    async fn check_all(&mut self) {
        self.watchers.clear();
        for at in self.model.compacted..=self.model.revision() {
            for table in 0..TABLES.len() {
                self.range(table, Range { at: Some(at), ..Range::default() });
                for prefix in PREFIXES {
                    self.watch(table, prefix, at);
                    self.take(0).await;
                    self.watchers.clear();
                }
            }
        }
        let live: Vec<_> = (0..TABLES.len())
            .filter(|table| !self.model.state(*table, self.model.revision()).is_empty())
            .collect();
        let mut tables: Vec<&str> = live.iter().map(|table| TABLES[*table]).collect();
        tables.sort_unstable();
        assert_eq!(self.store.tables().iter().map(|name| &**name).collect::<Vec<_>>(), tables);
        let keys: usize =
            live.iter().map(|table| self.model.state(*table, self.model.revision()).len()).sum();
        let stats = self.store.stats();
        assert_eq!(stats.live_keys, keys as u64);
        assert_eq!(stats.history_events, self.model.revision() - self.model.compacted);
    }
}

fn check(store: Store, directory: Option<&Path>, operations: &[Operation]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut world = World { store, directory, model: Model::default(), watchers: Vec::new() };
        for operation in operations {
            world.run(operation).await;
        }
        world.check_all().await;
        world.reopen(true).await;
        world.check_all().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_store_in_memory_does_what_the_model_does(operations in prop::collection::vec(operation(), 0..80)) {
        check(Store::in_memory(), None, &operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_store_on_disk_does_what_the_model_does(operations in prop::collection::vec(operation(), 0..80)) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(directory.path(), OPTIONS).expect("an empty store");
        check(store, Some(directory.path()), &operations);
    }
}
