//! Invariants that hold in spite of crashes: no write to what is suspended, no move of what is lazy.

use std::collections::BTreeMap;

use serde_json::Value;

use super::actions::{Action, Promise};
use super::side::MEMBERS;
use super::state::{Object, State};

/// Compares what was there before an action with what came of it.
pub fn check(action: &Action, before: &State, after: &State) {
    for member in MEMBERS {
        let (had, has) = (&before.members[member], &after.members[member]);
        for (path, object) in has {
            // Suspension blocks no deletion (U4), and with `preserveResourcesOnDeletion` objects are released instead.
            let held = before.suspended.contains(path) && after.suspended.contains(path) && object.managed;
            if held && !by_hand(action, member, path) {
                check_held(action, had, path, object);
            }
        }
        if action.promise == Promise::Unnoticed {
            let marks = |all: &BTreeMap<String, Object>| -> BTreeMap<String, Value> {
                all.iter().map(|(path, object)| (path.clone(), object.written.clone())).collect()
            };
            assert_eq!(marks(had), marks(has), "{member} noticed {action:?}");
        }
    }
}

/// What is suspended before and after an action was not written, and not made.
fn check_held(action: &Action, had: &BTreeMap<String, Object>, path: &str, object: &Object) {
    let before = had.get(path).unwrap_or_else(|| panic!("{path} was made while suspended, by {action:?}"));
    assert_eq!(before.written, object.written, "{path} was written while suspended, by {action:?}");
}

/// Whether the action itself changed this object.
fn by_hand(action: &Action, member: &str, path: &str) -> bool {
    action.member.is_some_and(|index| MEMBERS[index] == member) && action.path == path
}
