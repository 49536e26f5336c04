//! ReplicaSets: create and delete pods to match `replicas`, and count them in the status.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::{BURST_MAX, Round, as_count, counters, free_names, pod};
use crate::cache::Cache;
use crate::facts::{Counted, Phase};
use crate::key::{Key, Kind};
use crate::plan::{Part, Plan, Write, pin_at};

/// What can be said without the object itself; `None` when pods are to be made from its template.
pub fn reconcile_from_facts(cache: &Cache, key: &Key) -> Option<Plan> {
    let Some(facts) = cache.facts(key).filter(|facts| !facts.deleting) else { return Some(Plan::nothing()) };
    let set = facts.replica_set()?;
    let mut pods = cache.pods(&facts.uid);
    pods.retain(|(_, pod)| pod.is_active());
    let surplus = as_count(pods.len()) - set.wanted;
    if surplus < 0 {
        return None;
    }
    if surplus > 0 {
        // Those that serve stay longest.
        pods.sort_by_key(|(key, pod)| (pod.phase == Phase::Ready, pod.node.is_empty(), Reverse(*key)));
        let victims = pods.iter().take(usize::try_from(surplus).unwrap_or(0).min(BURST_MAX));
        let uid = |key: &Key| cache.facts(key).map(|facts| facts.uid.to_string()).unwrap_or_default();
        let delete = |(key, _): &(&Key, _)| Write::Delete { key: (*key).clone(), uid: uid(key) };
        return Some(victims.map(delete).collect::<Vec<_>>().into());
    }
    Some(count(cache, key).map_or_else(Plan::nothing, Plan::one))
}

/// The write of the status, if it does not count the pods that are there.
fn count(cache: &Cache, key: &Key) -> Option<Write> {
    let facts = cache.facts(key)?;
    let set = facts.replica_set()?;
    let pods = cache.pods(&facts.uid);
    let active = pods.iter().filter(|(_, pod)| pod.is_active()).count();
    let ready = as_count(pods.iter().filter(|(_, pod)| pod.phase == Phase::Ready).count());
    let counted = Counted {
        observed_generation: set.generation,
        replicas: as_count(active),
        fully_labeled_replicas: as_count(active),
        ready_replicas: ready,
        available_replicas: ready,
    };
    let patch = json!([
        pin_at(&facts.revision.to_string()),
        { "op": "add", "path": "/status", "value": status(&counted) },
    ]);
    let write = Write::Patch { key: key.clone(), part: Part::Status, patch, last: true };
    (counted != set.counted).then_some(write)
}

fn status(counted: &Counted) -> Value {
    let mut status = counters(&[
        ("fullyLabeledReplicas", counted.fully_labeled_replicas),
        ("readyReplicas", counted.ready_replicas),
        ("availableReplicas", counted.available_replicas),
    ]);
    status["replicas"] = counted.replicas.into();
    status["observedGeneration"] = counted.observed_generation.into();
    status
}

/// Makes the pods that are missing, on nodes that have room. Those that are there are counted when all are, or when the
/// last attempt was refused, by a quota for example: it may take long until there are more.
pub fn reconcile(round: &mut Round<'_>, key: &Key, object: &Value, was_refused: bool) -> Plan {
    let Some(facts) = round.cache.facts(key) else { return Plan::nothing() };
    let Some(set) = facts.replica_set() else { return Plan::nothing() };
    let active = round.cache.pods(&facts.uid).iter().filter(|(_, pod)| pod.is_active()).count();
    let missing = usize::try_from(set.wanted).unwrap_or(0).saturating_sub(active).min(BURST_MAX);
    let names: Vec<String> = free_names(round.cache, object, "").take(missing).collect();
    let pods = names.iter().map(|name| pod(object, name, &[]));
    let create = |object| Write::Create { kind: Kind::Pod, object: super::pod::placed(round.cache, object) };
    let mut writes: Vec<Write> = pods.map(create).collect();
    writes.extend(count(round.cache, key).filter(|_| was_refused));
    writes.into()
}
