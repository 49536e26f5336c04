//! Renders a template into a Work: replicas, overrides, labels and annotations, in this order.

use std::collections::BTreeMap;

use api::binding::TargetCluster;
use api::propagation::ConflictResolution;
use api::{Binding, Cluster, Work, annotations, finalizers, kinds, labels, names};
use serde_json::Value;

use super::kept::Left;
use super::manifest::{Field, Manifest};
use super::{Sources, Works, cluster_of, targets};
use crate::binding::is_held;
use crate::fields::{integer, put, text};
use crate::interpret::revise_replicas;
use crate::overrides::{Overridden, overrides, remembered};
use crate::placement::{Strategy, is_workload, webster};
use crate::template::Template;

/// Marks of the policy that claims a template.
const CLAIM: [(Field, &str); 5] = [
    (Field::Labels, labels::PROPAGATION_POLICY_PERMANENT_ID),
    (Field::Labels, labels::CLUSTER_PROPAGATION_POLICY_PERMANENT_ID),
    (Field::Annotations, annotations::PROPAGATION_POLICY_NAMESPACE),
    (Field::Annotations, annotations::PROPAGATION_POLICY_NAME),
    (Field::Annotations, annotations::CLUSTER_PROPAGATION_POLICY_NAME),
];

/// Renders a Work for every target; a cluster whose overrides fail is reported and left unchanged.
pub(super) fn render(binding: &Binding, template: &Template, sources: Sources<'_>, answer: &mut Works) {
    let targets = targets(&binding.spec);
    let whole = template.object();
    let completions = completions(binding, template, &whole, &targets, sources.existing);
    let clusters: BTreeMap<&str, &Cluster> =
        sources.clusters.iter().map(|cluster| (cluster.metadata.name.as_str(), cluster)).collect();
    for (index, target) in targets.iter().enumerate() {
        // A cluster that is gone gets nothing, and its Works go with its namespace.
        let Some(cluster) = clusters.get(target.name.as_str()) else { continue };
        // One that is going gets nothing new, and would not take it.
        let is_there = sources.existing.iter().any(|work| cluster_of(work) == target.name);
        if cluster.metadata.deletion_timestamp.is_some() && !is_there {
            continue;
        }
        let mut object = whole.clone();
        if is_workload(&binding.spec) {
            let kept = answer.handover.keeping.get(&target.name);
            revise_replicas(&mut object, kept.copied().unwrap_or(target.replicas));
        }
        if let Some(completions) = completions.as_ref().and_then(|all| all.get(index)) {
            put(&mut object, &["spec", "completions"], (*completions).into());
        }
        match overrides(&object, cluster, sources.overrides) {
            Overridden::Failed(failed) => drop(answer.failed.insert(target.name.clone(), failed)),
            Overridden::Done { object, cluster_policies, policies } => {
                let mut left = Left::of(&object);
                left.dropped = CLAIM.into_iter().filter(|mark| is_dropped(mark, binding, &object)).collect();
                let manifest = Manifest::new(template, object);
                let Some(mut work) =
                    work(binding, template, (manifest, left), &target.name, sources.existing)
                else {
                    continue;
                };
                work.metadata.annotations.extend(remembered(&cluster_policies, &policies));
                let old = sources.existing.iter().find(|old| cluster_of(old) == target.name);
                let due = match answer.staged.as_mut() {
                    Some(staged) => staged.due(&target.name, work, old),
                    None => Some(work),
                };
                answer.works.extend(due.map(|work| (target.name.clone(), work)));
            }
        }
    }
}

/// How often the pods of a Job must succeed in each target; none if that is not divided.
fn completions(
    binding: &Binding,
    template: &Template,
    whole: &Value,
    targets: &[TargetCluster],
    existing: &[Work],
) -> Option<Vec<i64>> {
    let placement = binding.spec.placement.as_ref()?;
    let divided = binding.spec.replicas > 0 && Strategy::of(placement) != Strategy::Duplicated;
    let total = integer(whole, &["spec", "completions"])?;
    if !divided || template.key.kind != "Job" || targets.iter().all(|target| target.replicas == 0) {
        return None;
    }
    let parties: Vec<(&str, i64)> =
        targets.iter().map(|target| (target.name.as_str(), i64::from(target.replicas))).collect();
    let divided = || webster::divide(total, &parties, webster::Ties::of(&template.uid));
    Some(given(targets, existing).filter(|given| given.iter().sum::<i64>() == total).unwrap_or_else(divided))
}

/// The completions that each target was given before. They cannot be changed once a Job exists, and Karmada before 1.16
/// divided them otherwise (C7).
fn given(targets: &[TargetCluster], existing: &[Work]) -> Option<Vec<i64>> {
    let of = |target: &TargetCluster| {
        let work = existing.iter().find(|work| cluster_of(work) == target.name)?;
        integer(work.spec.workload.manifests.first()?, &["spec", "completions"])
    };
    targets.iter().map(of).collect()
}

