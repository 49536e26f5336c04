//! The cached part of each object: the few fields that a member's controllers need. Everything else is read again when
//! it is needed, so that ten thousand objects cost little memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use apimachinery::quantity::Quantity;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::amounts::{Amounts, Wish};
use crate::key::{Key, Kind};

/// What is remembered of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub uid: Arc<str>,
    /// Its resourceVersion.
    pub revision: u64,
    /// Its deletion has begun.
    pub deleting: bool,
    pub owner: Option<Owner>,
    pub detail: Detail,
}

/// The controller of an object (owner reference).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub key: Key,
    pub uid: Arc<str>,
}

/// What is remembered of some kinds only.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    None,
    Pod(Pod),
    ReplicaSet(ReplicaSet),
    Node(Node),
    Volume(Volume),
}

/// How far a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Waiting,
    Ready,
    Succeeded,
    Failed,
}

/// See [`Detail`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub phase: Phase,
    /// Empty while it has none.
    pub node: Arc<str>,
    pub wish: Wish,
    /// Which template it was made from.
    pub template: Option<Box<str>>,
    /// Its place in an indexed Job.
    pub index: Option<u32>,
}

/// See [`Detail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplicaSet {
    pub generation: i64,
    pub wanted: i64,
    /// What its status says.
    pub counted: Counted,
    /// The number of the rollout it belongs to.
    pub rollout: i64,
}

/// The counters in the status of a ReplicaSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counted {
    pub observed_generation: i64,
    pub replicas: i64,
    pub fully_labeled_replicas: i64,
    pub ready_replicas: i64,
    pub available_replicas: i64,
}

/// See [`Detail`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    pub allocatable: Amounts,
    pub labels: BTreeMap<String, String>,
    /// It takes new pods.
    pub open: bool,
}

/// See [`Detail`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub claim: Option<Owner>,
    pub phase: Box<str>,
    /// It goes when its claim goes.
    pub goes_with_claim: bool,
}

/// An object, as far as one kind's facts need it.
#[derive(Deserialize)]
#[serde(bound = "Spec: DeserializeOwned + Default, Status: DeserializeOwned + Default")]
struct Sketch<Spec, Status> {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    generation: i64,
    deletion_timestamp: Option<IgnoredAny>,
    owner_references: Vec<Reference>,
    labels: BTreeMap<String, String>,
    annotations: Annotations,
}

