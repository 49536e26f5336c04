//! Relative times in manifests: the text `~ now` becomes the current time of the control plane. A fixed date would be
//! long past on a live one.

use jiff::Timestamp;
use serde_json::Value;

use crate::step::Action;

/// What stands for the moment.
const NOW: &str = "~ now";

/// What is done, at this moment.
pub fn at(action: &Action, now: Timestamp) -> Action {
    // Kubernetes' dates know only seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let mut action = action.clone();
    match &mut action {
        Action::Apply(manifests) => manifests.iter_mut().for_each(|manifest| date(manifest, &now)),
        Action::Edit(_, patch) => date(patch, &now),
        _ => {}
    }
    action
}

fn date(value: &mut Value, now: &str) {
    match value {
        Value::String(text) if text == NOW => now.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| date(item, now)),
        Value::Object(fields) => fields.values_mut().for_each(|field| date(field, now)),
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
        let Action::Edit(_, dated) = at(&edit, now) else { panic!("it stays what it is") };
        let expected = json!({
            "taints": [{ "timeAdded": "2026-01-01T00:00:07Z", "key": "now" }],
            "labels": { "~ now": "~ nowhere" },
        });
        assert_eq!(dated, expected);
        let applied = at(&Action::Apply(vec![json!("~ now")]), now);
        assert!(matches!(applied, Action::Apply(manifests) if manifests == [json!("2026-01-01T00:00:07Z")]));
    }
}