/// The Work for one cluster; none while its predecessor is still going.
fn work(
    binding: &Binding,
    template: &Template,
    (mut manifest, left): (Manifest, Left),
    cluster: &str,
    existing: &[Work],
) -> Option<Work> {
    let name = names::work_name(&template.key.kind, &template.key.name, &template.key.namespace);
    let mut work = Work::new(&kinds::WORK, &names::execution_namespace(cluster), &name);
    let old = existing.iter().find(|old| cluster_of(old) == cluster && old.metadata.name == name);
    // A Work on its way out is not written to; its end brings us back here.
    if old.is_some_and(|old| old.metadata.deletion_timestamp.is_some()) {
        return None;
    }
    let known_id = old.map_or("", |old| old.metadata.label(labels::WORK_PERMANENT_ID));
    let (binding_label, binding_id) = binding_id(binding);
    let work_id = match known_id {
        "" => new_id([&binding_id, &binding.metadata.uid, &work.metadata.namespace, &work.metadata.name]),
        known => known.to_owned(),
    };
    let back = back_references(binding);
    let conflict = conflict_resolution(binding, manifest.object());

    claim_of_binding(&mut manifest, binding);
    manifest.set(Field::Labels, &[(binding_label, &binding_id), (labels::MANAGED, labels::TRUE)]);
    for (key, value) in &back {
        manifest.set(Field::Annotations, &[(key, value)]);
    }
    let generation = template.generation.to_string();
    if generation != "0" {
        manifest.set(Field::Annotations, &[(annotations::TEMPLATE_GENERATION, &generation)]);
    }
    let of_work = [
        (annotations::TEMPLATE_UID, template.uid.as_str()),
        (annotations::WORK_NAME, &work.metadata.name),
        (annotations::WORK_NAMESPACE, &work.metadata.namespace),
        (annotations::CONFLICT_RESOLUTION, conflict),
    ];
    manifest.set(Field::Annotations, &of_work);
    record_managed_keys(&mut manifest, &work_id);

    work.metadata.finalizers = vec![finalizers::EXECUTION.to_owned()];
    let labels = [(binding_label, binding_id), (labels::WORK_PERMANENT_ID, work_id)];
    work.metadata.labels = labels.map(|(key, value)| (key.to_owned(), value)).into();
    work.metadata.annotations = back;
    work.metadata.annotations.insert(annotations::CONFLICT_RESOLUTION.to_owned(), conflict.to_owned());
    work.spec.workload = manifest.into_workload();
    work.spec.suspend_dispatching = Some(is_held(binding, cluster));
    work.spec.preserve_resources_on_deletion =
        Some(binding.spec.preserve_resources_on_deletion.unwrap_or(false));
    left.keep(&mut work, old);
    Some(work)
}

fn binding_id(binding: &Binding) -> (&'static str, String) {
    let label = match binding.metadata.namespace.as_str() {
        "" => labels::CLUSTER_RESOURCE_BINDING_PERMANENT_ID,
        _ => labels::RESOURCE_BINDING_PERMANENT_ID,
    };
    (label, binding.metadata.label(label).to_owned())
}

fn back_references(binding: &Binding) -> BTreeMap<String, String> {
    let (namespace, name) = (&binding.metadata.namespace, &binding.metadata.name);
    match namespace.is_empty() {
        true => [(annotations::CLUSTER_RESOURCE_BINDING_NAME.to_owned(), name.clone())].into(),
        false => [
            (annotations::RESOURCE_BINDING_NAMESPACE.to_owned(), namespace.clone()),
            (annotations::RESOURCE_BINDING_NAME.to_owned(), name.clone()),
        ]
        .into(),
    }
}

/// The template's own word counts first, then the binding's.
fn conflict_resolution(binding: &Binding, manifest: &Value) -> &'static str {
    match text(manifest, &["metadata", "annotations", annotations::CONFLICT_RESOLUTION]) {
        annotations::CONFLICT_OVERWRITE => annotations::CONFLICT_OVERWRITE,
        annotations::CONFLICT_ABORT => annotations::CONFLICT_ABORT,
        _ => match binding.spec.conflict_resolution {
            Some(ConflictResolution::Overwrite) => annotations::CONFLICT_OVERWRITE,
            _ => annotations::CONFLICT_ABORT,
        },
    }
}

/// Manifests carry the policy the binding was made from. The template may already be claimed by another one that waits
/// for its turn (L2), and that alone is no reason to write to a member.
fn claim_of_binding(manifest: &mut Manifest, binding: &Binding) {
    for (field, key) in CLAIM {
        match claimed(binding, field, key) {
            Some(value) => manifest.set(field, &[(key, value)]),
            None => manifest.unset(field, key),
        }
    }
}

/// The value of one mark of the claim on a binding.
fn claimed<'b>(binding: &'b Binding, field: Field, key: &str) -> Option<&'b String> {
    match field {
        Field::Labels => binding.metadata.labels.get(key),
        Field::Annotations => binding.metadata.annotations.get(key),
    }
}

/// True when override policies left an object without a mark of the claim.
fn is_dropped((field, key): &(Field, &str), binding: &Binding, object: &Value) -> bool {
    claimed(binding, *field, key).is_some() && field.value(object, key).is_none()
}

/// Lists the keys that come from the control plane, so that members may add their own. Annotations are
/// listed before the Work's id becomes a label, as in Karmada.
pub(super) fn record_managed_keys(manifest: &mut Manifest, work_id: &str) {
    for key in [annotations::MANAGED_ANNOTATIONS, annotations::MANAGED_LABELS] {
        manifest.set(Field::Annotations, &[(key, "")]);
    }
    let managed = manifest.keys(Field::Annotations);
    manifest.set(Field::Annotations, &[(annotations::MANAGED_ANNOTATIONS, &managed)]);
    manifest.set(Field::Labels, &[(labels::WORK_PERMANENT_ID, work_id)]);
    let managed = manifest.keys(Field::Labels);
    manifest.set(Field::Annotations, &[(annotations::MANAGED_LABELS, &managed)]);
}

/// An id that follows from what the Work is for, so that deciding twice gives the same Work.
pub(super) fn new_id(identity: [&str; 4]) -> String {
    let bytes = identity.into_iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    names::permanent_id(hash.to_be_bytes())
}
