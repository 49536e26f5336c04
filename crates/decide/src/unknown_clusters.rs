//! Cluster names in a policy that do not exist: mistyped, or the cluster has not joined yet. Nothing runs there.
//! Compares names only; label and field selectors name no cluster.

use std::collections::BTreeSet;
use std::fmt;

use api::kinds::POLICY_GROUP;
use api::{Cluster, ClusterAffinity, OverrideSpec, PropagationSpec, RolloutSpec, Suspension};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How many names are printed of each list.
const NAMES_MAX: usize = 5;
/// How many fields are reported; a policy may have thousands of affinities.
const FIELDS_MAX: usize = 10;

/// Names in one field of a policy that no cluster has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnknownClusters {
    /// The field, such as `spec.placement.clusterAffinity.clusterNames`.
    pub field: String,
    /// The names, sorted.
    pub names: Vec<String>,
    /// The clusters that exist, sorted.
    pub known: Vec<String>,
}

/// Unknown names in the placement and the suspension of a propagation policy.
pub fn in_policy(spec: &PropagationSpec, clusters: &[Cluster]) -> Vec<UnknownClusters> {
    let mut search = Search::new(clusters);
    if let Some(affinity) = &spec.placement.cluster_affinity {
        search.affinity("spec.placement.clusterAffinity", affinity);
    }
    for (index, term) in spec.placement.cluster_affinities.iter().enumerate() {
        let field = format!("spec.placement.clusterAffinities[{index}]");
        search.affinity(&field, &term.affinity);
        for (index, overflow) in term.overflow_affinities.iter().enumerate() {
            search.affinity(&format!("{field}.overflowAffinities[{index}]"), &overflow.affinity);
        }
    }
    search.suspension(spec.suspension.as_ref());
    search.found
}

/// Unknown names among the target clusters of an override policy.
pub fn in_override(spec: &OverrideSpec, clusters: &[Cluster]) -> Vec<UnknownClusters> {
    let mut search = Search::new(clusters);
    for (index, rule) in spec.override_rules.iter().enumerate() {
        if let Some(target) = &rule.target_cluster {
            search.affinity(&format!("spec.overrideRules[{index}].targetCluster"), target);
        }
    }
    if let Some(target) = &spec.target_cluster {
        search.affinity("spec.targetCluster", target);
    }
    search.found
}

/// Unknown names in the suspension of a rollout policy.
pub fn in_rollout(spec: &RolloutSpec, clusters: &[Cluster]) -> Vec<UnknownClusters> {
    let mut search = Search::new(clusters);
    search.suspension(spec.suspension.as_ref());
    search.found
}

/// Unknown names in a policy of any kind, as it is written; none for other kinds and for what is not readable.
pub fn in_object(object: &Value, clusters: &[Cluster]) -> Vec<UnknownClusters> {
    fn spec<T: DeserializeOwned + Default>(object: &Value) -> T {
        T::deserialize(&object["spec"]).unwrap_or_default()
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    let group =
        object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
    match kind {
        _ if group != Some(POLICY_GROUP) => Vec::new(),
        "PropagationPolicy" | "ClusterPropagationPolicy" => in_policy(&spec(object), clusters),
        "OverridePolicy" | "ClusterOverridePolicy" => in_override(&spec(object), clusters),
        "RolloutPolicy" | "ClusterRolloutPolicy" => in_rollout(&spec(object), clusters),
        _ => Vec::new(),
    }
}

struct Search<'c> {
    known: BTreeSet<&'c str>,
    found: Vec<UnknownClusters>,
}

impl<'c> Search<'c> {
    fn new(clusters: &'c [Cluster]) -> Self {
        let known = clusters.iter().map(|cluster| cluster.metadata.name.as_str()).collect();
        Self { known, found: Vec::new() }
    }

    fn affinity(&mut self, field: &str, affinity: &ClusterAffinity) {
        self.names(format!("{field}.clusterNames"), &affinity.cluster_names);
        self.names(format!("{field}.exclude"), &affinity.exclude_clusters);
    }

    fn suspension(&mut self, suspension: Option<&Suspension>) {
        let Some(suspension) = suspension else { return };
        let lists = [
            ("dispatchingOnClusters", &suspension.dispatching_on_clusters),
            ("suspendDispatchingOnClusters", &suspension.suspend_dispatching_on_clusters),
        ];
        for (field, clusters) in lists {
            if let Some(clusters) = clusters {
                self.names(format!("spec.suspension.{field}.clusterNames"), &clusters.cluster_names);
            }
        }
    }

