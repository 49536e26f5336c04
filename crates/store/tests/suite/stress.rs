//! Many writers and watchers at once, with compaction under way: every watcher sees every event once and in
//! order, and no compare-and-swap is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake};
use std::time::Duration;

use store::{Change, Expect, Options, Payload, Range, Store, WatchError, Write, WriteError};

const WRITERS: usize = 8;
const WRITES: usize = 150;

/// Adds one to a counter with compare-and-swap until it succeeds.
async fn increment(store: &Store, table: &str, key: &str) {
    loop {
        let entry = store.get(table, key);
        let (expect, value) = match &entry {
            None => (Expect::Absent, 0),
            Some(entry) => {
                let text = std::str::from_utf8(&entry.value).expect("a number");
                (Expect::Revision(entry.revision), text.parse::<u64>().expect("a number"))
            }
        };
        let change = Change::Put(Payload::plain((value + 1).to_string()));
        match store
            .write(Write { table: table.into(), key: key.into(), expect, limits: Vec::new(), change })
            .await
        {
            Ok(_) => return,
            Err(WriteError::Conflict { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn writer(store: Store, number: usize) {
    for write in 0..WRITES {
        let table = if write % 2 == 0 { "even" } else { "odd" };
        increment(&store, table, "shared").await;
        increment(&store, table, &format!("own/{number}")).await;
    }
}

/// Follows a table until each writer is done and returns the last value of each key. A watcher that
/// compaction has passed starts again from a list, as clients do.
async fn watcher(store: Store, table: &'static str) -> BTreeMap<String, u64> {
    let mut seen = BTreeMap::new();
    let mut watch = store.watch(table, "", 0).ok();
    let done = (WRITERS * WRITES / 2) as u64;
    while seen.get("shared") != Some(&done) || seen.values().sum::<u64>() != 2 * done {
        let Some(following) = &mut watch else {
            let page = store.range(table, Range::default()).expect("the newest revision");
            seen.extend(page.entries.iter().map(|entry| (entry.key.to_string(), number(&entry.value))));
            watch = store.watch(table, "", page.revision).ok();
            continue;
        };
        match following.next().await {
            Ok(batch) => {
                assert!(batch.events.is_sorted_by_key(|event| event.revision));
                for event in &batch.events {
                    let before = seen.insert(event.key.to_string(), number(&event.value));
                    // Each write adds one: a gap is a lost event, a repetition a repeated one.
                    assert_eq!(before.unwrap_or(0) + 1, number(&event.value));
                }
            }
            Err(WatchError::Compacted { .. }) => watch = None,
            Err(error) => panic!("{error}"),
        }
    }
    seen
}

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).expect("a number").parse().expect("a number")
}

async fn check(store: Store) {
    let watchers: Vec<_> =
        (0..20).map(|index| tokio::spawn(watcher(store.clone(), ["even", "odd"][index % 2]))).collect();
    let writers: Vec<_> = (0..WRITERS).map(|number| tokio::spawn(writer(store.clone(), number))).collect();
    let compactor = tokio::spawn({
        let store = store.clone();
        async move {
            loop {
                let revision = store.revision().saturating_sub(40);
                store.compact(revision).await.expect("the disk is well");
                store.pack(10);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
    for writer in writers {
        writer.await.expect("no writer panics");
    }
    for watcher in watchers {
        let seen = tokio::time::timeout(Duration::from_secs(60), watcher).await;
        let seen = seen.expect("every watcher gets everything").expect("no watcher panics");
        assert_eq!(seen.len(), WRITERS + 1);
    }
    compactor.abort();
    assert!(compactor.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(store.revision(), (2 * WRITERS * WRITES) as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watchers_in_memory_see_every_write_once() {
    check(Store::in_memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watchers_on_disk_see_every_write_once_and_writers_share_syncs() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 16 << 10, ..Options::default() };
    let store = Store::open(directory.path(), options).unwrap();
    check(store.clone()).await;
    let stats = store.stats();
    assert!(stats.snapshots > 0, "{stats:?}");
    assert!(stats.groups < stats.revision, "{stats:?}");
    drop(store);
    let store = Store::open(directory.path(), options).unwrap();
    assert_eq!(store.stats().live_keys, 2 * (WRITERS as u64 + 1));
}

/// Counts how often it was woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn an_event_wakes_each_watcher_of_its_table_once_and_no_other() {
    let store = Store::in_memory();
    let wakes = Arc::new(Count::default());
    let waker = wakes.clone().into();
    let mut context = Context::from_waker(&waker);
    let mut watches: Vec<_> = (0..1000).map(|_| store.watch("one", "", 0).unwrap()).collect();
    let mut waiting: Vec<_> = watches.iter_mut().map(|watch| Box::pin(watch.next())).collect();
    assert!(waiting.iter_mut().all(|next| next.as_mut().poll(&mut context).is_pending()));
    for _ in 0..50 {
        increment(&store, "other", "key").await;
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    increment(&store, "one", "key").await;
    increment(&store, "one", "key").await;
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1000);
    for next in waiting {
        assert_eq!(next.await.unwrap().events.len(), 2);
    }
}
