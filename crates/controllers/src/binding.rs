//! The binding controller: renders one Work per target member through `decide` and writes it. Deleting a binding
//! deletes its Works (finalizer).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::binding::BindingSnapshot;
use api::{Binding, ObjectMeta, OverridePolicy, Work, annotations, names};
use decide::rollout::Permit;
use decide::works::{Frozen, Sources, Works, clusters_in_use, works};
use decide::{BindingKey, Snapshot, TemplateKey};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cache::{Fingerprint, Question, Wanted, WorkKey, binding_id, is_work_of, wanted};
use crate::ctx::{self, Ctx, bindings};
use crate::rest::{Error, Path, Written};
use crate::runtime::Action;
use crate::{metrics, rollout};

mod record;

/// The requeue interval of a binding whose old copies have to be deleted first.
const PURGING: Duration = Duration::from_secs(5);

/// Brings the Works of one binding in line.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Action, Error> {
    let Some(binding) = ctx.cache.binding(key) else { return Ok(Action::AwaitChange) };
    let start = Instant::now();
    let known =
        ctx.cache.works().fingerprints(&binding).into_iter().map(|(key, _, wanted)| (key, wanted)).collect();
    let sources = sources_mark(&ctx.cache.snapshot(), &binding);
    if sources.is_some_and(|sources| ctx.cache.memo().holds(key, Question::Works, mark(sources, &known))) {
        return Ok(Action::AwaitChange);
    }
    // Noted before anything is read: what a member says from now on leads here again.
    ctx.cache.moving().note(key);
    let existing = existing_works(ctx, &binding).await?;
    let (answer, sources) = decide_works(ctx, &binding, &existing);
    if answer.handover.is_empty() && !is_staging(&answer) {
        ctx.cache.moving().forget(key);
    }
    answer.failed.values().for_each(|failed| record::override_failed(ctx, &binding, failed));
    if let Some(frozen @ Frozen::NotUnderstood { .. }) = &answer.frozen {
        record::left_as_it_is(ctx, &binding, frozen);
    }
    let mut now: BTreeMap<WorkKey, Wanted> =
        existing.iter().filter_map(|work| place(&work.metadata)).collect();
    // What comes is written before anything goes (M1).
    let written = write(ctx, &binding, &answer, &existing, &mut now).await;
    let cleaned = clean_up(ctx, &binding, &answer, &existing).await;
    if let Some(error) = cleaned.as_ref().err().filter(|error| !error.is_conflict()) {
        record::clean_up_failed(ctx, &binding, error);
    }
    let written = written.and_then(|written| cleaned.map(|cleaned| written || cleaned));
    if !matches!(&written, Ok(false)) && !written.as_ref().is_err_and(Error::is_conflict) {
        let result = [("result", metrics::result(written.is_ok()))];
        ctx.metrics.observe_since("binding_sync_work_duration_seconds", &result, start);
        record::synced(ctx, &binding, written.as_ref().err());
    }
    // The next reconcile with the same input is skipped.
    if let Some(sources) = sources.filter(|_| written.is_ok() && is_at_rest(&answer)) {
        ctx.cache.memo().note(key, Question::Works, mark(sources, &now));
    }
    written?;
    if binding.metadata.deletion_timestamp.is_some() {
        release(ctx, key, &binding).await?;
    }
    let next = rollout::reconcile(ctx, &binding, &answer, &existing).await?;
    match answer.frozen {
        Some(Frozen::Purging { .. }) => Ok(Action::RequeueAfter(PURGING)),
        _ => Ok(next),
    }
}

/// Whether nothing but a change brings anything new.
fn is_at_rest(answer: &Works) -> bool {
    let is_purging = matches!(answer.frozen, Some(Frozen::Purging { .. }));
    answer.failed.is_empty() && answer.handover.is_empty() && !is_purging && !is_staging(answer)
}

/// Whether clusters wait for their stage, or have to prove something in it.
fn is_staging(answer: &Works) -> bool {
    answer.staged.as_ref().is_some_and(|staged| staged.permit != Permit::All)
}

