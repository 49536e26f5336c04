//! Tests below the public interface: that compacted data is freed from memory.

use std::sync::Arc;

use bytes::Bytes;

use super::{HistoryEvent, Index, Record, Step, Version};
use crate::{Event, EventKind, Range, commit};

fn publish(index: &Index, table: &str, key: &str, kind: EventKind) {
    let current = index.newest(table, key).map(|version| version.entry());
    let value = Bytes::from_static(b"value");
    let event = commit::event(&Arc::from(key), current.as_ref(), index.revision() + 1, kind, value);
    index.publish(&[Record { table: table.into(), event, measured: Default::default() }]);
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

#[test]
fn packed_history_reads_the_same_and_holds_no_plain_value() {
    let index = Index::default();
    let value =
        |number: u64| Bytes::from(format!("{{\"number\":{number},\"text\":\"{}\"}}", "words ".repeat(200)));
    for number in 0..9 {
        let (key, kind) = match number {
            4 => ("a", EventKind::Delete),
            _ => (["a", "b", "c"][number as usize % 3], EventKind::Put),
        };
        let current = index.newest("t", key).map(|version| version.entry());
        let event =
            commit::event(&Arc::from(key), current.as_ref(), index.revision() + 1, kind, value(number));
        index.publish(&[Record { table: "t".into(), event, measured: Default::default() }]);
    }
    let all = |index: &Index| -> Vec<Arc<Event>> {
        let (mut cursor, _) = index.cursor("t", "", 0).unwrap();
        let Step::Events(events) = index.advance(&mut cursor, 100) else { panic!("there are events") };
        events.iter().map(HistoryEvent::event).collect()
    };
    let before = all(&index);
    index.pack(0);
    assert_eq!(all(&index), before);
    let state = index.read();
    let table = &state.tables["t"];
    let is_whole = |told: &&HistoryEvent| matches!(told, HistoryEvent::Whole(_));
    let glance = table.glance(0, "", 100, 100).unwrap();
    assert_eq!(glance.events.iter().filter(is_whole).count(), 1, "the delete");
    for key in ["a", "b", "c"] {
        assert!(matches!(table.newest(key), Some(Version::Packed(_))), "{key}");
    }
}
