//! The guarantees of the public interface, one test for each, on both backends.

use std::sync::Arc;

use store::{
    Change, Expect, OpenError, Options, Payload, Range, ReadError, Store, WatchError, Write, WriteError,
};

fn put(key: &str, value: &str, expect: Expect) -> Write {
    let payload = Payload { bytes: value.to_owned().into(), revision_at: Some(0) };
    Write { table: "t".into(), key: key.into(), expect, limits: Vec::new(), change: Change::Put(payload) }
}

fn delete(key: &str, expect: Expect) -> Write {
    let change = Change::Delete(Payload { bytes: "-gone".into(), revision_at: Some(0) });
    Write { table: "t".into(), key: key.into(), expect, limits: Vec::new(), change }
}

fn both() -> (tempfile::TempDir, [Store; 2]) {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = Store::open(directory.path(), Options::default()).expect("an empty store");
    (directory, [Store::in_memory(), disk])
}

fn keys(store: &Store, range: Range<'_>) -> (Vec<String>, usize) {
    let page = store.range("t", range).expect("a readable revision");
    (page.entries.iter().map(|entry| entry.key.to_string()).collect(), page.remaining)
}

#[tokio::test]
async fn a_write_carries_its_revision_and_a_stale_one_is_refused() {
    let (_directory, stores) = both();
    for store in stores {
        assert_eq!(store.write(put("a", "-x", Expect::Absent)).await.unwrap(), 1);
        assert_eq!(store.write(put("a", "-y", Expect::Revision(1))).await.unwrap(), 2);
        let entry = store.get("t", "a").unwrap();
        assert_eq!((&entry.value[..], entry.created, entry.revision), (&b"2-y"[..], 1, 2));
        for write in [
            put("a", "", Expect::Absent),
            put("a", "", Expect::Revision(1)),
            delete("a", Expect::Revision(1)),
        ] {
            let error = store.write(write).await.unwrap_err();
            assert!(matches!(error, WriteError::Conflict { current: Some(2) }), "{error}");
        }
        for write in [put("b", "", Expect::Revision(1)), delete("b", Expect::Any)] {
            let error = store.write(write).await.unwrap_err();
            assert!(matches!(error, WriteError::Conflict { current: None }), "{error}");
        }
        assert_eq!(store.revision(), 2);
    }
}

#[tokio::test]
async fn a_deleted_key_can_be_read_before_its_end_and_watched() {
    let (_directory, stores) = both();
    for store in stores {
        store.write(put("a", "-x", Expect::Any)).await.unwrap();
        store.write(delete("a", Expect::Any)).await.unwrap();
        assert_eq!(store.get("t", "a"), None);
        assert!(store.tables().is_empty());
        assert_eq!(store.get_at("t", "a", 1).unwrap().unwrap().value, "1-x");
        assert_eq!(store.get_at("t", "a", 3), Err(ReadError::Future { newest: 2 }));
        let mut watch = store.watch("t", "", 0).unwrap();
        let batch = watch.next().await.unwrap();
        assert_eq!(batch.revision, 2);
        assert_eq!(batch.events[1].value, "2-gone");
        assert_eq!(batch.events[1].previous.as_deref().unwrap(), "1-x");
        store.compact(2).await.unwrap();
        assert_eq!(store.get_at("t", "a", 1), Err(ReadError::Compacted { oldest: 2 }));
        assert_eq!(store.stats().history_events, 0);
    }
}

#[tokio::test]
async fn pages_say_how_much_remains_also_at_an_old_revision() {
    let (_directory, stores) = both();
    for store in stores {
        for key in ["a/1", "a/2", "a/3", "b/1"] {
            store.write(put(key, "", Expect::Absent)).await.unwrap();
        }
        let at = Some(store.revision());
        store.write(delete("a/2", Expect::Any)).await.unwrap();
        store.write(put("a/0", "", Expect::Any)).await.unwrap();
        let first = Range { prefix: "a/", limit: Some(1), ..Range::default() };
        assert_eq!(keys(&store, first), (vec!["a/0".into()], 2));
        assert_eq!(keys(&store, Range { at, ..first }), (vec!["a/1".into()], 2));
        let rest = Range { after: Some("a/1"), limit: None, at, ..first };
        assert_eq!(keys(&store, rest), (vec!["a/2".into(), "a/3".into()], 0));
        assert_eq!(keys(&store, Range { limit: Some(0), ..first }), (vec![], 3));
        assert_eq!(keys(&store, Range { after: Some("b"), ..first }), (vec![], 0));
    }
}

