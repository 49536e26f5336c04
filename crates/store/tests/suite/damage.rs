//! Corruption tests: files that were truncated or changed by one byte. The store opens to a prefix of what was
//! written, or refuses and names the file. It never shows anything else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use store::{Change, EventKind, Expect, OpenError, Options, Payload, Range, Revision, Store, Write};

const OPTIONS: Options = Options { segment_bytes: 700, value_bytes_max: 1 << 20 };
const HEADER_BYTES: usize = 36;

type State = BTreeMap<String, (Revision, Vec<u8>)>;

/// A store with a few writes, and what it showed after each of them.
struct Original {
    directory: tempfile::TempDir,
    /// By revision, those that are compacted too.
    states: BTreeMap<Revision, State>,
}

#[derive(Clone, Copy)]
struct Shape {
    options: Options,
    /// Compacts to this revision after so many writes.
    compact: Option<(u64, u64)>,
    /// Whether the store is closed in the end, or its files are taken as they are while it runs.
    close: bool,
}

const ONE_FILE: Shape =
    Shape { options: Options { segment_bytes: 4096, value_bytes_max: 1 << 20 }, compact: None, close: true };

/// A directory in memory where there is one: thousands of stores are opened here, and none needs a disk.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

fn write(key: &str, value: &str, kind: EventKind) -> Write {
    let payload = Payload::plain(value.to_owned());
    let change = match kind {
        EventKind::Put => Change::Put(payload),
        EventKind::Delete => Change::Delete(payload),
    };
    Write { table: "t".into(), key: key.into(), expect: Expect::Any, limits: Vec::new(), change }
}

fn state(store: &Store, at: Revision) -> State {
    let page = store.range("t", Range { at: Some(at), ..Range::default() }).expect("a readable revision");
    page.entries
        .into_iter()
        .map(|entry| (entry.key.to_string(), (entry.revision, entry.value.to_vec())))
        .collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn original(shape: Shape, writes: u64) -> Original {
    let source = scratch();
    let store = Store::open(source.path(), shape.options).expect("an empty store");
    let mut states = BTreeMap::from([(0, State::new())]);
    block_on(async {
        for number in 1..=writes {
            let kind = if number % 5 == 0 { EventKind::Delete } else { EventKind::Put };
            // A delete takes the key of the put before it.
            let author = number - u64::from(kind == EventKind::Delete);
            let key = author % 4 + 10 * (author % 5);
            let value = format!("value {number} ").repeat((number % 7) as usize);
            store.write(write(&format!("key-{key}"), &value, kind)).await.expect("the disk is well");
            states.insert(number, state(&store, number));
            if let Some((revision, after)) = shape.compact
                && after == number
            {
                store.compact(revision).await.expect("the disk is well");
            }
        }
    });
    let directory = scratch();
    if shape.close {
        block_on(store.clone().close()).expect("the disk is well");
    }
    copy(source.path(), directory.path());
    Original { directory, states }
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        fs::copy(&file, to.join(file.file_name().expect("a file"))).expect("a copy");
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "ls")).collect();
    files.sort();
    files
}

impl Original {
    fn newest(&self) -> Revision {
        *self.states.keys().next_back().expect("at least the compacted revision")
    }

    /// Opens a copy in which one file has other contents, and returns the revision it ends at. Whatever it
    /// shows is what was there at that revision.
    fn open_with(&self, file: &Path, contents: &[u8], context: &str) -> Result<Revision, OpenError> {
        let directory = scratch();
        copy(self.directory.path(), directory.path());
        fs::write(directory.path().join(file.file_name().expect("a file")), contents).expect("a write");
        let store = Store::open(directory.path(), OPTIONS)?;
        for at in store.compacted()..=store.revision() {
            assert_eq!(Some(&state(&store, at)), self.states.get(&at), "{context}");
        }
        let revision = store.revision();
        // What it goes on from is as good as new.
        block_on(store.write(write("more", "value", EventKind::Put))).expect("the disk is well");
        drop(store);
        let store =
            Store::open(directory.path(), OPTIONS).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(store.revision(), revision + 1, "{context}");
        Ok(revision)
    }
}

#[test]
fn every_truncation_of_a_log_opens_to_a_prefix() {
    let original = original(ONE_FILE, 12);
    let [file] = &files(original.directory.path())[..] else { panic!("one file") };
    let contents = fs::read(file).unwrap();
    let mut reached = Vec::new();
    for length in 0..contents.len() {
        let context = format!("cut to {length} bytes");
        match original.open_with(file, &contents[..length], &context) {
            Ok(revision) => reached.push(revision),
            // A file has its header before it has its name, so this is no crash.
            Err(OpenError::Corrupt { offset: 0, .. }) if length < HEADER_BYTES => {}
            Err(error) => panic!("{context}: {error}"),
        }
    }
    assert!(reached.is_sorted());
    reached.dedup();
    assert_eq!(reached, (0..=12).collect::<Vec<_>>());
}

#[test]
fn a_log_that_ends_before_its_snapshot_is_refused() {
    let shape = Shape { options: OPTIONS, compact: Some((40, 40)), close: true };
    let original = original(shape, 40);
    let names = files(original.directory.path());
    let [file, snapshot] = &names[..] else { panic!("{names:?}") };
    assert!(snapshot.to_string_lossy().contains("snapshot-"));
    let contents = fs::read(file).unwrap();
    let mut opened = 0;
    for length in 0..contents.len() {
        match original.open_with(file, &contents[..length], &format!("cut to {length} bytes")) {
            Ok(revision) => assert_eq!(revision, 40),
            Err(OpenError::Corrupt { .. }) => continue,
            Err(error) => panic!("{error}"),
        }
        opened += 1;
    }
    // Cut inside one of the two frames behind the last write, which hold none.
    assert_eq!(opened, 64);
}

