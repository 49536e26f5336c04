//! Suspension of a policy: what is held back and where. `decide` evaluates it.

use serde::{Deserialize, Serialize};

use crate::is_default;

/// What a policy holds back; the last two fields are the proposal's names for the first two (U1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Suspension {
    /// True holds every cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub dispatching: Option<bool>,
    /// Holds the clusters it names.
    #[serde(skip_serializing_if = "is_default")]
    pub dispatching_on_clusters: Option<SuspendClusters>,
    /// The proposal's name for `dispatching`.
    #[serde(skip_serializing_if = "is_default")]
    pub suspend_dispatching: Option<bool>,
    /// The proposal's name for `dispatchingOnClusters`.
    #[serde(skip_serializing_if = "is_default")]
    pub suspend_dispatching_on_clusters: Option<SuspendClusters>,
}

/// Clusters that are held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SuspendClusters {
    /// Their names.
    #[serde(skip_serializing_if = "is_default")]
    pub cluster_names: Vec<String>,
}

impl Suspension {
    /// Says the same with the canonical names only. A brake given twice holds what either one holds.
    pub fn normalise(&mut self) {
        if let Some(hold) = self.suspend_dispatching.take() {
            self.dispatching = Some(self.dispatching.unwrap_or(false) || hold);
        }
        if let Some(more) = self.suspend_dispatching_on_clusters.take() {
            let names = &mut self.dispatching_on_clusters.get_or_insert_default().cluster_names;
            for name in more.cluster_names {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(written: Value, expected: Value) {
        let mut suspension: Suspension = serde_json::from_value(written.clone()).expect("a suspension");
        suspension.normalise();
        let once = suspension.clone();
        suspension.normalise();
        assert_eq!(suspension, once, "normalising twice changes nothing: {written}");
        assert_eq!(serde_json::to_value(&suspension).expect("json"), expected, "{written}");
    }

    #[test]
    fn u1_the_proposals_names_become_the_canonical_ones() {
        let on = |names: &[&str]| json!({ "clusterNames": names });
        check(json!({}), json!({}));
        check(json!({"dispatching": true}), json!({"dispatching": true}));
        check(json!({"suspendDispatching": true}), json!({"dispatching": true}));
        check(json!({"suspendDispatching": false}), json!({"dispatching": false}));
        check(json!({"dispatching": true, "suspendDispatching": false}), json!({"dispatching": true}));
        check(
            json!({"suspendDispatchingOnClusters": on(&["member2", "member3"])}),
            json!({"dispatchingOnClusters": on(&["member2", "member3"])}),
        );
        check(
            json!({"dispatchingOnClusters": on(&["b", "a"]), "suspendDispatchingOnClusters": on(&["a", "c"])}),
            json!({"dispatchingOnClusters": on(&["b", "a", "c"])}),
        );
    }
}
