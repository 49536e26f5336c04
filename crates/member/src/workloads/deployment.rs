//! Deployments: one ReplicaSet per template, all replicas in the newest, and older ones kept at zero.
//!
//! A rollout is one step: the new ReplicaSet gets all replicas at once, and the old ones keep serving as
//! many as must be available until the new ones are.

use serde_json::{Value, json};

use super::{Round, is_deleting, owner_reference, share, uid};
use crate::cache::Cache;
use crate::facts;
use crate::hash;
use crate::key::{Key, Kind};
use crate::plan::{Part, Plan, Write, annotate, pin_at};

mod status;

/// Where the number of a rollout is written.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// Distinguishes the pods of one template from those of another.
const TEMPLATE_HASH: &str = "pod-template-hash";
const HISTORY_LIMIT: i64 = 10;

/// A Deployment with its ReplicaSets.
struct Rollout<'a> {
    key: &'a Key,
    object: &'a Value,
    /// The hash of its template.
    hash: String,
    /// How many replicas it wants.
    wanted: i64,
    /// How many of them may be missing.
    unavailable_max: i64,
    /// Its ReplicaSets, the newest rollout last.
    sets: Vec<Set<'a>>,
}

#[derive(Clone, Copy)]
struct Set<'a> {
    key: &'a Key,
    uid: &'a str,
    revision: u64,
    facts: facts::ReplicaSet,
    has_pods: bool,
}

/// What is to be done about a Deployment.
pub fn reconcile(round: &Round<'_>, key: &Key, object: &Value) -> Plan {
    if is_deleting(object) {
        return Plan::nothing();
    }
    let rollout = Rollout::read(round.cache, key, object);
    let steps = rollout.steps();
    if !steps.is_empty() {
        return steps.into();
    }
    let obsolete = rollout.obsolete();
    match obsolete.is_empty() {
        true => rollout.report(round),
        false => obsolete.into(),
    }
}

impl<'a> Rollout<'a> {
    fn read(cache: &'a Cache, key: &'a Key, object: &'a Value) -> Rollout<'a> {
        let spec = &object["spec"];
        let wanted = spec["replicas"].as_i64().unwrap_or(1);
        let read = |(key, facts): (&'a Key, &'a facts::Facts)| {
            let has_pods = !cache.pods(&facts.uid).is_empty();
            let (uid, revision) = (&*facts.uid, facts.revision);
            Some(Set { key, uid, revision, facts: *facts.replica_set()?, has_pods })
        };
        let living = cache.children(uid(object), Kind::ReplicaSet).filter(|(_, facts)| !facts.deleting);
        let mut sets: Vec<Set<'a>> = living.filter_map(read).collect();
        sets.sort_by_key(|set| (set.facts.rollout, set.key));
        let rolling = &spec["strategy"]["rollingUpdate"];
        let surge = share(&rolling["maxSurge"], wanted, true).unwrap_or(0);
        let unavailable = share(&rolling["maxUnavailable"], wanted, false).unwrap_or(0);
        // Both zero would allow no step at all.
        let unavailable_max = if surge == 0 && unavailable == 0 { 1 } else { unavailable.min(wanted) };
        Rollout { key, object, hash: hash::template(&spec["template"]), wanted, unavailable_max, sets }
    }

    fn new_name(&self) -> String {
        format!("{}-{}", self.key.name(), self.hash)
    }

    fn new_set(&self) -> Option<&Set<'a>> {
        let name = self.new_name();
        self.sets.iter().find(|set| set.key.name() == name)
    }

