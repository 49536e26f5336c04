//! The part of a binding that its policy and its template decide, compared before it is copied: nearly every reconcile
//! finds it unchanged, and a copy of a binding costs more than the rest of the reconcile.

use api::binding::{
    BindingSchedulePriority, BindingSpec, Component, ObjectReference, ReplicaRequirements,
    WorkloadAffinityGroups,
};
use api::failover::Failover;
use api::propagation::ConflictResolution;
use api::{ObjectMeta, OwnerReference, Placement, PropagationSpec, finalizers};

use super::Bound;
use crate::gates::Gates;
use crate::interpret;
use crate::interpret::Interpretation;
use crate::policy::Policy;
use crate::template::Template;

/// Every field of a spec but those that schedulers, evictors and other bindings write.
pub(super) struct Wanted<'w> {
    /// None: the reference that is there stays.
    resource: Option<ObjectReference>,
    propagate_deps: bool,
    replica_requirements: Option<ReplicaRequirements>,
    replicas: i32,
    components: Vec<Component>,
    placement: &'w Placement,
    scheduler_name: &'w String,
    failover: &'w Option<Failover>,
    conflict_resolution: ConflictResolution,
    preserve_resources_on_deletion: Option<bool>,
    schedule_priority: Option<BindingSchedulePriority>,
    workload_affinity_groups: Option<WorkloadAffinityGroups>,
}

impl<'w> Wanted<'w> {
    pub(super) fn of(
        template: &Template,
        policy: &'w Policy,
        bound: Option<&Bound<'_>>,
        mut interpretation: Interpretation,
        gates: &Gates,
    ) -> Wanted<'w> {
        let rules = &policy.spec;
        if !gates.components {
            interpretation.components.clear();
        }
        let interpretation = told_by_others(template, bound).unwrap_or(interpretation);
        Wanted {
            resource: reference(template, bound),
            propagate_deps: rules.propagate_deps,
            schedule_priority: schedule_priority(policy, &interpretation, gates),
            replica_requirements: interpretation.requirements,
            replicas: interpretation.replicas,
            components: interpretation.components,
            placement: &rules.placement,
            scheduler_name: &rules.scheduler_name,
            failover: &rules.failover,
            conflict_resolution: rules.conflict_resolution.unwrap_or_default(),
            preserve_resources_on_deletion: rules.preserve_resources_on_deletion,
            workload_affinity_groups: affinity_groups(template, policy, gates),
        }
    }

    /// True when the spec says all this already.
    pub(super) fn is_in(&self, spec: &BindingSpec) -> bool {
        let Wanted { resource, propagate_deps, replica_requirements, replicas, components, .. } = self;
        let Wanted { placement, scheduler_name, failover, conflict_resolution, .. } = self;
        let Wanted { preserve_resources_on_deletion, schedule_priority, workload_affinity_groups, .. } = self;
        resource.as_ref().is_none_or(|resource| spec.resource == *resource)
            && spec.propagate_deps == *propagate_deps
            && spec.replica_requirements == *replica_requirements
            && spec.replicas == *replicas
            && spec.components == *components
            && spec.placement.as_ref() == Some(placement)
            && spec.scheduler_name == **scheduler_name
            && spec.failover == **failover
            && spec.conflict_resolution == Some(*conflict_resolution)
            && spec.preserve_resources_on_deletion == *preserve_resources_on_deletion
            && spec.schedule_priority == *schedule_priority
            && spec.workload_affinity_groups == *workload_affinity_groups
    }

    /// The spec that says all this, and what others wrote in an existing one. No field can be forgotten here.
    pub(super) fn spec(self, existing: BindingSpec) -> BindingSpec {
        BindingSpec {
            resource: self.resource.unwrap_or(existing.resource),
            propagate_deps: self.propagate_deps,
            replica_requirements: self.replica_requirements,
            replicas: self.replicas,
            components: self.components,
            placement: Some(self.placement.clone()),
            scheduler_name: self.scheduler_name.clone(),
            failover: self.failover.clone(),
            conflict_resolution: Some(self.conflict_resolution),
            preserve_resources_on_deletion: self.preserve_resources_on_deletion,
            schedule_priority: self.schedule_priority,
            workload_affinity_groups: self.workload_affinity_groups,
            clusters: existing.clusters,
            graceful_eviction_tasks: existing.graceful_eviction_tasks,
            required_by: existing.required_by,
            reschedule_triggered_at: existing.reschedule_triggered_at,
            suspension: existing.suspension,
        }
    }
}

