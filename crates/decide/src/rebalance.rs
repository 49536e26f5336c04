//! WorkloadRebalancer: which bindings it reschedules, what its status says, and when its TTL ends. Decides nothing
//! about placements.

use std::collections::BTreeMap;

use api::rebalancer::{
    FAILED, ObservedWorkload, REFERENCED_BINDING_NOT_FOUND, SUCCESSFUL, WorkloadReference,
};
use api::{Binding, Time, WorkloadRebalancer, WorkloadRebalancerStatus};
use jiff::{SignedDuration, Timestamp};

use crate::template::{BindingKey, TemplateKey};

/// What a rebalancer leads to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rebalance {
    /// Bindings that are asked for a fresh placement, and as of when.
    pub asked: BTreeMap<BindingKey, Time>,
    /// Its status, once all of them are asked.
    pub status: WorkloadRebalancerStatus,
    /// When it may be deleted; none for never.
    pub goes_at: Option<Time>,
}

/// The decision about a rebalancer; `binding` finds the existing bindings.
///
/// A rebalancer acts once: a finished workload is not processed again, until the list changes.
pub fn rebalance<'b>(
    rebalancer: &WorkloadRebalancer,
    binding: impl Fn(&BindingKey) -> Option<&'b Binding>,
    now: Timestamp,
) -> Rebalance {
    let (metadata, spec, status) = (&rebalancer.metadata, &rebalancer.spec, &rebalancer.status);
    if metadata.deletion_timestamp.is_some() {
        return Rebalance { status: status.clone(), ..Rebalance::default() };
    }
    let finished = status.finish_time.filter(|_| status.observed_generation == metadata.generation);
    if let Some(finished) = finished {
        let goes_at = spec.ttl_seconds_after_finished.map(|seconds| later(finished, seconds));
        return Rebalance { asked: BTreeMap::new(), status: status.clone(), goes_at };
    }
    let mut asked = BTreeMap::new();
    let mut workloads = spec.workloads.clone();
    workloads.sort();
    workloads.dedup();
    let created = metadata.creation_timestamp.unwrap_or_else(|| now.into());
    let mut observed = Vec::new();
    for workload in workloads {
        let key = binding_of(&workload);
        let found = binding(&key);
        if let Some(found) = found
            && found.spec.reschedule_triggered_at.is_none_or(|at| at < created)
        {
            asked.insert(key, unanswered(created, found));
        }
        let (result, reason) = match found {
            Some(_) => (SUCCESSFUL, ""),
            None => (FAILED, REFERENCED_BINDING_NOT_FOUND),
        };
        observed.push(ObservedWorkload { workload, result: result.to_owned(), reason: reason.to_owned() });
    }
    let status = WorkloadRebalancerStatus {
        observed_workloads: observed,
        observed_generation: metadata.generation,
        finish_time: Some(now.into()),
    };
    Rebalance {
        asked,
        status,
        goes_at: spec.ttl_seconds_after_finished.map(|seconds| later(now.into(), seconds)),
    }
}

/// The trigger time of a binding: when the rebalancer was made, but after the existing placement. A placement counts as
/// the answer to earlier triggers, and the API server's clock may be behind the scheduler's.
fn unanswered(created: Time, binding: &Binding) -> Time {
    let after_the_last = binding.status.last_scheduled_time.map(|last| later(last, 1));
    after_the_last.map_or(created, |after| after.max(created))
}

fn binding_of(workload: &WorkloadReference) -> BindingKey {
    let WorkloadReference { api_version, kind, name, namespace } = workload.clone();
    TemplateKey { api_version, kind, namespace, name }.binding()
}

/// A time so many seconds later; beyond the end of time it stays at its end.
fn later(time: Time, seconds: i32) -> Time {
    let shifted = time.timestamp().checked_add(SignedDuration::from_secs(seconds.max(0).into()));
    shifted.unwrap_or(Timestamp::MAX).into()
}

#[cfg(test)]
mod tests {
    use api::kinds;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn rebalancer() -> WorkloadRebalancer {
        let mut rebalancer = WorkloadRebalancer::new(&kinds::WORKLOAD_REBALANCER, "", "again");
        rebalancer.metadata.creation_timestamp = Some(at(50).into());
        rebalancer.metadata.generation = 1;
        rebalancer.spec.ttl_seconds_after_finished = Some(30);
        rebalancer.spec.workloads = ["web", "api"]
            .map(|name| WorkloadReference {
                api_version: "apps/v1".to_owned(),
                kind: "Deployment".to_owned(),
                name: name.to_owned(),
                namespace: "default".to_owned(),
            })
            .to_vec();
        rebalancer
    }

    #[test]
    fn a_rebalancer_asks_once_says_what_came_of_it_and_goes() {
        let mut rebalancer = rebalancer();
        let web = Binding::new(&kinds::RESOURCE_BINDING, "default", "web-deployment");
        let find = |key: &BindingKey| (key.name == "web-deployment").then_some(&web);
        let answer = rebalance(&rebalancer, find, at(60));
        let key = BindingKey { namespace: "default".to_owned(), name: "web-deployment".to_owned() };
        assert_eq!(answer.asked, BTreeMap::from([(key, at(50).into())]));
        let results = answer
            .status
            .observed_workloads
            .iter()
            .map(|one| (one.workload.name.as_str(), one.reason.as_str()));
        assert_eq!(results.collect::<Vec<_>>(), [("api", REFERENCED_BINDING_NOT_FOUND), ("web", "")]);
        assert_eq!((answer.status.finish_time, answer.goes_at), (Some(at(60).into()), Some(at(90).into())));
        rebalancer.status = answer.status.clone();
        let again = rebalance(&rebalancer, find, at(70));
        assert_eq!((again.asked.len(), &again.status), (0, &answer.status), "it speaks once");
        rebalancer.metadata.generation = 2;
        assert_eq!(rebalance(&rebalancer, find, at(80)).asked.len(), 1, "its list changed");
    }

    #[test]
    fn a_placement_that_is_dated_later_is_no_answer() {
        let mut web = Binding::new(&kinds::RESOURCE_BINDING, "default", "web-deployment");
        let asked = |web: &Binding| {
            rebalance(&rebalancer(), |key| (key.name == "web-deployment").then_some(web), at(60)).asked
        };
        for (last, expected) in [(40, 50), (50, 51), (58, 59)] {
            web.status.last_scheduled_time = Some(at(last).into());
            assert_eq!(asked(&web).into_values().collect::<Vec<_>>(), [at(expected).into()], "{last}");
        }
        web.spec.reschedule_triggered_at = Some(at(59).into());
        web.status.last_scheduled_time = Some(at(60).into());
        assert!(asked(&web).is_empty(), "after a crash it is known that it was asked");
    }

    #[test]
    fn a_newer_wish_stands() {
        let mut web = Binding::new(&kinds::RESOURCE_BINDING, "default", "web-deployment");
        web.spec.reschedule_triggered_at = Some(at(55).into());
        assert!(rebalance(&rebalancer(), |_| Some(&web), at(60)).asked.is_empty());
    }
}
