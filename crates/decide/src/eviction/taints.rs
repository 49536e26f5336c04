//! The desired taints of a cluster: those that follow from its health, and those that policies tie to its conditions.
//! Health alone never sets a NoExecute taint (C8).

use api::cluster::READY;
use api::selector::Operator;
use api::taint::{NO_EXECUTE, NO_SCHEDULE};
use api::taint_policy::MatchCondition;
use api::{Cluster, ClusterTaintPolicy, ConditionStatus, Taint};
use jiff::Timestamp;

use crate::affinity::cluster_matches;
use crate::conditions;

const NOT_READY: &str = "cluster.karmada.io/not-ready";
const UNREACHABLE: &str = "cluster.karmada.io/unreachable";

/// The taints a cluster should have now; users' own taints stay.
pub fn taints(cluster: &Cluster, policies: &[ClusterTaintPolicy], now: Timestamp) -> Vec<Taint> {
    let mut taints = cluster.spec.taints.clone();
    match conditions::status(&cluster.status.conditions, READY) {
        None => add(&mut taints, NOT_READY, "", NO_SCHEDULE, now),
        Some(ConditionStatus::False) => {
            add(&mut taints, NOT_READY, "", NO_SCHEDULE, now);
            remove(&mut taints, UNREACHABLE, NO_SCHEDULE);
        }
        Some(ConditionStatus::Unknown) => {
            add(&mut taints, UNREACHABLE, "", NO_SCHEDULE, now);
            remove(&mut taints, NOT_READY, NO_SCHEDULE);
        }
        Some(ConditionStatus::True) => {
            remove(&mut taints, NOT_READY, NO_SCHEDULE);
            remove(&mut taints, UNREACHABLE, NO_SCHEDULE);
        }
    }
    let mut ordered: Vec<&ClusterTaintPolicy> = policies.iter().collect();
    ordered.sort_by_key(|policy| (policy.metadata.creation_timestamp, &policy.metadata.name));
    ordered.into_iter().for_each(|policy| follow(cluster, policy, &mut taints, now));
    taints
}

fn follow(cluster: &Cluster, policy: &ClusterTaintPolicy, taints: &mut Vec<Taint>, now: Timestamp) {
    let spec = &policy.spec;
    if !spec.target_clusters.as_ref().is_none_or(|affinity| cluster_matches(affinity, cluster)) {
        return;
    }
    if all_hold(cluster, &spec.add_on_conditions) {
        spec.taints.iter().for_each(|taint| add(taints, &taint.key, &taint.value, &taint.effect, now));
    }
    if all_hold(cluster, &spec.remove_on_conditions) {
        spec.taints.iter().for_each(|taint| remove(taints, &taint.key, &taint.effect));
    }
}

/// No conditions at all means never; a condition the cluster does not have matches nothing.
fn all_hold(cluster: &Cluster, wanted: &[MatchCondition]) -> bool {
    let holds = |wanted: &MatchCondition| {
        let Some(status) = conditions::status(&cluster.status.conditions, &wanted.condition_type) else {
            return false;
        };
        let listed = wanted.status_values.iter().any(|value| value == status.as_str());
        match wanted.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            _ => false,
        }
    };
    !wanted.is_empty() && wanted.iter().all(holds)
}

/// A taint that is there stays as it is, with its value and its time.
fn add(taints: &mut Vec<Taint>, key: &str, value: &str, effect: &str, now: Timestamp) {
    if taints.iter().any(|taint| taint.key == key && taint.effect == effect) {
        return;
    }
    let time_added = (effect == NO_EXECUTE).then(|| now.into());
    taints.push(Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect.to_owned(),
        time_added,
    });
}

fn remove(taints: &mut Vec<Taint>, key: &str, effect: &str) {
    taints.retain(|taint| taint.key != key || taint.effect != effect);
}