/// True when a spec repeats what a policy says about propagation, no matter which client wrote it.
pub(super) fn repeats(spec: &BindingSpec, rules: &PropagationSpec) -> bool {
    let preserves = |said: Option<bool>| said.unwrap_or(false);
    spec.placement.as_ref() == Some(&rules.placement)
        && spec.propagate_deps == rules.propagate_deps
        && spec.scheduler_name == rules.scheduler_name
        && spec.failover == rules.failover
        && spec.conflict_resolution.unwrap_or_default() == rules.conflict_resolution.unwrap_or_default()
        && preserves(spec.preserve_resources_on_deletion) == preserves(rules.preserve_resources_on_deletion)
}

/// What a binding says already about an object of a kind that only Karmada's scripts understand: that it has no
/// replicas, which is all we could say, would place it anew (C7).
fn told_by_others(template: &Template, bound: Option<&Bound<'_>>) -> Option<Interpretation> {
    let spec = &bound?.binding.spec;
    let has_word = spec.replicas > 0 || spec.replica_requirements.is_some() || !spec.components.is_empty();
    let is_ours = interpret::is_understood(&template.key.api_version, &template.key.kind);
    (has_word && !is_ours).then(|| Interpretation {
        replicas: spec.replicas,
        requirements: spec.replica_requirements.clone(),
        components: spec.components.clone(),
        schedule_priority: spec.schedule_priority.as_ref().map(|one| one.priority),
    })
}

/// Status and bookkeeping change a template's resource version too, and that is no news for members: the
/// reference moves only when the user's part does, so looking twice writes nothing (C6). A binding without a pin was
/// kept up to date by Karmada, and is not scheduled anew because we came (C7).
fn reference(template: &Template, bound: Option<&Bound<'_>>) -> Option<ObjectReference> {
    let is_current = |bound: &Bound<'_>| bound.pin.is_none() || bound.is_of(template);
    let same = |bound: &Bound<'_>| is_current(bound) && bound.binding.spec.resource.uid == template.uid;
    (!bound.is_some_and(same)).then(|| reference_now(template))
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

/// The template owns its binding, and the binding goes only after its Works were asked to go.
pub(crate) fn own(metadata: &mut ObjectMeta, template: &Template) {
    if !has_finalizer(metadata, template) {
        metadata.finalizers.push(finalizer(template).to_owned());
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

/// True when [`own`] would change nothing.
pub(super) fn is_owned(metadata: &ObjectMeta, template: &Template) -> bool {
    let [owner] = metadata.owner_references.as_slice() else { return false };
    let OwnerReference { api_version, kind, name, uid, controller, block_owner_deletion } = owner;
    has_finalizer(metadata, template)
        && (*controller, *block_owner_deletion) == (Some(true), Some(true))
        && *uid == template.uid
        && *name == template.key.name
        && *kind == template.key.kind
        && *api_version == template.key.api_version
}

fn has_finalizer(metadata: &ObjectMeta, template: &Template) -> bool {
    metadata.finalizers.iter().any(|present| present == finalizer(template))
}

fn finalizer(template: &Template) -> &'static str {
    match template.key.namespace.as_str() {
        "" => finalizers::CLUSTER_RESOURCE_BINDING,
        _ => finalizers::BINDING,
    }
}
