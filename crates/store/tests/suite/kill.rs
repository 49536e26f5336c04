//! Crash test: a process that writes from several threads is killed again and again, and each time the next one finds
//! every acknowledged write, in order and whole. `STORE_KILL_ROUNDS` sets how often.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use store::{Change, EventKind, Expect, Options, Payload, Range, Revision, Store, Write};

const OPTIONS: Options = Options { segment_bytes: 48 << 10, value_bytes_max: 1 << 20 };
const DIRECTORY: &str = "STORE_KILL_DIRECTORY";
const THREADS: u64 = 6;

/// The value that a thread writes; its length and contents follow from its numbers.
fn value(thread: u64, number: u64) -> String {
    format!("{thread}:{number}:").repeat(1 + (thread * 7 + number * 13) as usize % 90)
}

fn key(thread: u64, number: u64) -> String {
    format!("{thread}/{}", number % 9)
}

fn write(thread: u64, number: u64) -> Write {
    let payload = Payload { bytes: value(thread, number).into(), revision_at: Some(0) };
    let delete = number % 18 == 4;
    let change = if delete { Change::Delete(payload) } else { Change::Put(payload) };
    Write {
        table: "t".into(),
        key: key(thread, number).into(),
        expect: Expect::Any,
        limits: Vec::new(),
        change,
    }
}

/// Runs in the child: writes until it is killed and reports each acknowledged write.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = Store::open(Path::new(&directory), OPTIONS).unwrap();
    let start = store.revision();
    let threads = (0..THREADS).map(|thread| {
        let store = store.clone();
        std::thread::spawn(move || block_on(child_thread(store, thread, start)))
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

async fn child_thread(store: Store, thread: u64, start: Revision) {
    for number in start.. {
        let Ok(revision) = store.write(write(thread, number)).await else { continue };
        // One write to a pipe: a line is there whole or not at all.
        let line = format!("\nack {revision} {thread} {number}\n");
        std::io::stdout().write_all(line.as_bytes()).expect("the parent reads");
        if number % 40 == 0 {
            store.compact(store.revision().saturating_sub(30)).await.expect("the disk is well");
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Starts a child, kills it after a while and returns what it said, by revision.
fn run_and_kill(directory: &Path, after: Duration) -> BTreeMap<Revision, (u64, u64)> {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "kill::child", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let output = child.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.filter_map(|line| parse(&line)).collect::<BTreeMap<_, _>>()
    });
    std::thread::sleep(after);
    child.kill().expect("the child still runs");
    child.wait().expect("the child was started here");
    reader.join().expect("no reader panics")
}

fn parse(line: &str) -> Option<(Revision, (u64, u64))> {
    let mut words = line.strip_prefix("ack ")?.split(' ').map(|word| word.parse().ok());
    Some((words.next()??, (words.next()??, words.next()??)))
}

/// The thread and number of a value, if it is one that a thread has written, whole, at this revision.
fn author(bytes: &[u8], revision: Revision) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(bytes).ok()?.strip_prefix(&revision.to_string())?;
    let mut words = text.split(':').map(|word| word.parse().ok());
    let (thread, number) = (words.next()??, words.next()??);
    (text == value(thread, number)).then_some((thread, number))
}

/// Checks a directory after a kill; `acknowledged` is what that child said.
fn check(directory: &Path, acknowledged: &BTreeMap<Revision, (u64, u64)>) {
    let store = Store::open(directory, OPTIONS).unwrap_or_else(|error| panic!("{error}"));
    let last = acknowledged.keys().next_back().copied().unwrap_or(0);
    assert!(store.revision() >= last, "{last} was acknowledged, the store ends at {}", store.revision());
    let events = block_on(events(&store));
    let mut newest = BTreeMap::new();
    for (revision, bytes, kind) in events {
        let author = author(&bytes, revision).unwrap_or_else(|| panic!("half a write at {revision}"));
        if let Some(expected) = acknowledged.get(&revision) {
            assert_eq!(author, *expected, "revision {revision}");
        }
        newest.insert(key(author.0, author.1), (revision, kind));
    }
    let page = store.range("t", Range::default()).expect("the newest revision");
    for entry in &page.entries {
        assert!(author(&entry.value, entry.revision).is_some(), "half a write under {}", entry.key);
        assert!(newest.get(&*entry.key).is_none_or(|last| *last == (entry.revision, EventKind::Put)));
    }
    // Those whose events are compacted are there unless something newer has come over them.
    for (revision, (thread, number)) in acknowledged.range(..=store.compacted()) {
        let written = &key(*thread, *number);
        let found = page.entries.iter().find(|entry| *entry.key == **written);
        let delete = matches!(write(*thread, *number).change, Change::Delete(_));
        let newer =
            acknowledged.range(revision + 1..).any(|(_, (thread, number))| key(*thread, *number) == *written);
        let overwritten = newer || newest.contains_key(written);
        assert!(
            delete || overwritten || found.is_some_and(|entry| entry.revision >= *revision),
            "{revision}"
        );
    }
}

/// All events since the compacted revision, which must follow one another without a gap.
async fn events(store: &Store) -> Vec<(Revision, Vec<u8>, EventKind)> {
    let mut watch = store.watch("t", "", store.compacted()).expect("a watch resumes after a restart");
    let mut next = store.compacted() + 1;
    let mut events = Vec::new();
    while next <= store.revision() {
        for event in watch.next().await.expect("no compaction").events {
            assert_eq!(event.revision, next);
            next += 1;
            events.push((event.revision, event.value.to_vec(), event.kind));
        }
    }
    events
}

#[test]
fn every_acknowledged_write_survives_being_killed() {
    let rounds =
        std::env::var("STORE_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(30u64);
    let directory = tempfile::tempdir().unwrap();
    let mut total = 0;
    for round in 0..rounds {
        let after = Duration::from_millis(20 + (round * 37 + u64::from(std::process::id())) % 90);
        let acknowledged = run_and_kill(directory.path(), after);
        total += acknowledged.len();
        check(directory.path(), &acknowledged);
    }
    assert!(total as u64 > rounds, "the children wrote: {total}");
    eprintln!("{rounds} rounds, {total} acknowledged writes");
}
