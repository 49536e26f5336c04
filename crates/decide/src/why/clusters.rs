//! What each cluster has to do with a template: chosen or refused and why, its override policies, its suspension.
//! Places nothing itself: it reads the placement's result.

use std::collections::BTreeMap;
use std::fmt;

use api::override_policy::AppliedOverride;
use api::{Binding, Cluster, OverridePolicy, Work, annotations};
use serde::{Deserialize, Serialize};

use crate::affinity::cluster_matches;
use crate::binding::is_held;
use crate::overrides::Failed;
use crate::placement::{Failure, Placement, Refusal};
use crate::policy::PolicyKey;
use crate::readiness::{Unknown, unknown};
use crate::snapshot::Snapshot;
use crate::template::Template;
use crate::works::{Frozen, Sources, Works, complete, targets};

/// One cluster's part in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterWhy {
    /// The cluster.
    pub name: String,
    /// Chosen or not, and why not.
    pub verdict: Verdict,
    /// Nothing is written to it now (U3).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// The cluster does not answer, so what it has is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// Override policies that change what it receives; an empty namespace means a ClusterOverridePolicy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<PolicyKey>,
    /// An override policy that cannot act, so the cluster gets nothing new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_override: Option<Failed>,
}

/// Whether a cluster is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Verdict {
    /// It is.
    Chosen {
        /// How many replicas; 0 for what has none.
        replicas: i32,
    },
    /// It may not run it.
    Refused {
        /// Why not.
        why: Refusal,
        /// The placement does not only not mean it, but names it in an `exclude`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        excluded: bool,
    },
    /// It may, and others were preferred.
    PassedOver,
    /// It is not there any more, or not yet, and is still named.
    Missing,
    /// No scheduling was requested.
    NotAsked,
}

/// What there is to say about every cluster, by name.
pub(super) fn clusters(
    snapshot: &Snapshot,
    template: &Template,
    binding: &Binding,
    placed: &Placement,
) -> Vec<ClusterWhy> {
    let chosen: BTreeMap<String, i32> =
        targets(&binding.spec).into_iter().map(|target| (target.name, target.replicas)).collect();
    let rendered = rendered(snapshot, template, binding);
    let known = snapshot.clusters.iter().map(|cluster| (cluster.metadata.name.as_str(), Some(cluster)));
    let mut all: BTreeMap<&str, Option<&Cluster>> = chosen.keys().map(|name| (name.as_str(), None)).collect();
    all.extend(known);
    let why = |(name, cluster): (&str, Option<&Cluster>)| {
        let verdict = match (chosen.get(name), cluster) {
            (Some(_), None) => Verdict::Missing,
            (Some(replicas), Some(_)) => Verdict::Chosen { replicas: *replicas },
            (None, cluster) => cluster.map_or(Verdict::Missing, |cluster| refused(binding, cluster, placed)),
        };
        let is_chosen = chosen.contains_key(name);
        ClusterWhy {
            name: name.to_owned(),
            verdict,
            suspended: is_chosen && is_held(binding, name),
            unknown: cluster.and_then(unknown),
            overrides: rendered.works.get(name).map(|work| applied(work, template)).unwrap_or_default(),
            failed_override: rendered.failed.get(name).cloned(),
        }
    };
    all.into_iter().map(why).collect()
}

/// Why nothing newer reaches the members; none if everything does.
pub(super) fn frozen(snapshot: &Snapshot, template: &Template, binding: &Binding) -> Option<Frozen> {
    rendered(snapshot, template, binding).frozen
}

fn rendered(snapshot: &Snapshot, template: &Template, binding: &Binding) -> Works {
    let own = |key: &PolicyKey| key.namespace.is_empty() || key.namespace == template.key.namespace;
    let overrides: Vec<OverridePolicy> = snapshot
        .overrides
        .iter()
        .filter(|(key, _)| own(key))
        .map(|(_, policy)| OverridePolicy::clone(policy))
        .collect();
    let sources = Sources {
        template: Some(template),
        overrides: &overrides,
        clusters: &snapshot.clusters,
        existing: &[],
        needed_in: &[],
    };
    complete(binding, sources)
}

