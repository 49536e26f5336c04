//! The observed state of every template: its owner by labels and annotations, whether it is pending by the pin on
//! its binding, and its copies by their Works. Asks `decide` nothing.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::is_bookkeeping;
use api::placement::ReplicaSchedulingType;
use api::records::{ClaimRecord, Pin};
use api::{Binding, Work, annotations};
use controllers::cache::WorkKey;
use decide::plan::{Action, ClaimChange, ClusterPlan};
use decide::{PolicyKey, Snapshot, Template, TemplateKey};
use serde_json::Value;

use super::Statements;

/// What is said of a template whose policy has not acted on it.
pub const WAITS: &str = "waits";

/// Every template, by its name.
#[derive(Default)]
pub struct Observed {
    templates: BTreeMap<String, Seen>,
}

/// What can be seen of one template.
#[derive(Default)]
struct Seen {
    owner: Option<PolicyKey>,
    /// The policy from which its owner took it by preemption.
    taken_from: String,
    /// What it waits for.
    waits: Option<Awaited>,
    copies: BTreeMap<String, Copy>,
    /// Clusters that keep what they have until it is their stage.
    waiting: BTreeSet<String>,
}

/// A policy that has not acted on a template: its uid, its generation, and what it misses itself.
type Awaited = (String, i64, Vec<String>);

/// What one cluster is to have.
struct Copy {
    replicas: i32,
    content: Value,
    suspended: bool,
}

impl Observed {
    /// What can be seen in these objects.
    pub fn of(snapshot: &Snapshot, works: &BTreeMap<WorkKey, Work>) -> Self {
        let mut observed = Self::default();
        for template in snapshot.templates.iter() {
            let owner = owner(template);
            let record = template.claim_record();
            let seen = Seen {
                waits: owner.as_ref().and_then(|owner| waits(snapshot, template, owner)),
                taken_from: record.map(|ClaimRecord { taken_from, .. }| taken_from).unwrap_or_default(),
                owner,
                ..Seen::default()
            };
            observed.templates.insert(id(&template.key), seen);
        }
        for (key, work) in works.iter().filter(|(_, work)| work.metadata.deletion_timestamp.is_none()) {
            for manifest in &work.spec.workload.manifests {
                let template = identity(manifest);
                let seen = observed.templates.entry(id(&template)).or_default();
                seen.copies
                    .insert(key.cluster.clone(), copy(snapshot, &template, &key.cluster, work, manifest));
            }
        }
        for binding in snapshot.bindings.values() {
            if let Some(seen) = observed.templates.get_mut(&id(&TemplateKey::of(binding))) {
                leave(binding, &mut seen.copies);
                seen.waiting = waiting(binding);
            }
        }
        observed
    }

    /// Clusters in which a template keeps what it has until it is their stage.
    pub fn waiting(&self, template: &str) -> BTreeSet<String> {
        self.templates.get(template).map(|seen| seen.waiting.clone()).unwrap_or_default()
    }
}

fn waiting(binding: &Binding) -> BTreeSet<String> {
    let rollout = binding.spec.suspension.as_ref().and_then(|suspension| suspension.rollout.as_ref());
    rollout.iter().flat_map(|rollout| &rollout.suspended_clusters).cloned().collect()
}

/// A copy that is removed as soon as its successor is healthy counts as gone, unless it is suspended. So does a copy
/// that stays until its successor is applied (M1): that it goes is decided.
fn leave(binding: &Binding, copies: &mut BTreeMap<String, Copy>) {
    let spec = &binding.spec;
    let needed = spec.required_by.iter().flat_map(|by| &by.clusters);
    let evicted = spec.graceful_eviction_tasks.iter().map(|task| &task.from_cluster);
    let named: BTreeSet<&String> =
        spec.clusters.iter().chain(needed).map(|target| &target.name).chain(evicted).collect();
    // A namespace is in clusters that no binding names.
    if spec.resource.kind != "Namespace" {
        copies.retain(|cluster, _| named.contains(cluster));
    }
    let held = copies.values().any(|copy| copy.suspended);
    for task in &binding.spec.graceful_eviction_tasks {
        if task.suppress_deletion == Some(false) || (task.suppress_deletion.is_none() && !held) {
            copies.remove(&task.from_cluster);
        }
    }
}

/// Everything that happened between two looks.
pub fn happened(before: &Observed, after: &Observed) -> Statements {
    let names: BTreeSet<&String> = before.templates.keys().chain(after.templates.keys()).collect();
    let none = Seen::default();
    let mut statements = Statements::new();
    for name in names {
        let was = before.templates.get(name).unwrap_or(&none);
        let is = after.templates.get(name).unwrap_or(&none);
        let claim = claim(was, is).map(|claim| claim.to_string());
        let copies = copies(was, is);
        let news = claim.is_some() || !copies.is_empty() || (is.waits.is_some() && is.waits != was.waits);
        let waits = (is.waits.is_some() && news).then(|| WAITS.to_owned());
        let all: BTreeSet<String> = claim.into_iter().chain(copies).chain(waits).collect();
        if !all.is_empty() {
            statements.insert(name.clone(), all);
        }
    }
    statements
}

fn claim(was: &Seen, is: &Seen) -> Option<ClaimChange> {
    match (was.owner.clone(), is.owner.clone()) {
        (was, is) if was == is => None,
        (None, None) => None,
        (None, Some(by)) => Some(ClaimChange::Claimed { by }),
        (Some(from), None) => Some(ClaimChange::Released { from }),
        (Some(from), Some(to)) => match is.taken_from.is_empty() {
            true => Some(ClaimChange::Handed { from, to }),
            false => Some(ClaimChange::Preempted { from, by: to }),
        },
    }
}

