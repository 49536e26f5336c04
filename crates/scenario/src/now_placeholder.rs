//! Relative times in manifests: the text `~ now` becomes the current time of the control plane. A fixed date would be
//! long past on a live one.

use jiff::Timestamp;
use serde_json::Value;

use crate::step::Action;

/// The placeholder for the current time.
const NOW_PLACEHOLDER: &str = "~ now";

/// The action with the current time wherever its manifests say `~ now`.
pub fn replace_now(action: &Action, now: Timestamp) -> Action {
    // Kubernetes' dates know only seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let mut action = action.clone();
    match &mut action {
        Action::Apply(manifests) => manifests.iter_mut().for_each(|manifest| replace_in(manifest, &now)),
        Action::Edit(_, patch) => replace_in(patch, &now),
        _ => {}
    }
    action
}

fn replace_in(value: &mut Value, now: &str) {
    match value {
        Value::String(text) if text == NOW_PLACEHOLDER => now.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_in(item, now)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_in(field, now)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_is_dated_wherever_it_says_now() {
        let now: Timestamp = "2026-01-01T00:00:07.2Z".parse().unwrap();
        let patch = json!({
            "taints": [{ "timeAdded": "~ now", "key": "now" }],
            "labels": { "~ now": "~ nowhere" },
        });
        let edit = Action::Edit("Cluster member1".parse().unwrap(), patch);
        let Action::Edit(_, dated) = replace_now(&edit, now) else { panic!("it stays what it is") };
        let expected = json!({
            "taints": [{ "timeAdded": "2026-01-01T00:00:07Z", "key": "now" }],
            "labels": { "~ now": "~ nowhere" },
        });
        assert_eq!(dated, expected);
        let applied = replace_now(&Action::Apply(vec![json!("~ now")]), now);
        assert!(matches!(applied, Action::Apply(manifests) if manifests == [json!("2026-01-01T00:00:07Z")]));
    }
}