fn applied(work: &Work, template: &Template) -> Vec<PolicyKey> {
    let both = [
        (annotations::APPLIED_CLUSTER_OVERRIDES, ""),
        (annotations::APPLIED_OVERRIDES, template.key.namespace.as_str()),
    ];
    let named = both.into_iter().flat_map(|(key, namespace)| {
        let listed: Vec<AppliedOverride> =
            serde_json::from_str(work.metadata.annotation(key)).unwrap_or_default();
        let key = |one: AppliedOverride| PolicyKey { namespace: namespace.to_owned(), name: one.policy_name };
        listed.into_iter().map(key)
    });
    let mut names: Vec<PolicyKey> = named.collect();
    names.dedup();
    names
}

fn refused(binding: &Binding, cluster: &Cluster, placed: &Placement) -> Verdict {
    let refusals = match placed {
        Placement::Scheduled(schedule) => &schedule.refused,
        Placement::Nowhere { failure: Failure::NoClusterFit { refused, .. }, .. }
        | Placement::Kept { failure: Failure::NoClusterFit { refused, .. }, .. } => refused,
        Placement::Nowhere { .. } | Placement::Kept { .. } => return Verdict::PassedOver,
        Placement::Skipped(_) | Placement::Left { .. } | Placement::Unchanged => return Verdict::NotAsked,
    };
    match refusals.get(&cluster.metadata.name) {
        None => Verdict::PassedOver,
        Some(why) => Verdict::Refused { why: why.clone(), excluded: is_excluded(binding, cluster) },
    }
}

/// True when the placement would mean the cluster if it did not exclude it.
fn is_excluded(binding: &Binding, cluster: &Cluster) -> bool {
    let Some(placement) = &binding.spec.placement else { return false };
    let terms = placement.cluster_affinities.iter().map(|term| &term.affinity);
    let names_it = |affinity: &api::ClusterAffinity| {
        let without = api::ClusterAffinity { exclude_clusters: Vec::new(), ..affinity.clone() };
        !cluster_matches(affinity, cluster) && cluster_matches(&without, cluster)
    };
    placement.cluster_affinity.iter().chain(terms).any(names_it)
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Chosen { replicas: 0 } => write!(formatter, "chosen"),
            Verdict::Chosen { replicas: 1 } => write!(formatter, "chosen, 1 replica"),
            Verdict::Chosen { replicas } => write!(formatter, "chosen, {replicas} replicas"),
            Verdict::Refused { excluded: true, .. } => {
                write!(formatter, "not chosen: the placement excludes it")
            }
            Verdict::Refused { why, .. } => write!(formatter, "not chosen: {}", Reason(why)),
            Verdict::PassedOver => write!(formatter, "not chosen: it fits, and others were preferred"),
            Verdict::Missing => write!(formatter, "chosen, but there is no such cluster"),
            Verdict::NotAsked => write!(formatter, "not chosen"),
        }
    }
}

/// A refusal in words about one cluster; Karmada's words count clusters.
struct Reason<'r>(&'r Refusal);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Refusal::Deleting => write!(formatter, "the cluster is being deleted"),
            Refusal::ClusterAffinity => write!(formatter, "the placement does not select it"),
            Refusal::ClusterEviction => write!(formatter, "it is being evicted from the cluster"),
            Refusal::ApiEnablement => write!(formatter, "the cluster does not have the API"),
            Refusal::TaintToleration { taint } => {
                let pair = match taint.value.as_str() {
                    "" => taint.key.clone(),
                    value => format!("{}={value}", taint.key),
                };
                write!(formatter, "its taint {pair}:{} is not tolerated", taint.effect)
            }
            Refusal::SpreadConstraint { field } => {
                write!(formatter, "the placement spreads by {field:?}, which it does not have")
            }
        }
    }
}
