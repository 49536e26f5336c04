//! Store benchmark: durable writes per second, memory per object, time to open. `cargo bench -p store` prints it;
//! `STORE_BENCH_DIRECTORY` says on which disk (default: the current directory).

use std::fmt::Display;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Change, Expect, Options, Payload, Range, Store, Write};
use tokio::runtime::{Builder, Runtime};

const VALUE_BYTES: usize = 2000;
const OBJECTS: usize = 100_000;

fn say(what: impl Display) {
    // A failed write to a closed terminal is ignored.
    let _ = writeln!(std::io::stdout(), "{what}");
}

fn key(number: usize) -> Arc<str> {
    format!("namespace-{}/object-{number:07}", number % 50).into()
}

fn put(number: usize) -> Write {
    // Not constant, in case the disk compresses.
    let value: Vec<u8> = (0..VALUE_BYTES).map(|index| (number.wrapping_mul(index + 7) >> 3) as u8).collect();
    let payload = Payload { bytes: value.into(), revision_at: Some(100) };
    Write {
        table: "objects".into(),
        key: key(number),
        expect: Expect::Any,
        limits: Vec::new(),
        change: Change::Put(payload),
    }
}

fn resident_bytes() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

/// Durable writes per second and their latencies.
fn writes(runtime: &Runtime, directory: &Path, clients: usize) {
    let store =
        Store::open(&directory.join(format!("writes-{clients}")), Options::default()).expect("a store");
    let end = Instant::now() + Duration::from_secs(4);
    let started = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let store = store.clone();
            runtime.spawn(async move {
                let mut latencies = Vec::new();
                while Instant::now() < end {
                    let started = Instant::now();
                    store.write(put(latencies.len() * 64 + client)).await.expect("a write");
                    latencies.push(started.elapsed());
                }
                latencies
            })
        })
        .collect();
    let collect = async { futures(tasks).await };
    let mut latencies = runtime.block_on(collect);
    let rate = latencies.len() as f64 / started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let (p50, p99) = (latencies[latencies.len() / 2], latencies[latencies.len() * 99 / 100]);
    let group = latencies.len() as f64 / store.stats().groups as f64;
    say(format_args!(
        "{clients:3} writers: {rate:8.0} durable writes/s, p50 {p50:?}, p99 {p99:?}, {group:.1} a sync"
    ));
}

async fn futures(tasks: Vec<tokio::task::JoinHandle<Vec<Duration>>>) -> Vec<Duration> {
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("a writer"));
    }
    all
}

/// Memory over keys and values, first with all history and then without.
fn memory(runtime: &Runtime) {
    let before = resident_bytes();
    let store = Store::in_memory();
    runtime.block_on(async {
        for number in 0..OBJECTS {
            store.write(put(number)).await.expect("a write");
        }
        // A value that was handed out once is counted by reference from then on.
        let page = store.range("objects", Range::default()).expect("a list");
        assert_eq!(page.entries.len(), OBJECTS);
        drop(page);
        for compacted in [false, true] {
            if compacted {
                store.compact(store.revision()).await.expect("a compaction");
            }
            let used = resident_bytes() - before;
            let over = (used as f64 - store.stats().live_bytes as f64) / OBJECTS as f64;
            say(format_args!(
                "memory, history compacted: {compacted}: {over:.0} bytes an object over key and value"
            ));
        }
    });
}

fn opening(runtime: &Runtime, directory: &Path) {
    let directory = directory.join("opening");
    runtime.block_on(async {
        let store = Store::open(&directory, Options::default()).expect("a store");
        let mut tasks = tokio::task::JoinSet::new();
        for client in 0..256 {
            let store = store.clone();
            tasks.spawn(async move {
                for number in (client..OBJECTS).step_by(256) {
                    store.write(put(number)).await.expect("a write");
                }
            });
        }
        while tasks.join_next().await.is_some() {}
        store.close().await.expect("a close");
    });
    open(&directory, "log");
    runtime.block_on(async {
        let store = Store::open(&directory, Options::default()).expect("a store");
        let started = Instant::now();
        store.compact(store.revision()).await.expect("a compaction");
        say(format_args!(
            "compaction with a snapshot of {} bytes: {:?}",
            store.stats().snapshot_bytes,
            started.elapsed()
        ));
    });
    open(&directory, "snapshot");
}

fn open(directory: &Path, from: &str) {
    let started = Instant::now();
    let store = Store::open(directory, Options::default()).expect("a store");
    say(format_args!("open {} objects from a {from}: {:?}", store.stats().live_keys, started.elapsed()));
    let started = Instant::now();
    let page = store.range("objects", Range::default()).expect("a list");
    say(format_args!("list of {}: {:?}", page.entries.len(), started.elapsed()));
    let started = Instant::now();
    let range = Range { limit: Some(500), after: Some("namespace-25/"), ..Range::default() };
    let page = store.range("objects", range).expect("a page");
    say(format_args!(
        "page of {} with {} remaining: {:?}",
        page.entries.len(),
        page.remaining,
        started.elapsed()
    ));
}

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    memory(&runtime);
    let parent = std::env::var_os("STORE_BENCH_DIRECTORY").unwrap_or_else(|| ".".into());
    let directory = tempfile::tempdir_in(parent).expect("a directory");
    for clients in [1, 16, 64] {
        writes(&runtime, directory.path(), clients);
    }
    opening(&runtime, directory.path());
}