/// Orphans go; says whether there were any.
async fn clean_up(ctx: &Ctx, binding: &Binding, answer: &Works, existing: &[Work]) -> Result<bool, Error> {
    let orphan = |work: &&Work| {
        let cluster = names::cluster_of_execution_namespace(&work.metadata.namespace);
        work.metadata.deletion_timestamp.is_none()
            && cluster.is_some_and(|cluster| answer.orphans.contains_key(cluster))
    };
    let mut news = false;
    for work in existing.iter().filter(orphan) {
        keep_in_word(ctx, binding, work).await?;
        delete(ctx, work).await?;
        news = true;
    }
    Ok(news)
}

/// Every cluster gets its Work; says whether anything was new. One that fails does not hold up the others.
/// `now` becomes the Works as they are then.
async fn write(
    ctx: &Ctx,
    binding: &Binding,
    answer: &Works,
    existing: &[Work],
    now: &mut BTreeMap<WorkKey, Wanted>,
) -> Result<bool, Error> {
    let (mut news, mut failure) = (false, None);
    for (cluster, work) in &answer.works {
        match write_work(ctx, cluster, work, existing).await {
            Ok(None) => {}
            Ok(Some(written)) => {
                record::overridden(ctx, binding, cluster, work);
                now.extend(place(&written.metadata));
                news = true;
            }
            // An error worth reporting goes before a conflict, which the next reconcile resolves by itself.
            Err(error) if failure.as_ref().is_none_or(Error::is_conflict) => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(news), Err)
}

/// A cluster is left as the binding says now. Its Work may still say what an earlier policy wanted: whether the
/// Works are rendered before the clusters are chosen anew is a matter of moments.
async fn keep_in_word(ctx: &Ctx, binding: &Binding, work: &Work) -> Result<(), Error> {
    let preserve = binding.spec.preserve_resources_on_deletion.unwrap_or(false);
    if work.spec.preserve_resources_on_deletion.unwrap_or(false) == preserve {
        return Ok(());
    }
    let patch = json!({ "spec": { "preserveResourcesOnDeletion": preserve } });
    ctx.control.merge(&path(work), &patch).await.map(drop)
}

async fn delete(ctx: &Ctx, work: &Work) -> Result<(), Error> {
    ctx.control.delete(&path(work), Some(&work.metadata.uid)).await
}

fn path(work: &Work) -> Path {
    let cluster = names::cluster_of_execution_namespace(&work.metadata.namespace).unwrap_or_default();
    ctx::works(cluster).object(&work.metadata.name)
}

/// The Works of a binding as they are now: their manifests are too large to be cached as well. For one that is being
/// deleted, also those that were made a moment ago and that the cache does not know yet.
async fn existing_works(ctx: &Ctx, binding: &Binding) -> Result<Vec<Work>, Error> {
    let mut keys: BTreeSet<WorkKey> = ctx.cache.works().of(binding).into_iter().collect();
    if binding.metadata.deletion_timestamp.is_some() {
        let template = &binding.spec.resource;
        let name = names::work_name(&template.kind, &template.name, &template.namespace);
        let own = clusters_in_use(&binding.spec).into_keys().map(str::to_owned);
        keys.extend(own.map(|cluster| WorkKey { cluster, name: name.clone() }));
    }
    let mut works = Vec::new();
    for WorkKey { cluster, name } in keys {
        works.extend(ctx.control.get::<Work>(&ctx::works(&cluster).object(&name)).await?);
    }
    works.retain(|work| is_work_of(&work.metadata, &binding.metadata));
    Ok(works)
}

/// A fingerprint of all that the Works of a binding are rendered from; none where it cannot be computed.
fn sources_mark(snapshot: &Snapshot, binding: &Binding) -> Option<Fingerprint> {
    let ObjectMeta { uid, generation, labels, annotations, .. } = &binding.metadata;
    // Which clusters an override policy means may depend on anything that they say of themselves.
    if binding.metadata.deletion_timestamp.is_some() || concerned(snapshot, binding).next().is_some() {
        return None;
    }
    let template = snapshot.templates.get(&TemplateKey::of(binding)).map(|template| {
        (&template.uid, &template.digest, template.generation, &template.labels, &template.annotations)
    });
    let clusters: Vec<&str> =
        snapshot.clusters.iter().map(|cluster| cluster.metadata.name.as_str()).collect();
    Some(Fingerprint::of((uid, generation, labels, annotations, template, clusters)))
}

/// Stands for what Works are made from and for those that there are.
fn mark(sources: Fingerprint, works: &BTreeMap<WorkKey, Wanted>) -> Fingerprint {
    Fingerprint::of((sources, works))
}

/// The override policies that may mean a binding's template.
fn concerned<'a>(
    snapshot: &'a Snapshot,
    binding: &'a Binding,
) -> impl Iterator<Item = &'a Arc<OverridePolicy>> {
    let namespace = &binding.spec.resource.namespace;
    let near = move |key: &decide::PolicyKey| key.namespace.is_empty() || key.namespace == *namespace;
    snapshot.overrides.iter().filter(move |(key, _)| near(key)).map(|(_, policy)| policy)
}