/// Changes each byte of each file in turn. `may_lose` is how many of the newest writes may go missing
/// without a word.
fn check_flips(original: &Original, may_lose: u64) -> (usize, usize) {
    let (mut refused, mut harmless) = (0, 0);
    for file in files(original.directory.path()) {
        let contents = fs::read(&file).expect("a file");
        // Zeros behind the end of a log that was not closed are all alike.
        let zeros = contents.iter().rev().take_while(|byte| **byte == 0).count();
        for offset in 0..contents.len() - zeros.saturating_sub(64) {
            let mut changed = contents.clone();
            changed[offset] ^= [0x01, 0x80, 0xff][offset % 3];
            let context = format!("{}, byte {offset}", file.display());
            match original.open_with(&file, &changed, &context) {
                Ok(revision) => {
                    assert!(revision + may_lose >= original.newest(), "{context}: {revision}");
                    harmless += 1;
                }
                Err(OpenError::Corrupt { file: named, .. } | OpenError::Version { file: named, .. }) => {
                    assert!(named.to_string_lossy().contains(".ls"), "{context}: {named:?}");
                    refused += 1;
                }
                Err(error) => panic!("{context}: {error}"),
            }
        }
    }
    (refused, harmless)
}

#[test]
fn after_a_clean_end_no_changed_byte_costs_a_write() {
    let (refused, harmless) = check_flips(&original(ONE_FILE, 12), 0);
    // The frame that says "closed" holds nothing: a change there is taken for a torn end.
    assert_eq!(harmless, 32);
    assert!(refused > 500, "{refused}");
}

#[test]
fn without_a_clean_end_a_changed_byte_costs_at_most_the_newest_group() {
    let (refused, _) = check_flips(&original(Shape { close: false, ..ONE_FILE }, 12), 1);
    assert!(refused > 500, "{refused}");
}

#[test]
fn a_write_before_a_compaction_is_not_taken_for_a_torn_end() {
    let shape = Shape { compact: Some((6, 12)), close: false, ..ONE_FILE };
    let (refused, harmless) = check_flips(&original(shape, 12), 0);
    assert!(refused > 500 && harmless >= 32, "{refused} {harmless}");
}

#[test]
fn several_files_and_a_snapshot_are_checked_alike() {
    let shape = Shape { options: OPTIONS, compact: Some((24, 24)), close: true };
    let original = original(shape, 40);
    let names = files(original.directory.path());
    let count = |prefix: &str| names.iter().filter(|path| path.to_string_lossy().contains(prefix)).count();
    assert_eq!(count("snapshot-"), 1, "{names:?}");
    assert!(count("log-") >= 2, "{names:?}");
    let (refused, harmless) = check_flips(&original, 0);
    assert_eq!(harmless, 32);
    assert!(refused > 1000, "{refused}");
}

#[test]
fn a_missing_file_is_noticed() {
    let shape = Shape { options: OPTIONS, compact: Some((24, 24)), close: true };
    let original = original(shape, 60);
    let names = files(original.directory.path());
    let (newest, others) = names.split_last().expect("files");
    for missing in others.iter().filter(|path| !newest.ends_with(path)) {
        let directory = scratch();
        copy(original.directory.path(), directory.path());
        fs::remove_file(directory.path().join(missing.file_name().unwrap())).unwrap();
        match Store::open(directory.path(), OPTIONS) {
            Err(OpenError::Corrupt { .. }) => {}
            // The only file that may be missing without notice is the newest log, as if it never was.
            Err(error) => panic!("{}: {error}", missing.display()),
            Ok(store) => {
                assert!(missing == names.iter().rfind(is_log).unwrap(), "{missing:?} {}", store.revision())
            }
        }
    }
}

fn is_log(path: &&PathBuf) -> bool {
    path.to_string_lossy().contains("log-")
}

#[test]
fn a_refusal_names_the_file_the_place_and_a_way_out_and_changes_nothing() {
    let original = original(ONE_FILE, 12);
    let [file] = &files(original.directory.path())[..] else { panic!("one file") };
    let mut contents = fs::read(file).unwrap();
    contents[200] ^= 1;
    fs::write(file, &contents).unwrap();
    let message = Store::open(original.directory.path(), OPTIONS).err().unwrap().to_string();
    for part in [&*file.to_string_lossy(), "corrupt at byte", "checksum", "backup", "docs/store-format.md"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(fs::read(file).unwrap(), contents);
}

#[test]
fn files_of_another_store_or_version_are_refused() {
    let original = original(ONE_FILE, 3);
    let [file] = &files(original.directory.path())[..] else { panic!("one file") };
    let mut contents = fs::read(file).unwrap();
    contents[8] = 9;
    let error = original.open_with(file, &contents, "version 9").unwrap_err();
    assert!(error.to_string().contains("format version 9, this program reads version 1"), "{error}");
    let error =
        original.open_with(file, b"not a log at all, but long enough for a header", "text").unwrap_err();
    assert!(error.to_string().contains("it is not a file of this store"), "{error}");
}
