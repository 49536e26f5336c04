//! Drift detection: does a member still have what a Work says? Derived from what was written before, so that neither a
//! status change of the object nor a restart causes a write to the member.

use std::borrow::Cow;

use api::work::APPLIED;
use api::{ConditionStatus, Work};
use serde_json::Value;

use super::dispatch::is_managed;
use crate::conditions;
use crate::fields::{at, integer, pairs, text};
use crate::interpret;

/// Objects that are nested deeper are taken for different.
const DEPTH_MAX: usize = 100;

/// Counted by each API server for itself, whatever the client sends: the template's own count says nothing about a
/// copy.
const COUNTED: &str = "deprecated.daemonset.template.generation";

/// What a Work and its object in the member looked like when they were last in line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    work: (String, i64),
    object: String,
    version: Version,
}

/// What changes when a client edits an object: the generation where there is one, since status does not change it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Version {
    Generation(i64),
    Revision(String),
}

impl Version {
    fn of(object: &Value) -> Self {
        match integer(object, &["metadata", "generation"]) {
            Some(generation) if generation > 0 => Version::Generation(generation),
            _ => Version::Revision(text(object, &["metadata", "resourceVersion"]).to_owned()),
        }
    }
}

impl Delivered {
    /// Remembers an object that has just been brought in line with its Work.
    pub fn of(work: &Work, object: &Value) -> Self {
        Delivered {
            work: (work.metadata.uid.clone(), work.metadata.generation),
            object: text(object, &["metadata", "uid"]).to_owned(),
            version: Version::of(object),
        }
    }

    /// True when it was this state of the Work.
    pub fn is_of(&self, work: &Work) -> bool {
        (self.work.0.as_str(), self.work.1) == (work.metadata.uid.as_str(), work.metadata.generation)
    }

    /// True while neither the Work nor the object was edited since. Labels and annotations are compared, because they
    /// do not change the generation.
    pub fn holds(&self, work: &Work, manifest: &Value, object: &Value) -> bool {
        *self == Delivered::of(work, object) && has_marks(object, manifest)
    }
}

/// True when the member has what the Work says as far as the objects themselves tell, for those who remember
/// nothing: this state of the Work was applied, and every field of its manifest is there. Karmada does not
/// note which state it applied and is believed. What looks different may still be the same; applying it shows.
pub fn was_delivered(work: &Work, manifest: &Value, object: &Value) -> bool {
    let applied = conditions::find(&work.status.conditions, APPLIED).is_some_and(|applied| {
        applied.status == ConditionStatus::True
            && [0, work.metadata.generation].contains(&applied.observed_generation)
    });
    // What the member decides itself is as it should be, whatever it is.
    let mut wanted = Cow::Borrowed(manifest);
    if interpret::retains_replicas(manifest) {
        interpret::retain(wanted.to_mut(), object);
    }
    applied && is_managed(object) && covers(object, &wanted, DEPTH_MAX)
}

fn has_marks(object: &Value, manifest: &Value) -> bool {
    ["labels", "annotations"].into_iter().all(|field| {
        let path = ["metadata", field];
        pairs(manifest, &path).filter(|(key, _)| *key != COUNTED).all(|(key, value)| {
            at(object, &path).and_then(|marks| marks.get(key)).is_some_and(|found| found == value)
        })
    })
}

