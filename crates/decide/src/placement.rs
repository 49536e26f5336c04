//! The scheduler's decision: clusters and replicas. Follows Karmada's scheduler (behaviour.md 5) and keeps every
//! reason: what triggered the scheduling, why each cluster was filtered out, and the arithmetic of the division.

mod candidate;
mod division;
mod estimate;
mod failure;
mod filter;
mod groups;
mod outcome;
mod recent;
mod spread;
mod strategy;
mod trigger;
pub(crate) mod webster;

use std::collections::BTreeMap;

use api::placement::ClusterAffinityTerm;
use api::{Binding, Cluster};
use jiff::Timestamp;

pub use division::{Division, Mode, Share};
pub use failure::Failure;
pub use filter::Refusal;
pub use outcome::{Attempt, Placement, Schedule, listed};
pub(crate) use outcome::{is_kept, is_same};
pub use recent::Recent;
pub use strategy::Strategy;
pub(crate) use trigger::is_workload;
pub use trigger::{Skip, Trigger};

/// Decides where the binding's template runs. The order of the clusters does not matter.
pub fn placement(binding: &Binding, clusters: &[Cluster], now: Timestamp) -> Placement {
    if let Some(skip) = trigger::skip(binding) {
        let left = trigger::left(&binding.spec, clusters);
        return match skip == Skip::Unclaimed && !left.is_empty() {
            true => Placement::Left { clusters: left },
            false => Placement::Skipped(skip),
        };
    }
    let Some(placement) = &binding.spec.placement else { return Placement::Skipped(Skip::NoPlacement) };
    let mut sorted: Vec<&Cluster> = clusters.iter().collect();
    sorted.sort_by_key(|cluster| &cluster.metadata.name);
    let Some(trigger) = trigger::trigger(binding, placement, &sorted) else { return Placement::Unchanged };
    let fresh = trigger::asked(binding).is_some();
    let keep = trigger == Trigger::FollowsClusters;
    let round = Round { binding, placement, clusters: &sorted, now, fresh, keep };
    match placement.cluster_affinities.is_empty() {
        true => round.without_groups(trigger),
        false => round.through_groups(trigger),
    }
}

/// One decision: the same binding and clusters for every affinity group that is tried.
struct Round<'a> {
    binding: &'a Binding,
    placement: &'a api::Placement,
    clusters: &'a [&'a Cluster],
    now: Timestamp,
    fresh: bool,
    keep: bool,
}

/// What one affinity group led to.
struct Found {
    division: Division,
    refused: BTreeMap<String, Refusal>,
}

impl Round<'_> {
    fn without_groups(&self, trigger: Trigger) -> Placement {
        match self.attempt(None) {
            Ok(found) => Placement::Scheduled(Schedule::new(trigger, "", found.division, found.refused)),
            Err(failure) => self.failed(trigger, Vec::new(), failure),
        }
    }

    /// Tries the groups from the one in use onwards; never goes back to an earlier one by itself.
    fn through_groups(&self, trigger: Trigger) -> Placement {
        let terms = &self.placement.cluster_affinities;
        let observed = &self.binding.status.scheduler_observed_affinity_name;
        let start = terms.iter().position(|term| term.affinity_name == *observed).unwrap_or(0);
        let mut failed: Vec<Attempt> = Vec::new();
        for term in &terms[start..] {
            match self.attempt(Some(term)) {
                Ok(found) => {
                    let schedule = Schedule::new(trigger, &term.affinity_name, found.division, found.refused);
                    return Placement::Scheduled(schedule.after(failed));
                }
                Err(failure) => failed.push(Attempt { affinity_name: term.affinity_name.clone(), failure }),
            }
        }
        // The group that was in use, or the first one, decides what becomes of the previous result.
        let first = failed.first().map(|attempt| attempt.failure.clone());
        let failure = first.expect("a placement with groups has tried at least one");
        self.failed(trigger, failed, failure)
    }

    /// The earlier placement after a failure: removed where the user asked for that, kept otherwise (C3, M2).
    fn failed(&self, trigger: Trigger, tried: Vec<Attempt>, failure: Failure) -> Placement {
        let binding = self.binding;
        let rules = binding.spec.failover.as_ref().and_then(|failover| failover.cluster.as_ref());
        let gives_up = rules.is_some_and(api::failover::ClusterFailover::gives_up_last_copy);
        let selects_none = failure.selects_none() && tried.iter().all(|one| one.failure.selects_none());
        // What stayed because nothing fitted is not let go because what was selected then is gone now.
        let edited = trigger == Trigger::PlacementChanged && !outcome::is_kept(binding);
        let has_none = binding.spec.clusters.is_empty() && binding.spec.graceful_eviction_tasks.is_empty();
        if failure.is_no_fit() && (gives_up || has_none || (edited && selects_none)) {
            return Placement::Nowhere { trigger, tried, failure };
        }
        let gone = if failure.is_no_fit() { self.gone() } else { Vec::new() };
        Placement::Kept { trigger, tried, failure, gone }
    }

    /// The clusters it is in that are not there to stay.
    fn gone(&self) -> Vec<String> {
        let stays = |name: &str| {
            let mut of_name = self.clusters.iter().filter(|cluster| cluster.metadata.name == name);
            of_name.any(|cluster| cluster.metadata.deletion_timestamp.is_none())
        };
        let names = self.binding.spec.clusters.iter().map(|target| &target.name);
        names.filter(|name| !stays(name)).cloned().collect()
    }

    fn attempt(&self, term: Option<&ClusterAffinityTerm>) -> Result<Found, Failure> {
        let spec = &self.binding.spec;
        let (mut feasible, mut refused) = (Vec::new(), BTreeMap::new());
        for cluster in self.clusters {
            match filter::filter(spec, self.placement, term, cluster, self.now) {
                Ok(tier) => feasible.push((*cluster, tier)),
                Err(refusal) => drop(refused.insert(cluster.metadata.name.clone(), refusal)),
            }
        }
        if feasible.is_empty() {
            return Err(Failure::NoClusterFit { clusters: self.clusters.len(), refused });
        }
        let candidates = candidate::rank(spec, feasible);
        let chosen = spread::select(self.placement, candidates, spec.replicas, self.keep)?;
        let division = division::division(spec, self.placement, &chosen, self.fresh)?;
        Ok(Found { division, refused })
    }
}

#[cfg(test)]
mod tests;
