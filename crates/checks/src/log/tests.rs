//! A real store that compacts its history and deletes files: the kept log still has every write.

use store::{Expect, Options, Payload, Store, Write};

use super::*;

fn write(key: &str, change: store::Change) -> Write {
    Write { table: "/maps".into(), key: key.into(), expect: Expect::Any, limits: Vec::new(), change }
}

#[tokio::test]
async fn what_is_compacted_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store_path, kept) = (directory.path().join("store"), directory.path().join("kept"));
    let copier = SegmentCopier::start(&store_path, &kept).expect("it looks");
    let mut expected = Log::new();
    for round in 0..3 {
        let options = Options { segment_bytes: 20_000, ..Options::default() };
        let store = Store::open(&store_path, options).expect("a store");
        for number in 0..60 {
            let (key, value) = (format!("default/c-{}", number % 7), "x".repeat(1_000));
            let change = match number % 3 {
                2 => store::Change::Delete(Payload::plain(value)),
                _ => store::Change::Put(Payload::plain(value)),
            };
            let is_gone = number % 3 == 2;
            let Ok(revision) = store.write(write(&key, change)).await else { continue };
            expected.insert(revision, Change { name: key["default/".len()..].to_owned(), is_gone });
            let other = store::Change::Put(Payload::plain("y"));
            store.write(write(&format!("other/{round}"), other)).await.expect("written");
            if number % 20 == 19 {
                // The poll interval is shorter than the time in which files are removed.
                std::thread::sleep(POLL_INTERVAL * 3);
                store.compact(store.revision()).await.expect("compacted");
            }
        }
        store.close().await.expect("closed");
    }
    let left = log_files(&store_path).expect("a directory").len();
    drop(copier);
    let copier = SegmentCopier::start(&store_path, &kept).expect("it looks again");
    let read = copier.read("/maps", "default/").expect("whole");
    assert_eq!(read.log, expected);
    assert!(read.compacted >= *read.log.keys().next_back().expect("writes"), "{}", read.compacted);
    assert!(left < read.files, "the store let {left} of {} files go", read.files);
    let first = log_files(&kept).expect("files").into_iter().map(|(_, path)| path).min().expect("a file");
    std::fs::remove_file(first).expect("removed");
    drop(copier);
    let copier = SegmentCopier { kept, stop: Arc::default(), looking: None };
    assert!(copier.read("/maps", "default/").expect_err("a file is missing").contains("not 1"));
}
