//! Protects the last copy: a taint, a failing application or a vanished placement evicts only if another cluster fits;
//! otherwise what runs stays where it is (M2), unless its policy gives the last copy up.

use std::collections::BTreeMap;

use api::binding::{LAST_COPY_KEPT, SCHEDULED};
use api::failover::{ApplicationFailover, ClusterFailover};
use api::{Binding, BindingSpec, Cluster, Condition, ConditionStatus};
use jiff::Timestamp;

use super::{Eviction, Evictions, Why};
use crate::conditions;
use crate::placement::{Failure, Placement, Skip, placement};

/// Takes back the evictions that lead nowhere.
pub(super) fn spare(binding: &Binding, clusters: &[Cluster], now: Timestamp, answer: &mut Evictions) {
    let gives_up = |eviction: &Eviction| match eviction.why {
        Why::TaintUntolerated { .. } => cluster_gives_up(&binding.spec),
        Why::ApplicationFailure { .. } => application_gives_up(&binding.spec),
    };
    if answer.evictions.values().all(gives_up) {
        return;
    }
    let mut after = binding.clone();
    answer.write(&mut after);
    if fits(&after, clusters, now) {
        return;
    }
    let (given_up, spared): (BTreeMap<_, _>, BTreeMap<_, _>) =
        std::mem::take(&mut answer.evictions).into_iter().partition(|(_, eviction)| gives_up(eviction));
    answer.evictions = given_up;
    answer.last_copies = spared.into_iter().map(|(cluster, eviction)| (cluster, eviction.why)).collect();
}

/// Whether a binding finds its clusters: a scheduler would choose some, or some are left and none is asked for.
pub(super) fn fits(binding: &Binding, clusters: &[Cluster], now: Timestamp) -> bool {
    match placement(binding, clusters, now) {
        Placement::Scheduled(schedule) => !schedule.clusters.is_empty(),
        // Another scheduler decides where it goes.
        Placement::Skipped(Skip::OtherScheduler { .. }) => true,
        Placement::Skipped(_) | Placement::Left { .. } | Placement::Unchanged => {
            !binding.spec.clusters.is_empty()
        }
        Placement::Nowhere { .. } | Placement::Kept { .. } => false,
    }
}

/// Whether the policy gives up the last copy in a cluster that has to be left.
pub(super) fn cluster_gives_up(spec: &BindingSpec) -> bool {
    let rules = spec.failover.as_ref().and_then(|failover| failover.cluster.as_ref());
    rules.is_some_and(ClusterFailover::gives_up_last_copy)
}

/// Whether the policy gives up the last copy of an application that fails.
pub(super) fn application_gives_up(spec: &BindingSpec) -> bool {
    let rules = spec.failover.as_ref().and_then(|failover| failover.application.as_ref());
    rules.is_some_and(ApplicationFailover::gives_up_last_copy)
}

/// The condition of a binding whose copies stay although they should leave; none if nothing stays against the rules.
pub fn kept(binding: &Binding, evictions: &Evictions) -> Option<Condition> {
    let scheduled = conditions::find(&binding.status.conditions, SCHEDULED);
    let unfit = |scheduled: &&Condition| {
        scheduled.status == ConditionStatus::False && scheduled.reason == Failure::NO_CLUSTER_FIT
    };
    let (reason, why) = match evictions.last_copies.iter().next() {
        Some((cluster, why)) => (why.reason(), format!("It should leave {cluster}, because {why}.")),
        None if binding.spec.clusters.is_empty() => return None,
        None => (Failure::NO_CLUSTER_FIT, scheduled.filter(unfit)?.message.clone()),
    };
    let names = binding.spec.clusters.iter().map(|target| target.name.as_str()).collect::<Vec<_>>();
    let message = format!(
        "{why} No other cluster fits, so the last copies stay in {}. Make another cluster fit, or set \
         spec.failover.cluster.evictLastCopy in the policy to remove them.",
        names.join(", ")
    );
    let condition = conditions::condition(LAST_COPY_KEPT, ConditionStatus::True, reason, &message);
    Some(Condition { observed_generation: binding.metadata.generation, ..condition })
}