/// True when everything in `wanted` is in `found`; maps may have more, lists may not.
fn covers(found: &Value, wanted: &Value, depth: usize) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            wanted.is_null()
                || key == COUNTED
                || found.get(key).is_some_and(|found| covers(found, wanted, deeper))
        }),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| covers(found, wanted, deeper))
        }
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn work(generation: i64, observed: i64, applied: &str) -> Work {
        serde_json::from_value(json!({
            "metadata": { "uid": "w", "generation": generation },
            "status": { "conditions": [
                { "type": "Applied", "status": applied, "observedGeneration": observed, "reason": "", "message": "" },
            ] },
        }))
        .expect("a work")
    }

    fn manifest() -> Value {
        json!({ "metadata": { "labels": { "karmada.io/managed": "true" } }, "spec": { "list": [{ "a": 1 }] } })
    }

    fn object(change: Value) -> Value {
        let mut object = json!({
            "metadata": {
                "uid": "o", "generation": 4, "resourceVersion": "10",
                "labels": { "karmada.io/managed": "true", "other": "x" },
            },
            "spec": { "list": [{ "a": 1, "defaulted": true }], "more": 1 },
        });
        for (pointer, value) in change.as_object().expect("a map") {
            *object.pointer_mut(pointer).expect("is there") = value.clone();
        }
        object
    }

    #[test]
    fn only_edits_are_drift() {
        let delivered = Delivered::of(&work(1, 1, "True"), &object(json!({})));
        let check = |generation: i64, change: Value, expected: bool| {
            let object = object(change.clone());
            assert_eq!(
                delivered.holds(&work(generation, 1, "True"), &manifest(), &object),
                expected,
                "{change}"
            );
        };
        check(1, json!({}), true);
        check(1, json!({ "/metadata/resourceVersion": "11" }), true);
        check(1, json!({ "/metadata/labels/other": "y" }), true);
        check(2, json!({}), false);
        check(1, json!({ "/metadata/generation": 5 }), false);
        check(1, json!({ "/metadata/uid": "reborn" }), false);
        check(1, json!({ "/metadata/labels/karmada.io~1managed": "no" }), false);
    }

    #[test]
    fn objects_without_generation_are_known_by_their_revision() {
        let plain = |revision: &str| json!({ "metadata": { "uid": "o", "resourceVersion": revision } });
        let delivered = Delivered::of(&work(1, 1, "True"), &plain("1"));
        assert!(delivered.holds(&work(1, 1, "True"), &json!({}), &plain("1")));
        assert!(!delivered.holds(&work(1, 1, "True"), &json!({}), &plain("2")));
    }

    #[test]
    fn r1_who_remembers_nothing_reads_it_from_the_objects() {
        let check = |work: Work, change: Value, expected: bool| {
            assert_eq!(was_delivered(&work, &manifest(), &object(change.clone())), expected, "{change}");
        };
        check(work(2, 2, "True"), json!({}), true);
        check(work(2, 0, "True"), json!({}), true);
        check(work(2, 1, "True"), json!({}), false);
        check(work(2, 2, "False"), json!({}), false);
        check(work(2, 2, "True"), json!({ "/spec/list": [{ "a": 2 }] }), false);
        check(work(2, 2, "True"), json!({ "/spec/list": [{ "a": 1 }, { "a": 1 }] }), false);
        check(work(2, 2, "True"), json!({ "/metadata/labels/karmada.io~1managed": "no" }), false);
    }

    #[test]
    fn what_a_member_counts_or_decides_itself_is_no_drift() {
        let set = |count: &str| {
            let annotations = json!({ "deprecated.daemonset.template.generation": count, "note": "n" });
            json!({ "metadata": { "uid": "o", "generation": 4, "annotations": annotations,
                "labels": { "karmada.io/managed": "true" } } })
        };
        let work = work(1, 1, "True");
        assert!(Delivered::of(&work, &set("3")).holds(&work, &set("5"), &set("3")));
        assert!(was_delivered(&work, &set("5"), &set("3")));

        let scaled = |replicas: i32, retain: &str| {
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": replicas },
                "metadata": { "labels": { "karmada.io/managed": "true",
                    "resourcetemplate.karmada.io/retain-replicas": retain } } })
        };
        assert!(was_delivered(&work, &scaled(2, "true"), &scaled(7, "true")));
        assert!(!was_delivered(&work, &scaled(2, "false"), &scaled(7, "false")));
    }
}
