//! Correct event sequences, and one of every kind of incorrect sequence.

use serde_json::json;

use super::*;
use crate::log::Change;

fn log() -> Log {
    let change = |name: &str| Change { name: name.to_owned(), is_gone: false };
    [(3, "a"), (5, "b"), (6, "a"), (9, "b")].map(|(revision, name)| (revision, change(name))).into()
}

fn judged(lines: &[Value]) -> Result<Summary, String> {
    let mut account = Account::default();
    lines.iter().for_each(|line| account.take(line));
    account.judge(&log())
}

fn list(revision: u64) -> Value {
    json!({ "what": "list", "rv": revision.to_string() })
}

fn event(kind: &str, name: &str, revision: u64) -> Value {
    json!({ "what": "event", "type": kind, "name": name, "rv": revision.to_string() })
}

fn handler(what: &str, name: &str, revision: u64) -> Value {
    json!({ "what": what, "name": name, "rv": revision.to_string() })
}

#[test]
fn who_saw_everything_is_believed() {
    let from = json!({ "what": "watch", "type": "from", "rv": "2" });
    let whole = [list(2), from, event("ADDED", "a", 3), event("ADDED", "b", 5), event("BOOKMARK", "", 5)];
    assert_eq!(judged(&whole), Ok(Summary { lists: 1, events: 2 }));
    // What a list brings is no event, and what happened before it need not be seen.
    let initial =
        [json!({ "what": "watch", "type": "all" }), event("ADDED", "a", 3), event("BOOKMARK", "", 5)];
    let rest = [event("MODIFIED", "a", 6), list(8), event("DELETED", "b", 9)];
    assert_eq!(judged(&[&initial[..], &rest[..]].concat()), Ok(Summary { lists: 2, events: 2 }));
    let handled = [list(2), event("ADDED", "a", 3), handler("add", "a", 3)];
    assert_eq!(judged(&handled), Ok(Summary { lists: 1, events: 1 }));
    // After a relist, client-go calls its handlers again for unchanged objects.
    let again = [list(5), handler("add", "a", 3), list(5), handler("update", "a", 3)];
    assert_eq!(judged(&again), Ok(Summary { lists: 2, events: 0 }));
}

#[test]
fn who_did_not_is_found_out() {
    let check = |lines: &[Value], why: &str| {
        let found = judged(lines).expect_err("something is wrong");
        assert!(found.contains(why), "{found}");
    };
    check(&[list(2), event("ADDED", "b", 5)], "saw (5, \"b\") where the log has Some((3, \"a\"))");
    check(&[list(2), event("ADDED", "a", 3), event("BOOKMARK", "", 5)], "missed (5, \"b\")");
    check(&[list(2), event("ADDED", "b", 3)], "where the log has");
    check(
        &[list(5), event("MODIFIED", "a", 6), event("MODIFIED", "a", 6)],
        "saw (6, \"a\") where the log has None",
    );
    check(&[list(6), event("BOOKMARK", "", 5)], "a bookmark at 5");
    check(&[list(2), json!({ "what": "watch", "type": "from", "rv": "3" })], "watches from Some(3)");
    check(&[list(2), event("ADDED", "a", 3), handler("update", "a", 3)], "update of a");
    check(&[list(2), event("ADDED", "a", 3), handler("add", "b", 5)], "no handler was told of a at 3");
    check(&[handler("add", "a", 3), handler("add", "a", 3)], "add of a");
    let twice =
        [list(5), handler("add", "a", 3), list(5), handler("update", "a", 3), handler("update", "a", 3)];
    check(&twice, "update of a at 3 after Some(3)");
    check(&[list(5), list(6), handler("add", "b", 5), handler("update", "b", 3)], "update of b at 3");
    check(&[json!("what?")], "says");
}
