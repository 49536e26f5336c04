//! Limits of writes: what is counted under the first part of keys is exact at every moment, also for writes that share a
//! sync, and is the same after the store is opened again.

use std::collections::BTreeMap;

use proptest::prelude::*;
use store::{
    Change, Counter, Expect, Limit, Measured, Options, Payload, Range, Store, Tally, Write, WriteError,
};

const TABLE: &str = "t";

/// How many `x` and `y` a value has.
fn measure(value: &[u8]) -> Measured {
    let count = |letter: u8| value.iter().filter(|byte| **byte == letter).count() as u64;
    [count(b'x'), count(b'y')]
}

fn put(key: &str, value: &str, limits: &[Limit]) -> Write {
    let change = Change::Put(Payload::plain(value.to_owned()));
    Write { table: TABLE.into(), key: key.into(), expect: Expect::Any, limits: limits.to_vec(), change }
}

fn delete(key: &str) -> Write {
    let change = Change::Delete(Payload::plain(""));
    Write { table: TABLE.into(), key: key.into(), expect: Expect::Any, limits: Vec::new(), change }
}

fn most(counter: Counter, max: u64) -> [Limit; 1] {
    [Limit { counter, max }]
}

fn tally(entries: u64, measured: Measured) -> Tally {
    Tally { entries, measured }
}

#[tokio::test]
async fn a_write_that_adds_too_much_is_refused_and_no_other() {
    let store = Store::in_memory();
    store.write(put("a/1", "xy", &[])).await.unwrap();
    store.measure(TABLE, measure);
    assert_eq!(store.tally(TABLE, "a"), tally(1, [1, 1]), "what was there before is measured");
    let two = most(Counter::Entries, 2);
    store.write(put("a/2", "x", &two)).await.unwrap();
    let refused = store.write(put("a/3", "", &two)).await.unwrap_err();
    assert!(
        matches!(refused, WriteError::LimitReached { counter: Counter::Entries, next: 3, max: 2 }),
        "{refused}"
    );
    store.write(put("b/1", "", &two)).await.unwrap();
    store.write(put("a/2", "x", &most(Counter::Entries, 1))).await.unwrap();
    let none = most(Counter::Measured(1), 0);
    store.write(put("a/1", "x", &none)).await.unwrap();
    assert_eq!(store.tally(TABLE, "a"), tally(2, [2, 0]));
    let refused = store.write(put("a/1", "xyy", &none)).await.unwrap_err();
    assert!(matches!(refused, WriteError::LimitReached { next: 2, max: 0, .. }), "{refused}");
    assert_eq!(store.tally(TABLE, "a"), tally(2, [2, 0]), "what was refused does not count");
    store.write(delete("a/1")).await.unwrap();
    store.write(put("a/3", "", &two)).await.unwrap();
    assert_eq!(store.tally("another", "a"), Tally::default());
}

/// All of them wait for the same sync; the ones that go make room for others within their group.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writes_stay_within_a_limit_together_and_use_all_of_it() {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    let open = || {
        let store = Store::open(folder.path(), Options::default()).expect("a store");
        store.measure(TABLE, measure);
        store
    };
    let store = open();
    for round in 0..5 {
        let limits = [most(Counter::Entries, 40), most(Counter::Measured(0), 15 + round)].concat();
        let writes = (0..200).map(|number| {
            let value = if number % 2 == 0 { "x" } else { "y" };
            let (store, write) = (store.clone(), put(&format!("a/{number}"), value, &limits));
            tokio::spawn(async move { store.write(write).await })
        });
        let writes: Vec<_> = writes.collect();
        for write in writes {
            let answer = write.await.expect("no panic");
            assert!(matches!(answer, Ok(_) | Err(WriteError::LimitReached { .. })), "{answer:?}");
        }
        let counted = store.tally(TABLE, "a");
        assert_eq!(counted.entries, 40);
        assert!(counted.measured[0] <= 15 + round, "{counted:?}");
        assert_eq!(counted, recount(&store)["a"]);
    }
    let before = store.tally(TABLE, "a");
    store.close().await.expect("it closes");
    let store = open();
    assert_eq!(store.tally(TABLE, "a"), before);
    assert!(store.write(put("a/more", "", &most(Counter::Entries, 40))).await.is_err());
}

/// The tallies by reading everything.
fn recount(store: &Store) -> BTreeMap<String, Tally> {
    let mut counted: BTreeMap<String, Tally> = BTreeMap::new();
    for entry in store.range(TABLE, Range::default()).expect("readable").entries {
        let Some((part, _)) = entry.key.split_once('/') else { continue };
        let tally = counted.entry(part.to_owned()).or_default();
        let measured = measure(&entry.value);
        *tally =
            Tally { entries: tally.entries + 1, measured: [0, 1].map(|i| tally.measured[i] + measured[i]) };
    }
    counted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_is_written_is_counted(
        steps in prop::collection::vec((0..6_usize, prop::option::of("[xyz]{0,3}"), 0..4_u64), 1..60),
        measured_after in 0..60_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let store = Store::in_memory();
        for (step, (key, value, max)) in steps.into_iter().enumerate() {
            if step == measured_after {
                store.measure(TABLE, measure);
            }
            let key = ["a/1", "a/2", "a/3", "b/1", "b/2", "alone"][key];
            let limits = [most(Counter::Entries, max), most(Counter::Measured(0), max)].concat();
            let part = key.split('/').next().unwrap_or_default();
            let before = store.tally(TABLE, part);
            // Refusals are no writes; what is allowed is what the recount below says.
            let _ = match value {
                Some(value) => runtime.block_on(store.write(put(key, &value, &limits))),
                None => runtime.block_on(store.write(delete(key))),
            };
            let after = store.tally(TABLE, part);
            prop_assert!(after.entries <= max.max(before.entries), "{before:?} {after:?}");
        }
        store.measure(TABLE, measure);
        let recounted = recount(&store);
        for part in ["a", "b", "alone"] {
            prop_assert_eq!(store.tally(TABLE, part), recounted.get(part).copied().unwrap_or_default());
        }
    }
}