fn copies(was: &Seen, is: &Seen) -> Vec<String> {
    let clusters: BTreeSet<&String> = was.copies.keys().chain(is.copies.keys()).collect();
    let mut said = Vec::new();
    for cluster in clusters {
        let action = match (was.copies.get(cluster), is.copies.get(cluster)) {
            (None, Some(is)) => Action::Create { replicas: is.replicas },
            (Some(was), None) => Action::Delete { replicas: was.replicas },
            (Some(was), Some(is)) if was.replicas != is.replicas => {
                Action::Scale { from: was.replicas, to: is.replicas }
            }
            (Some(was), Some(is)) if was.content != is.content => Action::Update,
            (Some(was), Some(is)) if !was.suspended && is.suspended => Action::Suspend,
            (Some(was), Some(is)) if was.suspended && !is.suspended => Action::Resume,
            _ => continue,
        };
        let suspended = is.copies.get(cluster).is_some_and(|copy| copy.suspended);
        said.push(format!("{cluster}: {}", ClusterPlan::of(action, suspended)));
    }
    said
}

fn owner(template: &Template) -> Option<PolicyKey> {
    let mark = |key: &str| template.annotations.get(key).cloned().unwrap_or_default();
    let cluster_scoped = mark(annotations::CLUSTER_PROPAGATION_POLICY_NAME);
    let (namespace, name) = match cluster_scoped.as_str() {
        "" => (mark(annotations::PROPAGATION_POLICY_NAMESPACE), mark(annotations::PROPAGATION_POLICY_NAME)),
        _ => (String::new(), cluster_scoped),
    };
    (!name.is_empty()).then_some(PolicyKey { namespace, name })
}

/// Its binding was made from something else than its owner as it is now, or not at all.
fn waits(snapshot: &Snapshot, template: &Template, owner: &PolicyKey) -> Option<Awaited> {
    let policy = snapshot.policies.get(owner)?;
    let binding = snapshot.bindings.get(&template.key.binding());
    let pin = binding.and_then(|binding| Pin::read(&binding.metadata)).unwrap_or_default();
    // The name of its binding may be taken.
    let taken = binding.is_some_and(|binding| TemplateKey::of(binding) != *template.key);
    if taken || (pin.policy.uid == policy.uid && pin.policy.generation == policy.generation) {
        return None;
    }
    let there = |name: &&String| {
        snapshot.overrides.keys().any(|key| key.namespace == owner.namespace && key.name == **name)
    };
    let missing = policy.spec.dependent_overrides.iter().filter(|name| !there(name)).cloned().collect();
    Some((policy.uid.clone(), policy.generation, missing))
}

fn copy(snapshot: &Snapshot, template: &TemplateKey, cluster: &str, work: &Work, manifest: &Value) -> Copy {
    let mut content = manifest.clone();
    let mut replicas = None;
    for field in ["replicas", "parallelism"] {
        let spec = content.get_mut("spec").and_then(Value::as_object_mut);
        replicas = replicas.or(spec.and_then(|spec| spec.remove(field)).as_ref().and_then(Value::as_i64));
    }
    for field in ["/metadata/labels", "/metadata/annotations"] {
        let marks = content.pointer_mut(field).and_then(Value::as_object_mut);
        marks.into_iter().for_each(|marks| marks.retain(|key, _| !is_bookkeeping(key)));
    }
    let replicas = replicas.and_then(|replicas| i32::try_from(replicas).ok());
    let replicas = replicas
        .map(|replicas| decided(snapshot, template, cluster).map_or(replicas, |few| replicas.min(few)));
    Copy {
        replicas: replicas.unwrap_or_else(|| scheduled(snapshot, template, cluster)),
        content,
        suspended: work.spec.suspend_dispatching == Some(true),
    }
}

/// The share that a cluster is to have; until it is applied elsewhere the cluster may keep more (M1). Override policies
/// may change it, and then only the Work shows the result.
fn decided(snapshot: &Snapshot, template: &TemplateKey, cluster: &str) -> Option<i32> {
    let binding = snapshot.bindings.get(&template.binding()).filter(|_| snapshot.overrides.is_empty())?;
    let rules = binding.spec.placement.as_ref()?.replica_scheduling.as_ref()?;
    let divided = rules.replica_scheduling_type != Some(ReplicaSchedulingType::Duplicated);
    let target = binding.spec.clusters.iter().find(|target| target.name == cluster)?;
    divided.then_some(target.replicas)
}

/// What the binding says, for kinds that do not say themselves.
fn scheduled(snapshot: &Snapshot, template: &TemplateKey, cluster: &str) -> i32 {
    let binding = snapshot.bindings.get(&template.binding());
    let targets = binding.into_iter().flat_map(|binding| &binding.spec.clusters);
    targets.filter(|target| target.name == cluster).map(|target| target.replicas).next().unwrap_or_default()
}

fn identity(manifest: &Value) -> TemplateKey {
    let text =
        |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    TemplateKey {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    }
}

/// As plans call it.
fn id(key: &TemplateKey) -> String {
    format!("{}/{} {}/{}", key.api_version, key.kind, key.namespace, key.name)
}

#[cfg(test)]
mod tests;
