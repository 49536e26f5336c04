//! How a `suspension` changes on suspend and resume, everywhere or in some clusters. Pure.

use api::Suspension;
use api::suspension::SuspendClusters;

/// The change that the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspensionChange {
    /// Hold it back.
    Suspend,
    /// Let it go.
    Resume,
}

/// Why a suspension cannot be changed like that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is suspended everywhere, so it cannot be resumed in one cluster alone.
    #[error("it is suspended in all clusters, not only in {0}")]
    Everywhere(String),
}

/// The suspension afterwards; none if nothing is held. No clusters means everywhere.
pub fn change_suspension(
    before: Option<&Suspension>,
    wish: SuspensionChange,
    clusters: &[String],
) -> Result<Option<Suspension>, Refused> {
    let mut before = before.cloned().unwrap_or_default();
    before.normalise();
    let everywhere = before.dispatching == Some(true);
    let mut names = before.dispatching_on_clusters.map(|on| on.cluster_names).unwrap_or_default();
    match (wish, clusters, everywhere) {
        (SuspensionChange::Suspend, [], _) | (SuspensionChange::Suspend, _, true) => {
            return Ok(Some(Suspension { dispatching: Some(true), ..Suspension::default() }));
        }
        (SuspensionChange::Resume, [], _) => return Ok(None),
        (SuspensionChange::Resume, _, true) => return Err(Refused::Everywhere(clusters.join(", "))),
        (SuspensionChange::Suspend, _, false) => names.extend(clusters.iter().cloned()),
        (SuspensionChange::Resume, _, false) => names.retain(|name| !clusters.contains(name)),
    }
    names.sort();
    names.dedup();
    let on = SuspendClusters { cluster_names: names };
    let held = !on.cluster_names.is_empty();
    Ok(held.then(|| Suspension { dispatching_on_clusters: Some(on), ..Suspension::default() }))
}

/// True when two suspensions hold the same.
pub fn is_same(before: Option<&Suspension>, after: Option<&Suspension>) -> bool {
    let holds = |suspension: Option<&Suspension>| {
        let mut suspension = suspension.cloned().unwrap_or_default();
        suspension.normalise();
        let mut names = suspension.dispatching_on_clusters.map(|on| on.cluster_names).unwrap_or_default();
        names.sort();
        (suspension.dispatching == Some(true), names)
    };
    holds(before) == holds(after)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_brake_is_pulled_and_let_go_everywhere_or_in_some_clusters() {
        let check = |before: Value, wish: SuspensionChange, clusters: &[&str], expected: Value| {
            let before: Option<Suspension> = serde_json::from_value(before).expect("a suspension");
            let clusters: Vec<String> = clusters.iter().map(|name| (*name).to_owned()).collect();
            let found = match change_suspension(before.as_ref(), wish, &clusters) {
                Ok(after) => json!(after),
                Err(error) => json!(error.to_string()),
            };
            assert_eq!(found, expected, "{before:?} {wish:?} {clusters:?}");
        };
        let all = || json!({ "dispatching": true });
        let on = |names: &[&str]| json!({ "dispatchingOnClusters": { "clusterNames": names } });
        check(Value::Null, SuspensionChange::Suspend, &[], all());
        check(on(&["a"]), SuspensionChange::Suspend, &[], all());
        check(Value::Null, SuspensionChange::Suspend, &["b", "a"], on(&["a", "b"]));
        check(on(&["b"]), SuspensionChange::Suspend, &["a", "b"], on(&["a", "b"]));
        check(
            json!({ "suspendDispatchingOnClusters": { "clusterNames": ["c"] } }),
            SuspensionChange::Suspend,
            &["a"],
            on(&["a", "c"]),
        );
        check(all(), SuspensionChange::Suspend, &["a"], all());
        check(all(), SuspensionChange::Resume, &[], Value::Null);
        check(
            all(),
            SuspensionChange::Resume,
            &["a"],
            json!("it is suspended in all clusters, not only in a"),
        );
        check(on(&["a", "b"]), SuspensionChange::Resume, &["a"], on(&["b"]));
        check(on(&["a"]), SuspensionChange::Resume, &["a"], Value::Null);
        check(Value::Null, SuspensionChange::Resume, &["a"], Value::Null);
    }

    #[test]
    fn brakes_are_the_same_when_they_hold_the_same() {
        let read = |value: Value| -> Suspension { serde_json::from_value(value).expect("a suspension") };
        assert!(is_same(None, Some(&read(json!({ "dispatching": false })))));
        assert!(is_same(
            Some(&read(json!({ "suspendDispatching": true }))),
            Some(&read(json!({ "dispatching": true })))
        ));
        assert!(!is_same(None, Some(&read(json!({ "dispatching": true })))));
    }
}
