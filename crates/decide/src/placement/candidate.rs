//! The order in which candidate clusters are preferred (scoring), and what is known of each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use api::{BindingSpec, Cluster};

use super::estimate::Need;
use super::filter::Tier;

/// Score of a cluster that runs the workload already: what runs is not roughly changed.
const LOCALITY: i64 = 100;

/// A cluster that may run the workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub cluster: &'a Cluster,
    pub tier: Tier,
    pub score: i64,
    /// Replicas it has now.
    pub previous: i32,
    /// Room for more.
    pub allocatable: i64,
}

impl<'a> Candidate<'a> {
    pub fn name(&self) -> &'a str {
        &self.cluster.metadata.name
    }

    /// True when the workload is there already, even without replicas.
    pub fn is_used(&self) -> bool {
        self.score == LOCALITY
    }

    /// Replicas it can have in all.
    pub fn available(&self) -> i64 {
        self.allocatable + i64::from(self.previous)
    }
}

/// The candidates in order: lower tier, higher score, more room, name.
pub(super) fn rank<'a>(spec: &BindingSpec, feasible: Vec<(&'a Cluster, Tier)>) -> Vec<Candidate<'a>> {
    let previous: BTreeMap<&str, i32> =
        spec.clusters.iter().map(|target| (target.name.as_str(), target.replicas.max(0))).collect();
    let need = Need::of(spec);
    let candidate = |(cluster, tier): (&'a Cluster, Tier)| {
        let here = previous.get(cluster.metadata.name.as_str());
        Candidate {
            cluster,
            tier,
            score: if here.is_some() { LOCALITY } else { 0 },
            previous: here.copied().unwrap_or(0),
            allocatable: need.allocatable(cluster),
        }
    };
    let mut candidates: Vec<Candidate> = feasible.into_iter().map(candidate).collect();
    candidates.sort_by_key(|c| (c.tier, Reverse(c.score), Reverse(c.available()), c.name()));
    candidates
}
