//! What should the binding say? Its spec from policy, template and interpretation, its claim, its pin.
//! Does not ask whether it may follow now, and never touches what schedulers and evictors write.

use std::fmt;

use api::binding::{
    BindingSchedulePriority, BindingSpec, Component, ObjectReference, ReplicaRequirements,
    WorkloadAffinityGroups,
};
use api::records::Pin;
use api::{Binding, OwnerReference, finalizers, kinds};
use serde::Serialize;

use crate::claim::record::Marks;
use crate::gates::Gates;
use crate::policy::Policy;
use crate::template::{Template, group};

mod suspension;

pub use suspension::{Rollout, is_held, suspension};

/// What the kind's interpreter says about a template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interpretation {
    /// How many replicas.
    pub replicas: i32,
    /// What one of them needs.
    pub requirements: Option<ReplicaRequirements>,
    /// Parts with replicas of their own.
    pub components: Vec<Component>,
    /// The value of the policy's priority class, once it is looked up.
    pub schedule_priority: Option<i32>,
}

/// A template's own binding with its pin read.
#[derive(Debug, Clone)]
pub struct Bound<'b> {
    /// The binding.
    pub binding: &'b Binding,
    /// What it was made from; none if Karmada made it.
    pub pin: Option<Pin>,
}

impl<'b> Bound<'b> {
    /// Reads the pin.
    pub fn of(binding: &'b Binding) -> Bound<'b> {
        Bound { binding, pin: Pin::read(&binding.metadata) }
    }

    /// True when it was made from the template as it is now.
    pub fn is_of(&self, template: &Template) -> bool {
        self.pin.as_ref().is_some_and(|pin| pin.template == template.digest)
    }
}

/// Why there can be no binding for a template now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Refusal {
    /// Another template of the same name has the binding already (C5).
    Collision {
        /// The binding.
        binding: String,
        /// The other template.
        holder: String,
    },
    /// The binding belongs to a deleted template of the same name, until the garbage collector took it.
    Predecessor {
        /// The binding.
        binding: String,
        /// Uid of the deleted template.
        uid: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Collision { binding, holder } => {
                write!(formatter, "binding {binding} already belongs to {holder}; rename one of the two (C5)")
            }
            Refusal::Predecessor { binding, uid } => {
                write!(formatter, "binding {binding} still belongs to a deleted object with uid {uid}")
            }
        }
    }
}

/// Whether an existing binding is this template's own.
pub fn refusal(template: &Template, binding: &Binding) -> Option<Refusal> {
    let name = format!("{}/{}", binding.metadata.namespace, binding.metadata.name);
    let name = name.trim_start_matches('/').to_owned();
    let holder = &binding.spec.resource;
    let same = group(&holder.api_version) == template.key.group()
        && holder.kind == template.key.kind
        && holder.namespace == template.key.namespace
        && holder.name == template.key.name;
    if !same {
        let holder =
            format!("{} {}/{} of {}", holder.kind, holder.namespace, holder.name, holder.api_version);
        return Some(Refusal::Collision { binding: name, holder });
    }
    let owner = binding.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))?;
    let foreign = !owner.uid.is_empty() && owner.uid != template.uid;
    foreign.then(|| Refusal::Predecessor { binding: name, uid: owner.uid.clone() })
}

/// The binding as policy and template want it now, and its pin, which is written once the brake is known. Of
/// an existing one, everything that others write stays: clusters, evictions, who requires it, when to
/// reschedule, whether scheduling is suspended.
pub fn binding(
    template: &Template,
    policy: &Policy,
    existing: Option<&Bound<'_>>,
    interpretation: &Interpretation,
    gates: &Gates,
) -> (Binding, Pin) {
    let mut binding = match existing {
        None => empty(template),
        Some(Bound { binding, .. }) => Binding {
            api_version: binding.api_version.clone(),
            kind: binding.kind.clone(),
            metadata: binding.metadata.clone(),
            spec: BindingSpec::default(),
            status: binding.status.clone(),
        },
    };
    own(&mut binding, template);
    binding.spec = spec(template, policy, existing, interpretation, gates);
    let pin = Pin {
        policy: policy.mark(),
        template: template.digest.clone(),
        reconcile: template.reconcile().to_owned(),
        suspension: None,
    };
    (binding, pin)
}

/// The pin of a binding that Karmada made; its policy's generation is unknown, so it is 0.
pub fn adopted(template: &Template, policy: &Policy) -> Pin {
    Pin {
        policy: api::records::PolicyMark { uid: policy.uid.clone(), generation: 0 },
        template: template.digest.clone(),
        reconcile: template.reconcile().to_owned(),
        suspension: None,
    }
}

