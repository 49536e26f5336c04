//! StatefulSets: pods with ordinals, created in order and replaced in reverse order, each with its claims. There are no
//! ControllerRevisions here: a recreated pod always follows the newest template.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{BURST_MAX, Round, as_count, count, is_deleting, owner_reference, uid};
use crate::cache::Cache;
use crate::facts::{Facts, Phase, Pod};
use crate::hash;
use crate::key::{Key, Kind};
use crate::plan::{Plan, Write, status};

/// Which template a pod was made from.
const REVISION: &str = "controller-revision-hash";

/// A StatefulSet with its pods by number.
struct Ordered<'a> {
    cache: &'a Cache,
    key: &'a Key,
    object: &'a Value,
    /// The name of the newest template.
    revision: String,
    first: i64,
    wanted: i64,
    pods: BTreeMap<i64, (&'a Key, &'a Facts, &'a Pod)>,
}

/// What is to be done about a StatefulSet.
pub fn reconcile(round: &mut Round<'_>, key: &Key, object: &Value) -> Plan {
    if is_deleting(object) {
        return Plan::nothing();
    }
    let ordered = Ordered::read(round.cache, key, object);
    let (writes, report) = (ordered.steps(), ordered.status());
    if writes.is_empty() {
        return status(key, object, report).map_or_else(Plan::nothing, Plan::one);
    }
    let placed = writes.into_iter().map(|write| match write {
        Write::Create { kind: Kind::Pod, object } => {
            Write::Create { kind: Kind::Pod, object: super::pod::placed(round.cache, object) }
        }
        other => other,
    });
    placed.collect::<Vec<_>>().into()
}

impl<'a> Ordered<'a> {
    fn read(cache: &'a Cache, key: &'a Key, object: &'a Value) -> Ordered<'a> {
        let spec = &object["spec"];
        let numbered = |(pod, facts): (&'a Key, &'a Facts)| {
            let number = pod.name().strip_prefix(key.name())?.strip_prefix('-')?.parse().ok()?;
            Some((number, (pod, facts, facts.pod()?)))
        };
        Ordered {
            cache,
            key,
            object,
            revision: format!("{}-{}", key.name(), hash::template(&spec["template"])),
            first: count(&spec["ordinals"]["start"], 0),
            wanted: count(&spec["replicas"], 1),
            pods: cache.children(uid(object), Kind::Pod).filter_map(numbered).collect(),
        }
    }

    fn numbers(&self) -> std::ops::Range<i64> {
        self.first..self.first.saturating_add(self.wanted)
    }

    fn is_parallel(&self) -> bool {
        self.object["spec"]["podManagementPolicy"] == "Parallel"
    }

    fn is_outdated(&self, pod: &Pod) -> bool {
        pod.template.as_deref() != Some(self.revision.as_str())
    }

    /// The next changes: missing pods in order, then the end of superfluous and outdated ones, last first.
    fn steps(&self) -> Vec<Write> {
        let mut writes = Vec::new();
        let mut all_ready = true;
        for number in self.numbers() {
            let before = writes.len();
            all_ready &= self.step(number, &mut writes);
            if writes.len() >= BURST_MAX || (!self.is_parallel() && (!all_ready || writes.len() > before)) {
                break;
            }
        }
        if writes.is_empty() {
            writes.extend(self.shrink());
        }
        if writes.is_empty() {
            writes.extend(self.renew(all_ready));
        }
        writes
    }

    /// What one number needs; whether its pod is ready.
    fn step(&self, number: i64, writes: &mut Vec<Write>) -> bool {
        match self.pods.get(&number) {
            None => {
                writes.extend(self.claims(number));
                writes.push(Write::Create { kind: Kind::Pod, object: self.pod(number) });
                false
            }
            Some((_, facts, _)) if facts.deleting => false,
            Some((key, facts, pod)) if !pod.is_active() => {
                writes.push(delete(key, facts));
                false
            }
            Some((_, _, pod)) => pod.phase == Phase::Ready,
        }
    }

    fn shrink(&self) -> Option<Write> {
        let numbers = self.numbers();
        let surplus = self.pods.iter().rev().find(|(number, _)| !numbers.contains(number));
        surplus.filter(|(_, (_, facts, _))| !facts.deleting).map(|(_, (key, facts, _))| delete(key, facts))
    }

    /// The last pod with an older template goes, when all are ready or it is not: what never becomes ready
    /// must not keep its repair away.
    fn renew(&self, all_ready: bool) -> Option<Write> {
        let strategy = &self.object["spec"]["updateStrategy"];
        if strategy["type"] == "OnDelete" {
            return None;
        }
        let partition = count(&strategy["rollingUpdate"]["partition"], 0);
        let outdated = self.pods.iter().rev().find(|(number, (_, facts, pod))| {
            **number >= partition && !facts.deleting && self.is_outdated(pod)
        });
        let (_, (key, facts, pod)) = outdated?;
        (all_ready || pod.phase != Phase::Ready).then(|| delete(key, facts))
    }

    fn claim_templates(&self) -> impl Iterator<Item = (&'a Value, &'a str)> {
        let templates = self.object["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
        templates.filter_map(|template| Some((template, template["metadata"]["name"].as_str()?)))
    }

    /// The claims of a number that are not there. They outlive their pods.
    fn claims(&self, number: i64) -> Vec<Write> {
        let namespace = self.key.namespace();
        let missing = self.claim_templates().filter_map(|(template, volume)| {
            let name = format!("{volume}-{}-{number}", self.key.name());
            if self.cache.facts(&Key::new(Kind::Claim, namespace, &name)).is_some() {
                return None;
            }
            let mut claim = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": template["metadata"], "spec": template["spec"],
            });
            claim["metadata"]["name"] = name.into();
            claim["metadata"]["namespace"] = namespace.into();
            let labels = self.object["spec"]["selector"]["matchLabels"].as_object();
            for (key, value) in labels.into_iter().flatten() {
                claim["metadata"]["labels"][key] = value.clone();
            }
            Some(Write::Create { kind: Kind::Claim, object: claim })
        });
        missing.collect()
    }