    fn old_sets(&self) -> impl DoubleEndedIterator<Item = &Set<'a>> {
        let name = self.new_name();
        self.sets.iter().filter(move |set| set.key.name() != name)
    }

    fn is_paused(&self) -> bool {
        self.object["spec"]["paused"] == true
    }

    fn recreates(&self) -> bool {
        self.object["spec"]["strategy"]["type"] == "Recreate"
    }

    /// The number of the newest rollout.
    fn last_rollout(&self) -> i64 {
        self.sets.last().map_or(0, |set| set.facts.rollout)
    }

    /// The next changes of ReplicaSets.
    fn steps(&self) -> Vec<Write> {
        if self.recreates()
            && !self.is_paused()
            && self.old_sets().any(|set| set.facts.wanted > 0 || set.has_pods)
        {
            return self.old_sets().filter(|set| set.facts.wanted > 0).map(|set| set.scaled(0)).collect();
        }
        match self.new_set() {
            Some(new) => self.advance(new),
            None if self.is_paused() => self.scale_paused(),
            None => vec![self.begin()],
        }
    }

    /// A rollout begins with its ReplicaSet.
    fn begin(&self) -> Write {
        let template = &self.object["spec"]["template"];
        let mut labels = template["metadata"]["labels"].clone();
        labels[TEMPLATE_HASH] = self.hash.as_str().into();
        let mut selector = self.object["spec"]["selector"].clone();
        selector["matchLabels"][TEMPLATE_HASH] = self.hash.as_str().into();
        let mut template = template.clone();
        template["metadata"]["labels"] = labels.clone();
        let mut spec = json!({ "replicas": self.wanted, "selector": selector, "template": template });
        if let Some(seconds) = self.object["spec"]["minReadySeconds"].as_i64() {
            spec["minReadySeconds"] = seconds.into();
        }
        let metadata = json!({
            "name": self.new_name(),
            "namespace": self.object["metadata"]["namespace"],
            "labels": labels,
            "annotations": { REVISION: (self.last_rollout() + 1).to_string() },
            "ownerReferences": [owner_reference(self.object)],
        });
        let object =
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec });
        Write::Create { kind: Kind::ReplicaSet, object }
    }

    /// The newest template's ReplicaSet takes over from the others.
    fn advance(&self, new: &Set<'_>) -> Vec<Write> {
        let mut writes = Vec::new();
        let is_newest = new.facts.rollout == self.last_rollout();
        if !is_newest {
            // Back to an earlier template: its ReplicaSet is the newest rollout from now on.
            writes.push(new.promoted(self.last_rollout() + 1, self.wanted));
        } else if new.facts.wanted != self.wanted {
            writes.push(new.scaled(self.wanted));
        }
        let counted = &new.facts.counted;
        let is_current = counted.observed_generation == new.facts.generation;
        let available = if is_current { counted.available_replicas.min(self.wanted) } else { 0 };
        let mut serving = (self.wanted - self.unavailable_max - available).max(0);
        for old in self.old_sets().rev().filter(|set| set.facts.wanted > 0) {
            let kept = old.facts.wanted.min(serving);
            serving -= kept;
            if kept != old.facts.wanted {
                writes.push(old.scaled(kept));
            }
        }
        writes
    }

    /// A paused Deployment keeps its templates; only its size follows.
    fn scale_paused(&self) -> Vec<Write> {
        let Some((newest, older)) = self.sets.split_last() else { return Vec::new() };
        let others: i64 = older.iter().map(|set| set.facts.wanted).sum();
        let wanted = (self.wanted - others).max(0);
        match newest.facts.wanted == wanted {
            true => Vec::new(),
            false => vec![newest.scaled(wanted)],
        }
    }

    /// Older ReplicaSets beyond the history limit.
    fn obsolete(&self) -> Vec<Write> {
        let limit = self.object["spec"]["revisionHistoryLimit"].as_i64().unwrap_or(HISTORY_LIMIT);
        let empty =
            |set: &&Set<'_>| set.facts.wanted == 0 && !set.has_pods && set.facts.counted.replicas == 0;
        let old: Vec<&Set<'_>> = self.old_sets().filter(empty).collect();
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let delete = |set: &&Set<'_>| Write::Delete { key: set.key.clone(), uid: set.uid.to_owned() };
        old.iter().take(surplus).map(delete).collect()
    }
}

impl Set<'_> {
    fn scaled(&self, replicas: i64) -> Write {
        self.patched(vec![json!({ "op": "add", "path": "/spec/replicas", "value": replicas })])
    }

    fn promoted(&self, rollout: i64, replicas: i64) -> Write {
        // Every ReplicaSet that is known here was made with annotations.
        let annotated = json!({ "annotations": {} });
        self.patched(vec![
            annotate(&annotated, REVISION, &rollout.to_string()),
            json!({ "op": "add", "path": "/spec/replicas", "value": replicas }),
        ])
    }

    fn patched(&self, operations: Vec<Value>) -> Write {
        let pin = std::iter::once(pin_at(&self.revision.to_string()));
        let patch = pin.chain(operations).collect();
        Write::Patch { key: self.key.clone(), part: Part::Whole, patch, last: false }
    }
}
