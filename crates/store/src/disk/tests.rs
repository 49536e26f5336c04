//! Crash tests of the disk backend on a simulated directory that fails and loses power: acknowledged writes are
//! there, in order and whole, whichever call fails and whenever the power goes.

mod sim;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use self::sim::{Fault, Random, Sim};
use crate::{
    Change, Encryption, Event, EventKind, Expect, Options, Payload, Revision, Store, Write, WriteError,
};

const OPTIONS: Options = Options { segment_bytes: 700, value_bytes_max: 1 << 20 };

/// What the clients of one run know.
#[derive(Default)]
struct Clients {
    /// Acknowledged writes by revision: key, value and kind.
    acknowledged: BTreeMap<Revision, HistoryEvent>,
    /// Writes whose last answer was an error of the disk, so that they may or may not be there.
    unknown: Vec<HistoryEvent>,
    compacted: Revision,
    /// How many answers were errors of the disk.
    errors: usize,
}

type HistoryEvent = (String, Vec<u8>, EventKind);

fn write(key: &str, value: &[u8], kind: EventKind) -> Write {
    let payload = Payload::plain(value.to_vec());
    let change = match kind {
        EventKind::Put => Change::Put(payload),
        EventKind::Delete => Change::Delete(payload),
    };
    Write { table: "t".into(), key: key.into(), expect: Expect::Any, limits: Vec::new(), change }
}

fn told(event: &Event) -> HistoryEvent {
    (event.key.to_string(), event.value.to_vec(), event.kind)
}

impl Clients {
    /// Writes in groups of several concurrent clients, and compacts now and then.
    async fn run(&mut self, store: &Store, seed: u64, rounds: usize) {
        let mut random = Random(seed);
        for round in 0..rounds {
            let mut group = Vec::new();
            for client in 0..1 + random.below(3) {
                let kind = if random.below(5) == 0 { EventKind::Delete } else { EventKind::Put };
                let value = format!("{seed}-{round}-{client}-").repeat(1 + random.below(12)).into_bytes();
                group.push((format!("key-{}", random.below(6)), value, kind));
            }
            self.write_group(store, group).await;
            if random.below(5) == 0 {
                let revision = store.revision().saturating_sub(random.below(4) as u64);
                // What the disk says to it matters to no write; the checks below see the outcome.
                let _ = store.compact(revision).await;
                self.compacted = self.compacted.max(store.compacted());
            }
        }
    }

    async fn write_group(&mut self, store: &Store, group: Vec<HistoryEvent>) {
        let mut waiting = tokio::task::JoinSet::new();
        for told in group {
            let store = store.clone();
            waiting.spawn(async move {
                let outcome = store.write(write(&told.0, &told.1, told.2)).await;
                (told, outcome)
            });
        }
        let mut unknown = Vec::new();
        while let Some(outcome) = waiting.join_next().await {
            match outcome.expect("no write panics") {
                (told, Ok(revision)) => _ = self.acknowledged.insert(revision, told),
                (_, Err(WriteError::Conflict { .. })) => {}
                (told, Err(WriteError::Storage(_))) => unknown.push(told),
                (_, Err(error)) => panic!("{error}"),
            }
        }
        self.errors += unknown.len();
        self.unknown.extend(unknown);
    }

    /// Takes what a restarted store shows for acknowledged: readers have seen it, so it must stay.
    async fn adopt(&mut self, store: &Store) {
        for event in events(store).await {
            self.acknowledged.insert(event.revision, told(&event));
        }
    }

    /// Checks that a store holds every acknowledged write and, after the last of them, only whole writes that the
    /// test requested.
    async fn check(&self, store: &Store, context: &str) {
        let last = self.acknowledged.keys().next_back().copied().unwrap_or(0);
        assert!(store.revision() >= last, "{context}: revision {} but {last} was told", store.revision());
        assert!(store.compacted() >= self.compacted, "{context}: the compaction was forgotten");
        let mut state = BTreeMap::new();
        let known = self.acknowledged.range(..=store.compacted());
        known.for_each(|(revision, told)| replay(&mut state, *revision, told));
        for event in events(store).await {
            let told = told(&event);
            match self.acknowledged.get(&event.revision) {
                Some(expected) => assert_eq!(&told, expected, "{context}: revision {}", event.revision),
                None => assert!(
                    event.revision > last && self.unknown.contains(&told),
                    "{context}: no write requested {told:?} at {}",
                    event.revision
                ),
            }
            replay(&mut state, event.revision, &told);
        }
        let page = store.range("t", crate::Range::default()).expect("the newest revision can be read");
        let found: BTreeMap<_, _> = page
            .entries
            .into_iter()
            .map(|entry| (entry.key.to_string(), (entry.revision, entry.value.to_vec())))
            .collect();
        assert_eq!(found, state, "{context}");
    }
}

