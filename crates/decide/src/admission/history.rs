//! The revision history of a policy, in an annotation on the policy itself: admission writes it with the very edit that
//! replaces the old spec, so nothing is missed and no other write is needed. Bounded in number and size.

use api::records::{HISTORY, Past};
use api::{ObjectMeta, Time};
use jiff::Timestamp;
use serde_json::{Value, json};

/// How many earlier generations are kept, as many as a Deployment keeps.
const KEPT_MAX: usize = 10;
/// How much all of them may take; an object's annotations may take 256 KiB.
const BYTES_MAX: usize = 64 * 1024;
/// Where kubectl's users note why they change something.
const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

/// Puts the history on a policy that replaces `old`. It follows from `old` alone, so no client can forge or lose it,
/// and recording twice changes nothing.
pub(super) fn record(object: &mut Value, old: Option<&Value>, now: Timestamp) {
    let mut history = old.map(past).unwrap_or_default();
    if let Some(old) = old.filter(|old| old.get("spec") != object.get("spec")) {
        history.push(Past {
            generation: old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0),
            until: Some(Time::from(now)),
            cause: annotation(old, CHANGE_CAUSE).to_owned(),
            spec: old.get("spec").cloned().unwrap_or_default(),
        });
    }
    write(object, bounded(history));
}

fn past(policy: &Value) -> Vec<Past> {
    let annotations = [(HISTORY.to_owned(), annotation(policy, HISTORY).to_owned())];
    Past::read(&ObjectMeta { annotations: annotations.into(), ..ObjectMeta::default() })
}

fn annotation<'o>(object: &'o Value, key: &str) -> &'o str {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations.and_then(|annotations| annotations.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// The newest ones that fit, as text; none if nothing does.
fn bounded(mut history: Vec<Past>) -> Option<String> {
    loop {
        let surplus = history.len().saturating_sub(KEPT_MAX);
        history.drain(..surplus);
        if history.is_empty() {
            return None;
        }
        let text = serde_json::to_string(&history).expect("values are always JSON");
        if text.len() <= BYTES_MAX {
            return Some(text);
        }
        history.remove(0);
    }
}

fn write(object: &mut Value, history: Option<String>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match history {
        Some(text) => {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if annotations.is_null() {
                *annotations = json!({});
            }
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(HISTORY.to_owned(), text.into());
            }
        }
        None => {
            let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
            if let Some(annotations) = annotations
                && annotations.remove(HISTORY).is_some()
                && annotations.is_empty()
            {
                metadata.remove("annotations");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(generation: i64, spec: Value) -> Value {
        json!({ "metadata": { "name": "pp", "generation": generation }, "spec": spec })
    }

    /// What a server makes of an edit.
    fn edited(old: &Value, spec: Value) -> Value {
        let generation = old["metadata"]["generation"].as_i64().expect("a number");
        let mut new = policy(generation + 1, spec);
        record(&mut new, Some(old), Timestamp::UNIX_EPOCH);
        new
    }

    fn generations(policy: &Value) -> Vec<i64> {
        past(policy).iter().map(|past| past.generation).collect()
    }

    #[test]
    fn each_edit_keeps_what_it_replaces() {
        let mut first = policy(1, json!({ "priority": 1 }));
        first["metadata"]["annotations"] = json!({ CHANGE_CAUSE: "the beginning" });
        let second = edited(&first, json!({ "priority": 2 }));
        let third = edited(&second, json!({ "priority": 3 }));
        assert_eq!(generations(&third), [1, 2]);
        let past = past(&third);
        assert_eq!((past[0].cause.as_str(), &past[0].spec), ("the beginning", &json!({ "priority": 1 })));
        assert_eq!(past[1].until, Some(Time::from(Timestamp::UNIX_EPOCH)));
        let mut again = third.clone();
        record(&mut again, Some(&second), Timestamp::UNIX_EPOCH);
        assert_eq!(again, third, "recording twice changes nothing");
    }

    #[test]
    fn what_is_no_edit_of_the_spec_keeps_the_history() {
        let second = edited(&policy(1, json!({ "priority": 1 })), json!({ "priority": 2 }));
        // A client that replaces the object without the annotation, or with a forged one, changes nothing.
        for annotations in [json!(null), json!({}), json!({ HISTORY: "[]" }), json!({ HISTORY: "nonsense" })]
        {
            let mut replaced = second.clone();
            replaced["metadata"]["annotations"] = annotations;
            record(&mut replaced, Some(&second), Timestamp::UNIX_EPOCH);
            assert_eq!(generations(&replaced), [1]);
        }
        let mut copied = second.clone();
        record(&mut copied, None, Timestamp::UNIX_EPOCH);
        assert_eq!(copied["metadata"].get("annotations"), None, "a copy has no history of its own");
    }

    #[test]
    fn history_is_bounded_in_number_and_size() {
        let mut policy = policy(1, json!({ "priority": 1 }));
        for priority in 2..30 {
            policy = edited(&policy, json!({ "priority": priority }));
        }
        assert_eq!(generations(&policy), (19..29).collect::<Vec<i64>>());
        for size in 0..4 {
            policy = edited(&policy, json!({ "schedulerName": "x".repeat(30_000 + size) }));
        }
        let kept = generations(&policy);
        assert!(annotation(&policy, HISTORY).len() <= BYTES_MAX && kept == [31, 32], "{kept:?}");
        let huge = edited(&policy, json!({ "schedulerName": "x".repeat(100_000) }));
        assert_eq!(generations(&edited(&huge, json!({}))), [] as [i64; 0], "too large to keep at all");
    }
}