#[tokio::test]
async fn a_watch_waits_follows_the_store_and_ends_with_it() {
    let (_directory, stores) = both();
    for store in stores {
        let mut watch = store.watch("t", "a/", 0).unwrap();
        let mut other = store.watch("other", "", 0).unwrap();
        let waiting = tokio::spawn(async move {
            let batch = watch.next().await.unwrap();
            (watch, batch)
        });
        tokio::task::yield_now().await;
        store.write(put("b/1", "", Expect::Any)).await.unwrap();
        store.write(put("a/1", "", Expect::Any)).await.unwrap();
        let (mut watch, batch) = waiting.await.unwrap();
        assert_eq!((batch.events.len(), batch.events[0].revision, batch.revision), (1, 2, 2));
        store.write(put("b/2", "", Expect::Any)).await.unwrap();
        assert_eq!((watch.revision(), other.revision()), (3, 3));
        store.write(put("a/2", "", Expect::Any)).await.unwrap();
        assert_eq!(watch.revision(), 3, "an event is waiting to be taken");
        store.close().await.unwrap();
        assert_eq!(watch.next().await.unwrap().revision, 4);
        assert_eq!(watch.next().await.unwrap_err(), WatchError::Closed);
        assert_eq!(other.next().await.unwrap_err(), WatchError::Closed);
    }
}

#[tokio::test]
async fn a_scan_shows_what_was_there_when_it_began() {
    let (_directory, stores) = both();
    for store in stores {
        for key in ["a", "b", "c", "other"] {
            store.write(put(key, "-old", Expect::Any)).await.unwrap();
        }
        let mut scan = store.scan("t", Range::default()).expect("the newest revision is readable");
        assert_eq!(scan.next().expect("the first").key.as_ref(), "a");
        store.write(put("b", "-new", Expect::Any)).await.unwrap();
        let newest = store.write(delete("c", Expect::Any)).await.unwrap();
        store.compact(newest).await.unwrap();
        assert_eq!((scan.revision(), scan.is_over()), (4, false));
        let left: Vec<_> = scan.by_ref().map(|entry| (entry.key.to_string(), entry.revision)).collect();
        assert_eq!(left, [("b".to_owned(), 2), ("c".to_owned(), 3), ("other".to_owned(), 4)]);
        assert!(scan.is_over());
    }
}

#[tokio::test]
async fn compaction_ends_only_the_watches_that_missed_something() {
    let (_directory, stores) = both();
    for store in stores {
        let mut slow = store.watch("t", "", 0).unwrap();
        let mut quiet = store.watch("quiet", "", 0).unwrap();
        for _ in 0..3 {
            store.write(put("a", "", Expect::Any)).await.unwrap();
        }
        store.compact(2).await.unwrap();
        assert_eq!(slow.next().await.unwrap_err(), WatchError::Compacted { oldest: 2 });
        assert_eq!(quiet.revision(), 3);
        assert!(matches!(store.watch("t", "", 1), Err(ReadError::Compacted { oldest: 2 })));
        assert_eq!(store.watch("t", "", 2).unwrap().next().await.unwrap().events.len(), 1);
        let error = store.compact(9).await.unwrap_err();
        assert!(matches!(error, WriteError::Future { asked: 9, newest: 3 }), "{error}");
    }
}

#[tokio::test]
async fn a_closed_store_refuses_writes_and_still_answers_reads() {
    let (_directory, stores) = both();
    for store in stores {
        store.write(put("a", "", Expect::Any)).await.unwrap();
        store.clone().close().await.unwrap();
        assert!(matches!(store.write(put("a", "", Expect::Any)).await, Err(WriteError::Closed)));
        assert!(matches!(store.compact(1).await, Err(WriteError::Closed)));
        assert!(store.get("t", "a").is_some());
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused() {
    let (_directory, stores) = both();
    let long = "x".repeat(5000);
    let value_bytes_max = Options::default().value_bytes_max;
    for store in stores {
        let error = store.write(put(&long, "", Expect::Any)).await.unwrap_err();
        assert!(matches!(error, WriteError::TooLarge { what: "a key", bytes: 5000, .. }), "{error}");
        let table = Write { table: long.as_str().into(), ..put("a", "", Expect::Any) };
        assert!(matches!(store.write(table).await, Err(WriteError::TooLarge { what: "a table name", .. })));
        let value = "x".repeat(value_bytes_max);
        assert_eq!(store.write(put("a", &value, Expect::Any)).await.unwrap(), 1);
        let error = store.write(put("a", &(value + "x"), Expect::Any)).await.unwrap_err();
        assert!(matches!(error, WriteError::TooLarge { what: "a value", .. }), "{error}");
    }
}

#[tokio::test]
async fn a_second_opener_is_told_and_dropping_the_last_handle_lets_go() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), Options::default()).unwrap();
    let error = Store::open(directory.path(), Options::default()).err().unwrap();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    store.write(put("a", "-x", Expect::Any)).await.unwrap();
    drop(store);
    let store = Store::open(directory.path(), Options::default()).unwrap();
    assert_eq!(store.get("t", "a").unwrap().value, "1-x");
    assert_eq!(store.tables(), [Arc::from("t")]);
}

#[test]
fn only_the_owner_can_read_what_is_stored() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("deep/data");
    drop(Store::open(&directory, Options::default()).unwrap());
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in directory.read_dir().unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Store::open(&file.path().join("data"), Options::default()).err().unwrap();
    assert!(error.to_string().starts_with("create directory"), "{error}");
}