    fn pod(&self, number: i64) -> Value {
        let name = format!("{}-{number}", self.key.name());
        let index = number.to_string();
        let labels = [
            (REVISION, self.revision.as_str()),
            ("statefulset.kubernetes.io/pod-name", name.as_str()),
            ("apps.kubernetes.io/pod-index", index.as_str()),
        ];
        let mut pod = super::pod(self.object, &name, &labels);
        pod["metadata"]["ownerReferences"] = json!([owner_reference(self.object)]);
        pod["spec"]["hostname"] = name.as_str().into();
        if let Some(service) = self.object["spec"]["serviceName"].as_str().filter(|name| !name.is_empty()) {
            pod["spec"]["subdomain"] = service.into();
        }
        let own: Vec<Value> = self
            .claim_templates()
            .map(|(_, volume)| {
                let claim = format!("{volume}-{}-{number}", self.key.name());
                json!({ "name": volume, "persistentVolumeClaim": { "claimName": claim } })
            })
            .collect();
        if !own.is_empty() {
            let given = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
            let others =
                given.into_iter().filter(|volume| own.iter().all(|one| one["name"] != volume["name"]));
            pod["spec"]["volumes"] = own.iter().cloned().chain(others).collect();
        }
        pod
    }

    fn status(&self) -> Value {
        let living = || self.pods.values().filter(|(_, facts, _)| !facts.deleting).map(|(_, _, pod)| *pod);
        let replicas = as_count(living().count());
        let ready = as_count(living().filter(|pod| pod.phase == Phase::Ready).count());
        let updated = as_count(living().filter(|pod| !self.is_outdated(pod)).count());
        let old = &self.object["status"];
        let done = updated == replicas && replicas == self.wanted;
        let current = match old["currentRevision"].as_str() {
            Some(current) if !done => current,
            _ => &self.revision,
        };
        let on_current = living().filter(|pod| pod.template.as_deref() == Some(current)).count();
        json!({
            "observedGeneration": self.object["metadata"]["generation"],
            "replicas": replicas,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "currentReplicas": as_count(on_current),
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": self.revision,
            "collisionCount": 0,
        })
    }
}

fn delete(key: &Key, facts: &Facts) -> Write {
    Write::Delete { key: key.clone(), uid: facts.uid.to_string() }
}
