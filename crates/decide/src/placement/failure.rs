//! Scheduling failures. Each names the reason that Karmada writes into the `Scheduled` condition.

use std::collections::BTreeMap;
use std::fmt;

use api::placement::SpreadField;
use serde::{Deserialize, Serialize};

use super::filter::Refusal;

/// Why no clusters were chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Failure {
    /// No cluster may run it.
    NoClusterFit {
        /// How many there are.
        clusters: usize,
        /// Why each of them may not.
        refused: BTreeMap<String, Refusal>,
    },
    /// The clusters together have too little room for the replicas.
    NotEnoughCapacity {
        /// The room they have.
        available: i64,
        /// The replicas still to be placed.
        wanted: i64,
    },
    /// No choice of so many clusters has enough room.
    TooLittleRoom {
        /// How many clusters.
        clusters: usize,
        /// The room they have.
        available: i64,
    },
    /// A constraint wants more groups than there are.
    TooFewGroups {
        /// What makes a group.
        field: SpreadField,
        /// How many there are.
        have: usize,
        /// How many are wanted.
        need: usize,
    },
    /// The allowed groups have too few clusters.
    TooFewInGroups {
        /// What makes a group.
        field: SpreadField,
        /// How many clusters are wanted.
        need: usize,
    },
    /// Constraints by label are accepted and not understood, as in Karmada.
    SpreadByLabel,
}

impl Failure {
    /// The reason in the `Scheduled` condition when no cluster may run it.
    pub const NO_CLUSTER_FIT: &str = "NoClusterFit";

    /// The reason in the `Scheduled` condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Failure::NoClusterFit { .. } => Failure::NO_CLUSTER_FIT,
            Failure::NotEnoughCapacity { .. } => "Unschedulable",
            _ => "SchedulerError",
        }
    }

    /// True when no cluster may run it; every other failure is about how many, and leaves what ran before (C3).
    pub fn is_no_fit(&self) -> bool {
        matches!(self, Failure::NoClusterFit { .. })
    }

    /// True when the placement does not mean a single one of the clusters that there are.
    pub(super) fn selects_none(&self) -> bool {
        let Failure::NoClusterFit { refused, .. } = self else { return false };
        refused.values().all(|refusal| *refusal == Refusal::ClusterAffinity)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoClusterFit { clusters, refused } => no_cluster_fit(*clusters, refused, formatter),
            Failure::NotEnoughCapacity { available, .. } => {
                write!(formatter, "Clusters available replicas {available} are not enough to schedule.")
            }
            Failure::TooLittleRoom { clusters, .. } => {
                write!(formatter, "no enough resource when selecting {clusters} clusters")
            }
            Failure::TooFewGroups { field: SpreadField::Cluster, have, need } => write!(
                formatter,
                "the number of feasible clusters is less than spreadConstraint.MinGroups ({have} of {need})"
            ),
            Failure::TooFewGroups { field, have, need } => write!(
                formatter,
                "the number of feasible {} is less than spreadConstraint.MinGroups ({have} of {need})",
                word(*field)
            ),
            Failure::TooFewInGroups { field, need } => write!(
                formatter,
                "the number of clusters is less than the cluster spreadConstraint.MinGroups ({need}) in every allowed choice by {}",
                word(*field)
            ),
            Failure::SpreadByLabel => {
                formatter.write_str("spreadByLabel is not supported: use spreadByField")
            }
        }
    }
}

/// Karmada's summary: how many clusters were refused for each reason, sorted as text.
fn no_cluster_fit(
    clusters: usize,
    refused: &BTreeMap<String, Refusal>,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for refusal in refused.values() {
        *counts.entry(refusal.to_string()).or_default() += 1;
    }
    let mut reasons: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    reasons.sort();
    let reasons = if reasons.is_empty() { "no cluster exists".to_owned() } else { reasons.join(", ") };
    write!(formatter, "0/{clusters} clusters are available: {reasons}.")
}

fn word(field: SpreadField) -> &'static str {
    match field {
        SpreadField::Cluster => "cluster",
        SpreadField::Region => "region",
        SpreadField::Zone => "zone",
        SpreadField::Provider => "provider",
    }
}
