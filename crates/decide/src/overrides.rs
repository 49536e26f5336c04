//! Override policies: which of them select an object in a cluster, in which order they apply, and the result. The least
//! specific applies first, so that the most specific wins.

mod change;
mod document;

use std::collections::BTreeMap;
use std::fmt;

use api::override_policy::{AppliedOverride, OverrideRule, Overriders};
use api::{Cluster, OverridePolicy, annotations};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use change::Problem;

use crate::affinity::cluster_matches;
use crate::fields::{pairs, text};
use crate::policy::PolicyKey;
use crate::selector::{Specificity, best_match, is_excluded};
use crate::template::TemplateKey;

/// An object after the override policies of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Overridden {
    /// All of them acted.
    Done {
        /// The object now.
        object: Value,
        /// What ClusterOverridePolicies did, by name.
        cluster_policies: Vec<AppliedOverride>,
        /// What OverridePolicies did, by name.
        policies: Vec<AppliedOverride>,
    },
    /// One of them could not act, so the cluster gets nothing new.
    Failed(Failed),
}

/// An override policy that could not act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// The policy; its namespace is empty for a ClusterOverridePolicy.
    pub policy: PolicyKey,
    /// The cluster.
    pub cluster: String,
    /// What was in the way.
    pub problem: Problem,
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyKey { namespace, name } = &self.policy;
        let policy = match namespace.as_str() {
            "" => format!("cluster override policy({name})"),
            namespace => format!("override policy({namespace}/{name})"),
        };
        write!(formatter, "Apply {policy} for cluster({}) failed: {}", self.cluster, self.problem)
    }
}

/// Applies to an object what the override policies of both scopes say about it in a cluster.
pub fn overrides(object: &Value, cluster: &Cluster, policies: &[OverridePolicy]) -> Overridden {
    let mut object = object.clone();
    let key = identity(&object);
    let cluster_policies = match apply(&mut object, &key, cluster, policies, "") {
        Ok(applied) => applied,
        Err(failed) => return Overridden::Failed(*failed),
    };
    let policies = match key.namespace.as_str() {
        "" => Ok(Vec::new()),
        namespace => apply(&mut object, &key, cluster, policies, namespace),
    };
    match policies {
        Ok(policies) => Overridden::Done { object, cluster_policies, policies },
        Err(failed) => Overridden::Failed(*failed),
    }
}

/// True when an override policy is about an object, in whatever cluster.
pub fn concerns(policy: &OverridePolicy, key: &TemplateKey, labels: &BTreeMap<String, String>) -> bool {
    let in_reach = policy.metadata.namespace.is_empty() || policy.metadata.namespace == key.namespace;
    in_reach && specificity(policy, key, labels).is_some()
}

/// The annotations a Work remembers the overrides by; nothing for what did nothing.
pub(crate) fn remembered<'a>(
    cluster_policies: &'a [AppliedOverride],
    policies: &'a [AppliedOverride],
) -> impl Iterator<Item = (String, String)> {
    let both = [
        (annotations::APPLIED_CLUSTER_OVERRIDES, cluster_policies),
        (annotations::APPLIED_OVERRIDES, policies),
    ];
    let written = both.into_iter().filter(|(_, applied)| !applied.is_empty());
    written.map(|(key, applied)| {
        (key.to_owned(), serde_json::to_string(applied).expect("overriders hold only text, maps and lists"))
    })
}

/// Lets the policies of one namespace act, those without a namespace if it is empty. None of them changes what the
/// object is (M3).
fn apply(
    object: &mut Value,
    key: &TemplateKey,
    cluster: &Cluster,
    policies: &[OverridePolicy],
    namespace: &str,
) -> Result<Vec<AppliedOverride>, Box<Failed>> {
    let labels = labels(object);
    let mut matching: Vec<(Specificity, &OverridePolicy)> = policies
        .iter()
        .filter(|policy| policy.metadata.namespace == namespace)
        .filter_map(|policy| Some((specificity(policy, key, &labels)?, policy)))
        .collect();
    matching.sort_by_key(|(specificity, policy)| (*specificity, &policy.metadata.name));
    let mut applied = Vec::new();
    for (_, policy) in matching {
        for overriders in rules(policy, cluster) {
            let changed =
                change::change(object, overriders).and_then(|()| change::keep_identity(object, key));
            changed.map_err(|problem| {
                Box::new(Failed {
                    policy: PolicyKey { namespace: namespace.to_owned(), name: policy.metadata.name.clone() },
                    cluster: cluster.metadata.name.clone(),
                    problem,
                })
            })?;
            let policy_name = policy.metadata.name.clone();
            applied.push(AppliedOverride { policy_name, overriders: overriders.clone() });
        }
    }
    applied.sort_by(|a, b| a.policy_name.cmp(&b.policy_name));
    Ok(applied)
}

/// How well a policy means the object; one without selectors means everything it does not exclude.
fn specificity(
    policy: &OverridePolicy,
    key: &TemplateKey,
    labels: &BTreeMap<String, String>,
) -> Option<Specificity> {
    let (selectors, excluded) = (&policy.spec.resource_selectors, &policy.spec.exclude_resource_selectors);
    match selectors.is_empty() {
        true => (!is_excluded(selectors, excluded, key, labels)).then_some(Specificity::All),
        false => best_match(selectors, excluded, key, labels),
    }
}

/// The overriders of a policy for a cluster, in order; the deprecated form counts when there are no rules.
fn rules<'a>(policy: &'a OverridePolicy, cluster: &Cluster) -> Vec<&'a Overriders> {
    let spec = &policy.spec;
    let means = |target: &Option<api::ClusterAffinity>| {
        target.as_ref().is_none_or(|affinity| cluster_matches(affinity, cluster))
    };
    if spec.override_rules.is_empty() {
        return means(&spec.target_cluster).then_some(&spec.overriders).into_iter().collect();
    }
    let meant = |rule: &&OverrideRule| means(&rule.target_cluster);
    spec.override_rules.iter().filter(meant).map(|rule| &rule.overriders).collect()
}

fn identity(object: &Value) -> TemplateKey {
    let field = |path: &[&str]| text(object, path).to_owned();
    TemplateKey {
        api_version: field(&["apiVersion"]),
        kind: field(&["kind"]),
        namespace: field(&["metadata", "namespace"]),
        name: field(&["metadata", "name"]),
    }
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = pairs(object, &["metadata", "labels"]);
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests;