/// Writes or takes away the claim on a binding: relationship acts at once (L1, S2).
pub fn with_claim(mut binding: Binding, policy: Option<&Policy>) -> Binding {
    let metadata = &mut binding.metadata;
    let mut marks = Marks {
        labels: std::mem::take(&mut metadata.labels),
        annotations: std::mem::take(&mut metadata.annotations),
    };
    match policy {
        Some(policy) => marks.claim(policy),
        None => marks.unclaim(),
    }
    metadata.labels = marks.labels;
    metadata.annotations = marks.annotations;
    binding
}

pub(crate) fn empty(template: &Template) -> Binding {
    let kind = match template.key.namespace.as_str() {
        "" => kinds::CLUSTER_RESOURCE_BINDING,
        _ => kinds::RESOURCE_BINDING,
    };
    let key = template.key.binding();
    Binding::new(&kind, &key.namespace, &key.name)
}

/// The template owns its binding, and the binding goes only after its Works were asked to go.
pub(crate) fn own(binding: &mut Binding, template: &Template) {
    let finalizer = match template.key.namespace.as_str() {
        "" => finalizers::CLUSTER_RESOURCE_BINDING,
        _ => finalizers::BINDING,
    };
    let metadata = &mut binding.metadata;
    if !metadata.finalizers.iter().any(|present| present == finalizer) {
        metadata.finalizers.push(finalizer.to_owned());
    }
    metadata.owner_references = vec![OwnerReference {
        api_version: template.key.api_version.clone(),
        kind: template.key.kind.clone(),
        name: template.key.name.clone(),
        uid: template.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }];
}

fn spec(
    template: &Template,
    policy: &Policy,
    bound: Option<&Bound<'_>>,
    interpretation: &Interpretation,
    gates: &Gates,
) -> BindingSpec {
    let rules = &policy.spec;
    let none = BindingSpec::default();
    let existing = bound.map_or(&none, |bound| &bound.binding.spec);
    let components = if gates.components { interpretation.components.clone() } else { Vec::new() };
    BindingSpec {
        resource: reference(template, bound),
        propagate_deps: rules.propagate_deps,
        replica_requirements: interpretation.requirements.clone(),
        replicas: interpretation.replicas,
        components,
        placement: Some(rules.placement.clone()),
        scheduler_name: rules.scheduler_name.clone(),
        failover: rules.failover.clone(),
        conflict_resolution: Some(rules.conflict_resolution.unwrap_or_default()),
        preserve_resources_on_deletion: rules.preserve_resources_on_deletion,
        schedule_priority: schedule_priority(policy, interpretation, gates),
        workload_affinity_groups: affinity_groups(template, policy, gates),
        clusters: existing.clusters.clone(),
        graceful_eviction_tasks: existing.graceful_eviction_tasks.clone(),
        required_by: existing.required_by.clone(),
        reschedule_triggered_at: existing.reschedule_triggered_at,
        suspension: existing.suspension.clone(),
    }
}

/// Status and bookkeeping change a template's resource version too, and that is no news for members: the
/// reference moves only when the user's part does, so looking twice writes nothing (C6).
fn reference(template: &Template, bound: Option<&Bound<'_>>) -> ObjectReference {
    let same = |bound: &&Bound<'_>| bound.is_of(template) && bound.binding.spec.resource.uid == template.uid;
    if let Some(bound) = bound.filter(same) {
        return bound.binding.spec.resource.clone();
    }
    reference_now(template)
}

/// The template as it is now.
pub(crate) fn reference_now(template: &Template) -> ObjectReference {
    ObjectReference {
        api_version: template.key.api_version.clone(),
        kind: template.key.kind.clone(),
        namespace: template.key.namespace.clone(),
        name: template.key.name.clone(),
        uid: template.uid.clone(),
        resource_version: template.resource_version.clone(),
    }
}

fn schedule_priority(
    policy: &Policy,
    interpretation: &Interpretation,
    gates: &Gates,
) -> Option<BindingSchedulePriority> {
    let wanted = gates.schedule_priority && policy.spec.schedule_priority.is_some();
    let priority = interpretation.schedule_priority.filter(|_| wanted)?;
    Some(BindingSchedulePriority { priority })
}

fn affinity_groups(template: &Template, policy: &Policy, gates: &Gates) -> Option<WorkloadAffinityGroups> {
    let wanted = policy.spec.placement.workload_affinity.as_ref().filter(|_| gates.workload_affinity)?;
    let group = |by: &Option<api::placement::GroupByLabel>| {
        let key = &by.as_ref()?.group_by_label_key;
        Some(format!("{key}={}", template.labels.get(key)?))
    };
    let groups = WorkloadAffinityGroups {
        affinity_group: group(&wanted.affinity).unwrap_or_default(),
        anti_affinity_group: group(&wanted.anti_affinity).unwrap_or_default(),
    };
    (groups != WorkloadAffinityGroups::default()).then_some(groups)
}

#[cfg(test)]
mod tests;
