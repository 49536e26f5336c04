//! PropagateDeps: the dependencies of a template, as bindings. Attached bindings follow the bindings that need them, so
//! they are as lazy as those are (L6). The interpreter finds the dependencies.

use std::collections::BTreeSet;
use std::fmt;

use api::annotations::DEPENDENCIES;
use api::binding::{BindingSnapshot, BindingSuspension};
use api::interpreter::DependentObjectReference;
use api::labels::{CLUSTER_RESOURCE_BINDING_PERMANENT_ID, DEPENDED_BY_PREFIX, RESOURCE_BINDING_PERMANENT_ID};
use api::propagation::ConflictResolution;
use api::records::Pin;
use api::suspension::SuspendClusters;
use api::{Binding, names};
use serde::Serialize;

use crate::binding::{Rollout, empty, is_held, own, suspension, trespass};
use crate::template::Template;

/// An attached binding, and what the bindings that need it do not agree on.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// The binding as it should be.
    pub binding: Binding,
    /// Present when those that need it disagree.
    pub conflict: Option<DependencyPolicyConflict>,
}

/// On which fields the bindings that need a dependency disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DependencyPolicyConflict {
    /// `Overwrite` wins.
    pub conflict_resolution: bool,
    /// `true` wins.
    pub preserve_resources_on_deletion: bool,
}

impl fmt::Display for DependencyPolicyConflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resolution = "ConflictResolution conflicted (Overwrite vs Abort)";
        let preserve = "PreserveResourcesOnDeletion conflicted (true vs false)";
        match (self.conflict_resolution, self.preserve_resources_on_deletion) {
            (true, true) => write!(formatter, "{resolution}; {preserve}"),
            (true, false) => formatter.write_str(resolution),
            _ => formatter.write_str(preserve),
        }
    }
}

/// The dependencies of a binding; none when `propagateDeps` is off, or it is being deleted.
///
/// A binding that is pinned to an older template still has that one's dependencies, which it has recorded (R2, L6); so
/// does one of a kind that no interpreter here knows, but Karmada's scripts did (C7). Only namespaced bindings have
/// dependencies, as in Karmada.
pub fn needs(
    binding: &Binding,
    template: Option<&Template>,
    ask: impl FnOnce(&Template) -> Option<Vec<DependentObjectReference>>,
) -> Vec<DependentObjectReference> {
    let metadata = &binding.metadata;
    if !binding.spec.propagate_deps || metadata.deletion_timestamp.is_some() || metadata.namespace.is_empty()
    {
        return Vec::new();
    }
    let pinned = |template: &&Template| {
        Pin::read(metadata).is_none_or(|pin| pin.template.is_empty() || pin.template == template.digest)
    };
    let mut needs = template.filter(pinned).and_then(ask).unwrap_or_else(|| noted(binding));
    needs.retain(|need| is_inside(binding, need));
    needs
}

/// The dependencies that a binding has recorded.
pub fn noted(binding: &Binding) -> Vec<DependentObjectReference> {
    let mut needs = written(binding);
    needs.retain(|need| is_inside(binding, need));
    needs.sort();
    needs
}

/// The recorded dependencies that are not propagated, because they are outside the binding's namespace (M3).
pub fn outside(binding: &Binding) -> Vec<DependentObjectReference> {
    let mut needs = written(binding);
    needs.retain(|need| !is_inside(binding, need));
    needs
}

fn written(binding: &Binding) -> Vec<DependentObjectReference> {
    serde_json::from_str(binding.metadata.annotation(DEPENDENCIES)).unwrap_or_default()
}

/// A binding propagates dependencies in its own namespace, and none if it is about an object outside its namespace.
fn is_inside(binding: &Binding, need: &DependentObjectReference) -> bool {
    let namespace = &binding.metadata.namespace;
    !namespace.is_empty() && need.namespace == *namespace && trespass(binding).is_none()
}

/// The binding of a template that other bindings need; none if there is none and no binding needs one.
///
/// Where a policy also claims the template, its rules and its suspension stand, and the needs are added.
pub fn attached<'r>(
    template: &Template,
    existing: Option<&Binding>,
    needed_by: &[&Binding],
    rollouts: impl Iterator<Item = &'r Rollout>,
) -> Option<Attached> {
    if existing.is_none() && needed_by.is_empty() {
        return None;
    }
    let mut binding = existing.cloned().unwrap_or_else(|| empty(template));
    if existing.is_none() {
        own(&mut binding.metadata, template);
    }
    binding.metadata.labels.retain(|key, _| !key.starts_with(DEPENDED_BY_PREFIX));
    binding.metadata.labels.extend(needed_by.iter().map(|needing| depended_by(needing)));
    binding.spec.required_by = needed_by.iter().map(|needing| snapshot(needing)).collect();
    binding.spec.required_by.sort();
    if !needed_by.is_empty() {
        pin(&mut binding, template);
    }
    let conflict = match binding.spec.placement {
        Some(_) => None,
        None => {
            binding.spec.suspension = held(&binding, needed_by, template, rollouts);
            inherit(&mut binding, needed_by)
        }
    };
    Some(Attached { binding, conflict })
}

