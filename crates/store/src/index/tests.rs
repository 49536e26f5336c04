//! What the public interface does not show: that forgotten things are gone from memory.

use std::sync::Arc;

use bytes::Bytes;

use super::{Index, Record, Version};
use crate::{EventKind, Range, commit};

fn publish(index: &Index, table: &str, key: &str, kind: EventKind) {
    let current = index.newest(table, key).map(|version| version.entry());
    let value = Bytes::from_static(b"value");
    let event = commit::event(&Arc::from(key), current.as_ref(), index.revision() + 1, kind, value);
    index.publish(&[Record { table: table.into(), event }]);
}

#[test]
fn a_compacted_entry_does_not_keep_the_value_before_it() {
    let index = Index::default();
    publish(&index, "t", "a", EventKind::Put);
    publish(&index, "t", "a", EventKind::Put);
    publish(&index, "t", "b", EventKind::Put);
    publish(&index, "t", "b", EventKind::Put);
    publish(&index, "t", "b", EventKind::Put);
    let keeps = |version: &Version| matches!(version, Version::Event(event) if event.previous.is_some());
    assert!(keeps(&index.newest("t", "a").unwrap()));
    index.compact(4);
    assert!(!keeps(&index.newest("t", "a").unwrap()));
    assert!(keeps(&index.newest("t", "b").unwrap()), "its event can still be watched");
    let old = index.read().tables["t"].version_at("b", 4).unwrap().clone();
    assert!(!keeps(&old));
    assert_eq!(old.revision(), 4);
}

#[test]
fn a_table_without_keys_history_and_watchers_is_forgotten() {
    let index = Index::default();
    publish(&index, "gone", "a", EventKind::Put);
    publish(&index, "gone", "a", EventKind::Delete);
    publish(&index, "watched", "a", EventKind::Put);
    publish(&index, "watched", "a", EventKind::Delete);
    let watching = index.cursor("watched", "", 4).unwrap();
    index.compact(4);
    assert_eq!(index.table_names(), [Arc::from("watched")]);
    drop(watching);
    publish(&index, "other", "a", EventKind::Put);
    index.compact(5);
    assert_eq!(index.table_names(), [Arc::from("other")]);
}

#[test]
fn a_long_list_is_read_at_one_revision_also_when_it_is_read_in_slices() {
    let index = Arc::new(Index::default());
    for number in 0..10_000 {
        publish(&index, "t", &format!("{number:05}"), EventKind::Put);
    }
    let churn = std::thread::spawn({
        let index = index.clone();
        move || {
            for number in 0..3_000 {
                publish(&index, "t", &format!("{:05}", number * 3), EventKind::Delete);
                publish(&index, "t", &format!("{:05}", number * 3), EventKind::Put);
                if number % 100 == 0 {
                    index.compact(index.revision());
                }
            }
        }
    });
    while !churn.is_finished() {
        let page = index.range("t", Range::default()).unwrap();
        assert!(page.entries.iter().all(|entry| entry.revision <= page.revision));
        assert!(page.entries.len() == 10_000 || page.entries.len() == 9_999);
        assert!(page.entries.is_sorted_by_key(|entry| entry.key.clone()));
    }
    churn.join().unwrap();
}