/// What the Works should be, and the mark of what they are made from.
fn decide_works(ctx: &Ctx, binding: &Binding, existing: &[Work]) -> (Works, Option<Fingerprint>) {
    let snapshot = ctx.cache.snapshot();
    let template = snapshot.templates.get(&TemplateKey::of(binding)).cloned();
    let overrides: Vec<OverridePolicy> =
        concerned(&snapshot, binding).map(|policy| OverridePolicy::clone(policy)).collect();
    let clusters = snapshot.clusters.clone();
    let mark = sources_mark(&snapshot, binding);
    drop(snapshot);
    let needed_in = needed_in(ctx, binding);
    let sources = Sources {
        template: template.as_deref(),
        overrides: &overrides,
        clusters: &clusters,
        existing,
        needed_in: &needed_in,
    };
    (works(binding, sources), mark)
}

/// The clusters in which the bindings that need this one have Works.
fn needed_in(ctx: &Ctx, binding: &Binding) -> Vec<String> {
    let key = |by: &BindingSnapshot| BindingKey { namespace: by.namespace.clone(), name: by.name.clone() };
    let needing = binding.spec.required_by.iter().filter_map(|by| ctx.cache.binding(&key(by)));
    needing.flat_map(|needing| ctx.cache.works().of(&needing)).map(|work| work.cluster).collect()
}

fn place(metadata: &ObjectMeta) -> Option<(WorkKey, Wanted)> {
    let cluster = names::cluster_of_execution_namespace(&metadata.namespace)?.to_owned();
    Some((WorkKey { cluster, name: metadata.name.clone() }, wanted(metadata)))
}

/// Writes one Work if it differs from the desired one, and returns the result. A Work that is being deleted is left
/// alone: its deletion enqueues the binding again.
pub(crate) async fn write_work(
    ctx: &Ctx,
    cluster: &str,
    work: &Work,
    existing: &[Work],
) -> Result<Option<Written>, Error> {
    let collection = ctx::works(cluster);
    let path = collection.object(&work.metadata.name);
    let known = existing.iter().find(|found| {
        found.metadata.namespace == work.metadata.namespace && found.metadata.name == work.metadata.name
    });
    if let Some(known) = known {
        return replace(ctx, &path, known, work).await;
    }
    let refused = match ctx.control.create(&collection, work).await {
        Err(error) if error.is_conflict() => error,
        created => return created.map(Some),
    };
    // Left by a binding or a namespace of the same name that is no more, or made for a namespace that a policy
    // has claimed since: it is taken over, not taken away.
    let may = |found: &Work| is_of_the_same(found, work) || is_of_the_namespace(found, work);
    match ctx.control.get::<Work>(&path).await?.filter(may) {
        Some(found) => replace(ctx, &path, &found, work).await,
        None => Err(refused),
    }
}