/// Annotations can be long; only these are kept.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "deployment.kubernetes.io/revision")]
    rollout: Option<String>,
    #[serde(rename = "batch.kubernetes.io/job-completion-index")]
    index: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    uid: String,
    controller: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: Option<String>,
    node_selector: BTreeMap<String, String>,
    containers: Vec<Container>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Container {
    resources: Resources,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resources {
    requests: BTreeMap<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PodStatus {
    phase: String,
    conditions: Vec<Condition>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Replicas {
    replicas: i64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeSpec {
    unschedulable: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeStatus {
    allocatable: BTreeMap<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct VolumeSpec {
    claim_ref: Option<Reference>,
    persistent_volume_reclaim_policy: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct VolumeStatus {
    phase: String,
}

/// Reads the facts of an object; `None` for what is no object of the kind.
pub fn read(kind: Kind, bytes: &[u8]) -> Option<(Key, Facts)> {
    match kind {
        Kind::Pod => finish(kind, parse(bytes)?, pod),
        Kind::ReplicaSet => finish(kind, parse(bytes)?, replica_set),
        Kind::Node => finish(kind, parse(bytes)?, node),
        Kind::Volume => finish(kind, parse(bytes)?, volume),
        _ => finish(kind, parse::<IgnoredAny, IgnoredAny>(bytes)?, |_| Detail::None),
    }
}

fn parse<Spec, Status>(bytes: &[u8]) -> Option<Sketch<Spec, Status>>
where
    Spec: DeserializeOwned + Default,
    Status: DeserializeOwned + Default,
{
    serde_json::from_slice(bytes).ok()
}

fn finish<Spec, Status>(
    kind: Kind,
    sketch: Sketch<Spec, Status>,
    detail: impl FnOnce(&Sketch<Spec, Status>) -> Detail,
) -> Option<(Key, Facts)> {
    let metadata = &sketch.metadata;
    let facts = Facts {
        uid: metadata.uid.as_str().into(),
        revision: metadata.resource_version.parse().ok()?,
        deleting: metadata.deletion_timestamp.is_some(),
        owner: owner(metadata),
        detail: detail(&sketch),
    };
    Some((Key::new(kind, &metadata.namespace, &metadata.name), facts))
}

fn owner(metadata: &Metadata) -> Option<Owner> {
    let controller = metadata.owner_references.iter().find(|reference| reference.controller)?;
    let kind = Kind::of(&controller.api_version, &controller.kind)?;
    let key = Key::new(kind, &metadata.namespace, &controller.name);
    Some(Owner { key, uid: controller.uid.as_str().into() })
}

fn pod(sketch: &Sketch<PodSpec, PodStatus>) -> Detail {
    let Sketch { metadata, spec, status } = sketch;
    let is_ready = |condition: &Condition| condition.kind == "Ready" && condition.status == "True";
    let phase = match status.phase.as_str() {
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        _ if status.conditions.iter().any(is_ready) => Phase::Ready,
        _ => Phase::Waiting,
    };
    let label = |key: &str| metadata.labels.get(key).map(|value| value.as_str().into());
    Detail::Pod(Pod {
        phase,
        node: spec.node_name.as_deref().unwrap_or_default().into(),
        wish: spec.wish(),
        template: label("pod-template-hash").or_else(|| label("controller-revision-hash")),
        index: metadata.annotations.index.as_deref().and_then(|index| index.parse().ok()),
    })
}

impl PodSpec {
    fn wish(&self) -> Wish {
        let requests = self.containers.iter().map(|container| amounts(&container.resources.requests));
        let needs = requests.fold(Amounts { pods: 1, ..Amounts::default() }, |sum, one| sum + one);
        Wish { needs, selector: self.node_selector.clone() }
    }
}

/// What a pod with this spec says about where it may go.
pub fn wish(spec: &Value) -> Wish {
    PodSpec::deserialize(spec).unwrap_or_default().wish()
}

fn replica_set(sketch: &Sketch<Replicas, Counted>) -> Detail {
    let rollout = sketch.metadata.annotations.rollout.as_deref();
    Detail::ReplicaSet(ReplicaSet {
        generation: sketch.metadata.generation,
        wanted: sketch.spec.replicas,
        counted: sketch.status,
        rollout: rollout.and_then(|number| number.parse().ok()).unwrap_or(0),
    })
}

fn node(sketch: &Sketch<NodeSpec, NodeStatus>) -> Detail {
    Detail::Node(Node {
        allocatable: amounts(&sketch.status.allocatable),
        labels: sketch.metadata.labels.clone(),
        open: !sketch.spec.unschedulable && sketch.metadata.deletion_timestamp.is_none(),
    })
}

fn volume(sketch: &Sketch<VolumeSpec, VolumeStatus>) -> Detail {
    let claim = sketch.spec.claim_ref.as_ref().map(|claim| Owner {
        key: Key::new(Kind::Claim, &claim.namespace, &claim.name),
        uid: claim.uid.as_str().into(),
    });
    Detail::Volume(Volume {
        claim,
        phase: sketch.status.phase.as_str().into(),
        goes_with_claim: sketch.spec.persistent_volume_reclaim_policy == "Delete",
    })
}

/// The amounts in a map of resources; what is no amount counts nothing.
fn amounts(resources: &BTreeMap<String, Value>) -> Amounts {
    let thousandths = |name: &str| {
        let quantity = resources.get(name).and_then(|value| Quantity::from_value(value).ok());
        quantity.map_or(0, |quantity| quantity.thousandths())
    };
    Amounts {
        cpu_milli: thousandths("cpu"),
        memory_bytes: thousandths("memory") / 1000,
        pods: thousandths("pods") / 1000,
    }
}