    fn names(&mut self, field: String, named: &[String]) {
        if self.found.len() >= FIELDS_MAX {
            return;
        }
        let unknown: BTreeSet<&String> =
            named.iter().filter(|name| !self.known.contains(name.as_str())).collect();
        if !unknown.is_empty() {
            let known = self.known.iter().map(|name| (*name).to_owned()).collect();
            self.found.push(UnknownClusters { field, names: unknown.into_iter().cloned().collect(), known });
        }
    }
}

impl fmt::Display for UnknownClusters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, names, known } = self;
        let (clusters, do_not) = match names.as_slice() {
            [_] => ("a cluster", "does not"),
            _ => ("clusters", "do not"),
        };
        write!(formatter, "{field} names {clusters} that {do_not} exist: {}.", some_of(names))?;
        match known.as_slice() {
            [] => write!(formatter, " No cluster has joined."),
            known => write!(formatter, " Clusters: {}.", some_of(known)),
        }
    }
}

fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn clusters() -> Vec<Cluster> {
        let named = |name: &str| -> Cluster {
            serde_json::from_value(json!({ "metadata": { "name": name } })).expect("a cluster")
        };
        vec![named("m1"), named("m2")]
    }

    fn said(found: &[UnknownClusters]) -> Vec<String> {
        found.iter().map(ToString::to_string).collect()
    }

    fn policy(spec: Value) -> Vec<String> {
        let spec: PropagationSpec = serde_json::from_value(spec).expect("a spec");
        said(&in_policy(&spec, &clusters()))
    }

    #[test]
    fn every_field_that_names_clusters_is_searched() {
        assert_eq!(
            policy(
                json!({ "placement": { "clusterAffinity": { "clusterNames": ["m1"], "exclude": ["m2"] } } })
            ),
            Vec::<String>::new()
        );
        assert_eq!(
            policy(
                json!({ "placement": { "clusterAffinity": { "clusterNames": ["m3", "m1", "m3"], "exclude": ["x", "y"] } } })
            ),
            [
                "spec.placement.clusterAffinity.clusterNames names a cluster that does not exist: m3. Clusters: m1, m2.",
                "spec.placement.clusterAffinity.exclude names clusters that do not exist: x, y. Clusters: m1, m2.",
            ]
        );
        assert_eq!(
            policy(json!({
                "placement": { "clusterAffinities": [
                    { "affinityName": "a", "clusterNames": ["m1"] },
                    { "affinityName": "b", "clusterNames": ["m4"], "overflowAffinities": [{ "affinityName": "c", "clusterNames": ["m5"] }] },
                ] },
                "suspension": { "dispatchingOnClusters": { "clusterNames": ["m6"] } },
            })),
            [
                "spec.placement.clusterAffinities[1].clusterNames names a cluster that does not exist: m4. Clusters: m1, m2.",
                "spec.placement.clusterAffinities[1].overflowAffinities[0].clusterNames names a cluster that does not \
                 exist: m5. Clusters: m1, m2.",
                "spec.suspension.dispatchingOnClusters.clusterNames names a cluster that does not exist: m6. Clusters: m1, m2.",
            ]
        );
    }

    #[test]
    fn override_and_rollout_policies_are_searched_too() {
        let spec: OverrideSpec = serde_json::from_value(json!({
            "overrideRules": [{ "targetCluster": { "clusterNames": ["m3"] }, "overriders": {} }],
            "targetCluster": { "exclude": ["m4"] },
        }))
        .expect("a spec");
        assert_eq!(
            said(&in_override(&spec, &clusters())),
            [
                "spec.overrideRules[0].targetCluster.clusterNames names a cluster that does not exist: m3. Clusters: m1, m2.",
                "spec.targetCluster.exclude names a cluster that does not exist: m4. Clusters: m1, m2.",
            ]
        );
        let spec: RolloutSpec = serde_json::from_value(
            json!({ "suspension": { "suspendDispatchingOnClusters": { "clusterNames": ["a", "b", "c", "d", "e", "f"] } } }),
        )
        .expect("a spec");
        assert_eq!(
            said(&in_rollout(&spec, &[])),
            [
                "spec.suspension.suspendDispatchingOnClusters.clusterNames names clusters that do not exist: a, b, c, d, e \
              and 1 more. No cluster has joined."
            ]
        );
    }
}