/// Whether two Works are about the same binding or the same object without one, whatever their ids.
fn is_of_the_same(one: &Work, other: &Work) -> bool {
    let owner = |work: &Work| {
        let marks = [
            annotations::RESOURCE_BINDING_NAMESPACE,
            annotations::RESOURCE_BINDING_NAME,
            annotations::CLUSTER_RESOURCE_BINDING_NAME,
        ];
        let owners =
            work.metadata.owner_references.first().map(|owner| (owner.kind.clone(), owner.name.clone()));
        (marks.map(|mark| work.metadata.annotation(mark).to_owned()), owners)
    };
    owner(one) == owner(other)
}

/// Whether the owner of a Work is no binding but the very namespace that another one brings: a namespace goes to every
/// member by itself, and its Work belongs to it alone (M3).
fn is_of_the_namespace(found: &Work, work: &Work) -> bool {
    let brings = |name: &str| {
        let manifests = work.spec.workload.manifests.iter();
        let of = |manifest: &Value| {
            (manifest["apiVersion"].clone(), manifest["kind"].clone(), manifest["metadata"]["name"].clone())
        };
        manifests.map(of).all(|of| of == ("v1".into(), "Namespace".into(), name.into()))
    };
    let owners = &found.metadata.owner_references;
    binding_id(&found.metadata).is_empty()
        && owners.iter().any(|owner| owner.kind == "Namespace" && brings(&owner.name))
}

async fn replace(ctx: &Ctx, path: &Path, found: &Work, work: &Work) -> Result<Option<Written>, Error> {
    if found.metadata.deletion_timestamp.is_some() || (found.spec == work.spec && carries(found, work)) {
        return Ok(None);
    }
    let mut next = serde_json::to_value(found).expect("our objects always serialise");
    merge_metadata(&mut next, found, work);
    next["spec"] = serde_json::to_value(&work.spec).expect("our objects always serialise");
    ctx.control.replace(path, &next).await.map(Some)
}

/// Labels and annotations are merged, never removed, as Karmada does.
fn merge_metadata(object: &mut Value, found: &Work, work: &Work) {
    let metadata = &work.metadata;
    for (field, marks) in [("labels", &metadata.labels), ("annotations", &metadata.annotations)] {
        for (key, value) in marks {
            object["metadata"][field][key] = value.as_str().into();
        }
    }
    let mut finalizers = found.metadata.finalizers.clone();
    finalizers
        .extend(metadata.finalizers.iter().filter(|one| !found.metadata.finalizers.contains(one)).cloned());
    object["metadata"]["finalizers"] = json!(finalizers);
    if !metadata.owner_references.is_empty() {
        object["metadata"]["ownerReferences"] = json!(metadata.owner_references);
    }
}

fn carries(found: &Work, work: &Work) -> bool {
    let has = |all: &std::collections::BTreeMap<String, String>,
               some: &std::collections::BTreeMap<String, String>| {
        some.iter().all(|(key, value)| all.get(key) == Some(value))
    };
    has(&found.metadata.labels, &work.metadata.labels)
        && has(&found.metadata.annotations, &work.metadata.annotations)
        && (work.metadata.owner_references.is_empty()
            || found.metadata.owner_references == work.metadata.owner_references)
}

/// Removes the finalizer of a binding whose Works are being deleted.
async fn release(ctx: &Ctx, key: &BindingKey, binding: &Binding) -> Result<(), Error> {
    let own = ctx::binding_finalizer(binding);
    let finalizers: Vec<&String> = binding.metadata.finalizers.iter().filter(|one| *one != own).collect();
    if finalizers.len() == binding.metadata.finalizers.len() {
        return Ok(());
    }
    let patch = json!({
        "metadata": { "resourceVersion": binding.metadata.resource_version, "finalizers": finalizers },
    });
    match ctx.control.merge(&bindings(key).object(&key.name), &patch).await {
        Err(Error::NotFound { .. }) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}