/// What is needed goes out as it is now: a change of a dependency is its user's, not a policy's.
fn pin(binding: &mut Binding, template: &Template) {
    let found = Pin::read(&binding.metadata);
    // A binding without a pin is Karmada's, and as new as its template (M5).
    let is_karmadas = found.is_none() && binding.spec.resource.uid == template.uid;
    let mut pin = found.unwrap_or_default();
    if pin.template != template.digest {
        pin.template.clone_from(&template.digest);
        if !is_karmadas {
            binding.spec.resource = crate::binding::reference_now(template);
        }
    }
    pin.write(&mut binding.metadata);
}

fn depended_by(needing: &Binding) -> (String, String) {
    let metadata = &needing.metadata;
    let id_label = match metadata.namespace.as_str() {
        "" => CLUSTER_RESOURCE_BINDING_PERMANENT_ID,
        _ => RESOURCE_BINDING_PERMANENT_ID,
    };
    (names::depended_by_label(&metadata.namespace, &metadata.name), metadata.label(id_label).to_owned())
}

fn snapshot(needing: &Binding) -> BindingSnapshot {
    BindingSnapshot {
        namespace: needing.metadata.namespace.clone(),
        name: needing.metadata.name.clone(),
        clusters: needing.spec.clusters.clone(),
    }
}

fn inherit(binding: &mut Binding, needed_by: &[&Binding]) -> Option<DependencyPolicyConflict> {
    let overwrite =
        |needing: &&&Binding| needing.spec.conflict_resolution == Some(ConflictResolution::Overwrite);
    let preserve = |needing: &&&Binding| needing.spec.preserve_resources_on_deletion == Some(true);
    let overwriting = needed_by.iter().filter(overwrite).count();
    let preserving = needed_by.iter().filter(preserve).count();
    let (some, all) = (|count: usize| count > 0, needed_by.len());
    let resolution =
        if some(overwriting) { ConflictResolution::Overwrite } else { ConflictResolution::Abort };
    binding.spec.conflict_resolution = Some(resolution);
    // Karmada writes that nothing is preserved; what it wrote stays (M5).
    let said = binding.spec.preserve_resources_on_deletion.filter(|preserve| !preserve);
    binding.spec.preserve_resources_on_deletion = if some(preserving) { Some(true) } else { said };
    let conflict = DependencyPolicyConflict {
        conflict_resolution: some(overwriting) && overwriting < all,
        preserve_resources_on_deletion: some(preserving) && preserving < all,
    };
    (conflict.conflict_resolution || conflict.preserve_resources_on_deletion).then_some(conflict)
}

/// U6: held on a cluster when every binding that needs it there is held there; a rollout policy may hold
/// it besides (U7).
fn held<'r>(
    binding: &Binding,
    needed_by: &[&Binding],
    template: &Template,
    rollouts: impl Iterator<Item = &'r Rollout>,
) -> Option<BindingSuspension> {
    let clusters: BTreeSet<&str> = needed_by
        .iter()
        .flat_map(|needing| needing.spec.clusters.iter().map(|target| target.name.as_str()))
        .collect();
    let needs =
        |needing: &Binding, cluster: &str| needing.spec.clusters.iter().any(|target| target.name == cluster);
    let held_by_all = |cluster: &&str| {
        needed_by.iter().filter(|needing| needs(needing, cluster)).all(|needing| is_held(needing, cluster))
    };
    let names: Vec<String> = clusters.into_iter().filter(held_by_all).map(str::to_owned).collect();
    let own = (!names.is_empty()).then(|| api::Suspension {
        dispatching_on_clusters: Some(SuspendClusters { cluster_names: names }),
        ..api::Suspension::default()
    });
    let rollouts = rollouts.filter(|rollout| rollout.matches(template));
    suspension(own.as_ref(), rollouts, binding.spec.suspension.as_ref())
}

#[cfg(test)]
mod tests;
