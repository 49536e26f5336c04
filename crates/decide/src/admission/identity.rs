//! Refuses overriders that would change an object's identity or ownership (M3): apiVersion, kind, namespace and name of
//! a manifest are the template's, and the control plane's labels and annotations are its own.

use std::collections::BTreeMap;

use api::labels::is_ownership_mark;
use api::override_policy::Overriders;
use serde_json::Value;

use super::Findings;
use crate::json_pointer::JsonPointer;

/// Refuses the overriders below a path of the policy that touch identity or ownership marks. What is not a JSON pointer
/// is
/// refused elsewhere.
pub(super) fn check(path: &str, wanted: &Overriders, findings: &mut Findings) {
    for (index, image) in wanted.image_overrider.iter().enumerate() {
        if let Some(predicate) = &image.predicate {
            pointer(&format!("{path}.imageOverrider[{index}].predicate.path"), &predicate.path, findings);
        }
    }
    for (index, overrider) in wanted.labels_overrider.iter().enumerate() {
        keys(&format!("{path}.labelsOverrider[{index}].value"), &overrider.value, findings);
    }
    for (index, overrider) in wanted.annotations_overrider.iter().enumerate() {
        keys(&format!("{path}.annotationsOverrider[{index}].value"), &overrider.value, findings);
    }
    for (index, field) in wanted.field_overrider.iter().enumerate() {
        pointer(&format!("{path}.fieldOverrider[{index}].fieldPath"), &field.field_path, findings);
    }
    for (index, plain) in wanted.plaintext.iter().enumerate() {
        let place = format!("{path}.plaintext[{index}]");
        pointer(&format!("{place}.path"), &plain.path, findings);
        map(&format!("{place}.value"), &plain.path, &plain.value, findings);
    }
}

/// Refuses a pointer to identity or to a mark.
fn pointer(place: &str, text: &str, findings: &mut Findings) {
    let Ok(pointer) = text.parse::<JsonPointer>() else {
        return findings
            .refuse(place, format!("{text:?} is not a JSON pointer; write for example /spec/replicas"));
    };
    if let Some(reason) = reason(pointer.steps()) {
        findings.refuse(place, format!("{text:?} {reason}"));
    }
}

/// Why nothing may be changed where these steps lead; none if it may.
fn reason(steps: &[String]) -> Option<String> {
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    match steps[..] {
        [] | [""] => {
            Some(format!("is the whole object; {CANNOT}; name the field that differs, as in /spec/replicas"))
        }
        ["apiVersion" | "kind", ..] => Some(format!("is part of the identity of the object; {CANNOT}")),
        ["metadata"] => Some(format!(
            "holds name and namespace; {CANNOT}; name the label or annotation, as in /metadata/labels/app"
        )),
        ["metadata", "labels" | "annotations"] => None,
        ["metadata", "labels" | "annotations", key, ..] => is_ownership_mark(key).then(|| mark(key)),
        ["metadata", ..] => Some(format!(
            "cannot be overridden; {CANNOT}; of metadata, only labels and annotations can differ between \
             clusters"
        )),
        _ => None,
    }
}

const CANNOT: &str =
    "apiVersion, kind, namespace, name and ownership of what is delivered are those of its template";

fn mark(key: &str) -> String {
    format!(
        "touches {key}, which the control plane uses to mark its own objects; remove it from the overrider"
    )
}

fn keys(place: &str, pairs: &BTreeMap<String, String>, findings: &mut Findings) {
    for key in pairs.keys().filter(|key| is_ownership_mark(key)) {
        findings.refuse(place, mark(key));
    }
}

/// Labels and annotations may be replaced as a whole, since marks are put back, but not by forged marks.
fn map(place: &str, path: &str, value: &Value, findings: &mut Findings) {
    if !matches!(path, "/metadata/labels" | "/metadata/annotations") || value.is_null() {
        return;
    }
    let Some(pairs) = value.as_object() else {
        return findings.refuse(place, "is not a map; write for example {\"app\": \"web\"}");
    };
    for key in pairs.keys().filter(|key| is_ownership_mark(key)) {
        findings.refuse(place, mark(key));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(overriders: Value) -> Vec<String> {
        let wanted: Overriders = serde_json::from_value(overriders).expect("overriders");
        let mut findings = Findings::default();
        check("spec.overrideRules[0].overriders", &wanted, &mut findings);
        findings
            .problems
            .into_iter()
            .map(|problem| format!("{}: {}", problem.path, problem.message))
            .collect()
    }

    fn plaintext(path: &str, value: Value) -> Value {
        json!({"plaintext": [{"path": path, "operator": "add", "value": value}]})
    }

    #[test]
    fn m3_identity_and_marks_are_refused_with_place_and_reason() {
        for path in [
            "",
            "/",
            "/apiVersion",
            "/kind",
            "/kind/0",
            "/metadata",
            "/metadata/name",
            "/metadata/namespace",
            "/metadata/uid",
            "/metadata/finalizers",
            "/metadata/finalizers/-",
            "/metadata/ownerReferences/0/uid",
            "/metadata/generateName",
            "/metadata/resourceVersion",
            "/metadata/managedFields",
            "/metadata/deletionTimestamp",
            "/metadata/",
            "/metadata/labels/karmada.io~1managed",
            "/metadata/annotations/work.karmada.io~1name",
            "/metadata/annotations/longshore.io~1pin",
            "/metadata/labels/resourcebinding.karmada.io~1permanent-id",
            "metadata/name",
            "/~",
        ] {
            for overriders in [
                plaintext(path, json!("x")),
                json!({"imageOverrider": [{"predicate": {"path": path}, "component": "Tag", "operator": "add", "value": "x"}]}),
                json!({"fieldOverrider": [{"fieldPath": path, "json": []}]}),
            ] {
                let found = problems(overriders.clone());
                assert_eq!(found.len(), 1, "{overriders}: {found:?}");
                assert!(
                    found[0].starts_with("spec.overrideRules[0].overriders.")
                        && found[0].contains(&format!("{path:?}")),
                    "{found:?}"
                );
            }
        }
        for field in ["labelsOverrider", "annotationsOverrider"] {
            let found = problems(
                json!({field: [{"operator": "add", "value": {"karmada.io/managed": "x", "app": "y"}}]}),
            );
            assert_eq!(found.len(), 1, "{found:?}");
        }
        for value in [json!({"karmada.io/managed": "false"}), json!("text"), json!([])] {
            assert_eq!(problems(plaintext("/metadata/labels", value)).len(), 1);
        }
    }

    #[test]
    fn what_differs_between_clusters_may_be_overridden() {
        for (path, value) in [
            ("/spec/replicas", json!(1)),
            ("/metadata/labels", json!({"app": "web"})),
            ("/metadata/annotations", Value::Null),
            ("/metadata/annotations/example.com~1a", json!("b")),
            ("/metadata/labels/kind", json!("b")),
            ("/metadata/annotations/work.karmada.io~1conflict-resolution", json!("overwrite")),
            ("/metadata/labels/resourcetemplate.karmada.io~1retain-replicas", json!("true")),
            ("/data/name", json!("b")),
            ("/spec/template/metadata/name", json!("b")),
        ] {
            assert_eq!(problems(plaintext(path, value)), Vec::<String>::new(), "{path}");
        }
    }
}