fn replay(state: &mut BTreeMap<String, (Revision, Vec<u8>)>, revision: Revision, told: &HistoryEvent) {
    match told.2 {
        EventKind::Put => _ = state.insert(told.0.clone(), (revision, told.1.clone())),
        EventKind::Delete => _ = state.remove(&told.0),
    }
}

/// All events that can still be had; their revisions follow one another.
async fn events(store: &Store) -> Vec<Event> {
    let mut watch = store.watch("t", "", store.compacted()).expect("the compacted revision can be watched");
    let mut events: Vec<Event> = Vec::new();
    while events.last().map_or(store.compacted(), |event| event.revision) < store.revision() {
        let batch = watch.next().await.expect("no compaction and no close");
        for event in batch.events {
            let previous = events.last().map_or(store.compacted(), |event| event.revision);
            assert_eq!(event.revision, previous + 1);
            events.push((*event).clone());
        }
    }
    events
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn open(sim: &Sim, context: &str) -> Store {
    Store::open_files(sim.clone(), OPTIONS, Encryption::none())
        .unwrap_or_else(|error| panic!("{context}: {error}"))
}

/// Runs clients over a directory in which something goes wrong, then checks what they find: in the running
/// store, after a restart, and after a loss of power. Returns how many calls there were to fail.
async fn survive(fault: Fault, seed: u64) -> usize {
    let sim = Sim::default();
    sim.set_fault(fault);
    let mut clients = Clients::default();
    let context = format!("{fault:?}, seed {seed}");
    if let Ok(store) = Store::open_files(sim.clone(), OPTIONS, Encryption::none()) {
        clients.run(&store, seed, 24).await;
        clients.check(&store, &format!("running, {context}")).await;
        let last = clients.acknowledged.keys().next_back().copied().unwrap_or(0);
        assert_eq!(store.revision(), last, "failed writes are invisible, {context}");
        drop(store);
    }
    let calls = sim.calls();
    sim.set_fault(Fault::None);
    for power_loss in 0..3 {
        let context = format!("after power loss {power_loss}, {context}");
        let sim = sim.after_power_loss(seed * 31 + power_loss);
        clients.check(&open(&sim, &context), &context).await;
        // Recovery itself leaves what the next one understands.
        let sim = sim.after_power_loss(seed);
        clients.check(&open(&sim, &context), &context).await;
    }
    let context = format!("after restart, {context}");
    let store = open(&sim, &context);
    clients.check(&store, &context).await;
    let errors = clients.errors;
    clients.adopt(&store).await;
    clients.run(&store, seed + 1000, 3).await;
    assert_eq!(clients.errors, errors, "{context}: the disk is well again");
    drop(store);
    let context = format!("power loss {context}");
    clients.check(&open(&sim.after_power_loss(seed), &context), &context).await;
    calls
}

#[test]
fn acknowledged_writes_survive_any_single_failing_call() {
    block_on(async {
        for seed in 0..2 {
            let calls = survive(Fault::None, seed).await;
            assert!(calls > 80, "the run is long enough to rotate and to write snapshots: {calls}");
            for call in 1..=calls {
                survive(Fault::Once(call), seed).await;
            }
        }
    });
}

#[test]
fn acknowledged_writes_survive_the_loss_of_power_at_any_call() {
    block_on(async {
        for seed in 10..13 {
            let calls = survive(Fault::None, seed).await;
            for call in 1..=calls {
                survive(Fault::Dead(call), seed).await;
            }
        }
    });
}

#[test]
fn a_full_disk_gives_errors_and_works_again_when_there_is_room() {
    block_on(async {
        let calls = survive(Fault::None, 20).await;
        for call in (5..=calls).step_by(3) {
            survive(Fault::Full(call), 20).await;
            let sim = Sim::default();
            let store = open(&sim, "a healthy disk");
            let mut clients = Clients::default();
            clients.run(&store, 20, 8).await;
            sim.set_fault(Fault::Full(1));
            clients.run(&store, 21, 8).await;
            assert!(clients.errors > 0, "the disk was full");
            sim.set_fault(Fault::None);
            let errors = clients.errors;
            clients.run(&store, 22, 8).await;
            assert_eq!(clients.errors, errors, "there is room again");
            clients.check(&store, "room again").await;
            drop(store);
            clients.check(&open(&sim, "restart"), "restart").await;
        }
    });
}

#[test]
fn that_writes_fail_is_known_until_there_is_room_again() {
    block_on(async {
        let sim = Sim::default();
        let store = open(&sim, "a healthy disk");
        store.write(write("key-0", b"one", EventKind::Put)).await.expect("it is written");
        assert_eq!(store.write_failure(), None);
        sim.set_fault(Fault::Full(1));
        store.write(write("key-0", b"lost", EventKind::Put)).await.expect_err("the disk is full");
        let failure = store.write_failure().expect("it is known");
        assert!(failure.contains("append to log-"), "{failure}");
        store.try_writing_again().await;
        assert!(store.write_failure().is_some(), "there is still no room");
        sim.set_fault(Fault::None);
        store.try_writing_again().await;
        assert_eq!(store.write_failure(), None, "although there was no write");
        store.write(write("key-0", b"two", EventKind::Put)).await.expect("it is written");
        drop(store);
        let found = open(&sim, "restart").get("t", "key-0").map(|entry| entry.value.to_vec());
        assert_eq!(found.as_deref(), Some(&b"two"[..]));
    });
}

#[test]
fn after_a_failed_sync_nothing_is_written_and_everything_is_read() {
    block_on(async {
        let sim = Sim::default();
        let store = open(&sim, "a healthy disk");
        let mut clients = Clients::default();
        for value in [b"one", b"two"] {
            clients.write_group(&store, vec![("key-0".to_owned(), value.to_vec(), EventKind::Put)]).await;
        }
        // The next write finds room in the file: one call writes, the next one syncs.
        sim.set_fault(Fault::Once(2));
        let error = store.write(write("key-0", b"lost", EventKind::Put)).await.unwrap_err();
        assert!(error.to_string().contains("sync log-"), "{error}");
        let error = store.write(write("key-0", b"refused", EventKind::Put)).await.unwrap_err();
        assert!(error.to_string().contains("the store rejects all writes until it is reopened"), "{error}");
        clients.unknown.push(("key-0".to_owned(), b"lost".to_vec(), EventKind::Put));
        clients.check(&store, "reads go on").await;
        drop(store);
        clients.check(&open(&sim, "reopened"), "reopened").await;
    });
}

#[test]
fn a_failed_close_leaves_nothing_behind_that_a_power_loss_turns_into_damage() {
    block_on(async {
        for call in 1..=4 {
            let sim = Sim::default();
            let store = open(&sim, "a healthy disk");
            let mut clients = Clients::default();
            clients.write_group(&store, vec![("key-0".to_owned(), b"one".to_vec(), EventKind::Put)]).await;
            sim.set_fault(Fault::Once(call));
            let _ = store.close().await;
            assert!(sim.calls() >= call, "closing makes {} calls", sim.calls());
            let store = open(&sim, "opened again");
            clients.write_group(&store, vec![("key-0".to_owned(), b"two".to_vec(), EventKind::Put)]).await;
            drop(store);
            let context = format!("call {call} of the close failed");
            clients.check(&open(&sim.after_power_loss(1), &context), &context).await;
        }
    });
}

#[test]
fn writers_go_on_while_a_snapshot_is_written_and_a_compaction_waits_for_it() {
    block_on(async {
        let sim = Sim::default();
        let store = open(&sim, "a healthy disk");
        let mut clients = Clients::default();
        let put = |number: usize| (format!("key-{}", number % 4), vec![b'x'; 100 + number], EventKind::Put);
        for number in 0..20 {
            clients.write_group(&store, vec![put(number)]).await;
        }
        sim.hold_snapshots.store(true, Ordering::Relaxed);
        let compact = |revision| {
            let store = store.clone();
            tokio::spawn(async move { store.compact(revision).await.unwrap() })
        };
        let first = compact(15);
        for number in 20..30 {
            clients.write_group(&store, vec![put(number)]).await;
        }
        let second = compact(25);
        for number in 30..35 {
            clients.write_group(&store, vec![put(number)]).await;
        }
        let meanwhile = (store.compacted(), first.is_finished(), second.is_finished());
        sim.hold_snapshots.store(false, Ordering::Relaxed);
        assert_eq!(meanwhile, (15, false, false));
        first.await.unwrap();
        second.await.unwrap();
        clients.compacted = 25;
        assert!(store.stats().snapshots >= 1);
        clients.check(&store, "running").await;
        drop(store);
        clients.check(&open(&sim, "restart"), "restart").await;
    });
}

/// A disk that is nearly full takes small writes; that is no news, and the log does not fill with it.
#[test]
fn a_small_write_that_finds_room_does_not_hide_that_larger_ones_do_not() {
    block_on(async {
        let sim = Sim::default();
        let store = open(&sim, "a healthy disk");
        store.write(write("key-0", b"one", EventKind::Put)).await.expect("it is written");
        sim.set_fault(Fault::Full(1));
        store.write(write("key-1", &[b'x'; 600], EventKind::Put)).await.expect_err("the disk is full");
        sim.set_fault(Fault::None);
        store.write(write("key-0", b"two", EventKind::Put)).await.expect("a small one fits");
        assert!(store.write_failure().is_some(), "one as large as the one that failed has not been written");
        store.write(write("key-1", &[b'x'; 600], EventKind::Put)).await.expect("it fits now");
        assert_eq!(store.write_failure(), None);
    });
}

#[test]
fn a_writer_that_panics_is_known_to_be_gone_and_reads_go_on() {
    block_on(async {
        let sim = Sim::default();
        let store = open(&sim, "a healthy disk");
        store.write(write("key-0", b"one", EventKind::Put)).await.expect("it is written");
        assert_eq!(store.gave_up(), None);
        sim.panic_writes.store(true, Ordering::Relaxed);
        store.write(write("key-0", b"lost", EventKind::Put)).await.expect_err("the writer panicked");
        let begun = Instant::now();
        while store.gave_up().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing says that the writer is gone");
            tokio::task::yield_now().await;
        }
        let why = store.gave_up().expect("it was just looked at");
        assert!(why.contains("panicked"), "{why}");
        let error = store.write(write("key-0", b"late", EventKind::Put)).await.unwrap_err();
        assert!(error.to_string().contains(&why), "{error}");
        store.try_writing_again().await;
        assert!(store.write_failure().is_some(), "only opening it again helps");
        assert_eq!(store.get("t", "key-0").expect("reads go on").value, &b"one"[..]);
        drop(store);
        sim.panic_writes.store(false, Ordering::Relaxed);
        let store = open(&sim, "restart");
        assert_eq!(store.gave_up(), None);
        assert_eq!(store.get("t", "key-0").expect("it was acknowledged").value, &b"one"[..]);
    });
}

#[test]
fn a_snapshot_that_panics_stops_no_later_one() {
    block_on(async {
        let sim = Sim::default();
        let store = open(&sim, "a healthy disk");
        let mut clients = Clients::default();
        let put = |number: usize| (format!("key-{}", number % 4), vec![b'x'; 100 + number], EventKind::Put);
        for number in 0..20 {
            clients.write_group(&store, vec![put(number)]).await;
        }
        sim.panic_snapshots.store(true, Ordering::Relaxed);
        let error = store.compact(15).await.expect_err("the snapshot panicked");
        assert!(error.to_string().contains("write a snapshot: it panicked"), "{error}");
        sim.panic_snapshots.store(false, Ordering::Relaxed);
        store.compact(18).await.expect("the next one is written");
        assert_eq!(store.stats().snapshots, 1);
    });
}
