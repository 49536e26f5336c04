//! What does each member receive? Asks `decide` and writes one Work per member; a binding that goes takes
//! its Works along.

use std::time::{Duration, Instant};

use api::{OverridePolicy, Work};
use decide::BindingKey;
use decide::works::{Frozen, Sources, works};
use serde_json::json;

use crate::ctx::{self, Ctx, bindings};
use crate::events::{Regarding, Tone};
use crate::metrics;
use crate::rest::Error;
use crate::runtime::Next;
use crate::view::{WorkKey, template_key};

const COMPONENT: &str = "binding-controller";
/// How soon a binding whose old copies have to go first is looked at again.
const PURGING: Duration = Duration::from_secs(5);

/// Brings the Works of one binding in line.
pub async fn reconcile(ctx: &Ctx, key: &BindingKey) -> Result<Next, Error> {
    let Some(binding) = ctx.view.binding(key) else { return Ok(Next::Wait) };
    let start = Instant::now();
    let existing = existing_works(ctx, &binding).await?;
    let answer = decide_works(ctx, &binding, &existing);
    let written = write(ctx, &answer, &existing).await;
    if !matches!(written, Ok(false)) {
        tell(ctx, &binding, start, written.as_ref().err());
    }
    written?;
    if binding.metadata.deletion_timestamp.is_some() {
        release(ctx, key, &binding).await?;
    }
    match answer.frozen {
        Some(Frozen::Purging { .. }) => Ok(Next::After(PURGING)),
        _ => Ok(Next::Wait),
    }
}

/// Orphans go first, then every cluster gets its Work; says whether anything was new.
async fn write(ctx: &Ctx, answer: &decide::works::Works, existing: &[Work]) -> Result<bool, Error> {
    let mut news = false;
    for cluster in answer.orphans.keys() {
        for work in
            existing.iter().filter(|work| is_for(work, cluster) && work.metadata.deletion_timestamp.is_none())
        {
            let path = ctx::works(cluster).object(&work.metadata.name);
            ctx.control.delete(&path, Some(&work.metadata.uid)).await?;
            news = true;
        }
    }
    for (cluster, work) in &answer.works {
        news |= write_work(ctx, cluster, work, existing).await?;
    }
    Ok(news)
}

fn tell(ctx: &Ctx, binding: &api::Binding, start: Instant, error: Option<&Error>) {
    let result = [("result", metrics::result(error.is_none()))];
    ctx.metrics.observe_since("binding_sync_work_duration_seconds", &result, start);
    let about = [Regarding::from(binding), Regarding::template_of(binding)];
    let api::ObjectMeta { namespace, name, .. } = &binding.metadata;
    match (error, namespace.as_str()) {
        (Some(error), _) => {
            ctx.tell(about, COMPONENT, Tone::Warning, "SyncWorkFailed", &error.to_string());
        }
        (None, "") => {
            let message = format!("Sync work of ClusterResourceBinding({name}) successful.");
            ctx.tell(about, COMPONENT, Tone::Normal, "SyncWorkSucceed", &message);
        }
        (None, namespace) => {
            let message = format!("Sync work of ResourceBinding({namespace}/{name}) successful.");
            ctx.tell(about, COMPONENT, Tone::Normal, "SyncWorkSucceed", &message);
        }
    }
}

/// The Works of a binding as they are now: their manifests are too large to be kept twice.
async fn existing_works(ctx: &Ctx, binding: &api::Binding) -> Result<Vec<Work>, Error> {
    let mut works = Vec::new();
    for WorkKey { cluster, name } in ctx.view.works_of(binding) {
        works.extend(ctx.control.get::<Work>(&ctx::works(&cluster).object(&name)).await?);
    }
    Ok(works)
}

fn decide_works(ctx: &Ctx, binding: &api::Binding, existing: &[Work]) -> decide::works::Works {
    let world = ctx.view.world();
    let template = world.templates.get(&template_key(binding)).cloned();
    let namespace = &binding.spec.resource.namespace;
    let concerned =
        world.overrides.iter().filter(|(key, _)| key.namespace.is_empty() || key.namespace == *namespace);
    let overrides: Vec<OverridePolicy> = concerned.map(|(_, policy)| OverridePolicy::clone(policy)).collect();
    let clusters = world.clusters.clone();
    drop(world);
    let sources =
        Sources { template: template.as_deref(), overrides: &overrides, clusters: &clusters, existing };
    works(binding, sources)
}

/// Writes one Work, if it is not as it should be.
pub(crate) async fn write_work(
    ctx: &Ctx,
    cluster: &str,
    work: &Work,
    existing: &[Work],
) -> Result<bool, Error> {
    let collection = ctx::works(cluster);
    let found =
        existing.iter().find(|found| is_for(found, cluster) && found.metadata.name == work.metadata.name);
    match found {
        None => drop(ctx.control.create(&collection, work).await?),
        Some(found) if found.spec == work.spec && carries(found, work) => return Ok(false),
        Some(found) => {
            let patch = json!({
                "metadata": {
                    "resourceVersion": found.metadata.resource_version,
                    "labels": work.metadata.labels,
                    "annotations": work.metadata.annotations,
                    "finalizers": work.metadata.finalizers,
                },
            });
            let mut next = serde_json::to_value(found).expect("our objects always serialise");
            merge_metadata(&mut next, &patch["metadata"]);
            next["spec"] = serde_json::to_value(&work.spec).expect("our objects always serialise");
            ctx.control.replace(&collection.object(&work.metadata.name), &next).await?;
        }
    }
    Ok(true)
}

/// Labels and annotations are merged, never removed, as Karmada does.
fn merge_metadata(object: &mut serde_json::Value, metadata: &serde_json::Value) {
    for field in ["labels", "annotations"] {
        for (key, value) in metadata[field].as_object().into_iter().flatten() {
            object["metadata"][field][key] = value.clone();
        }
    }
    object["metadata"]["finalizers"] = metadata["finalizers"].clone();
}

fn carries(found: &Work, work: &Work) -> bool {
    let has = |all: &std::collections::BTreeMap<String, String>,
               some: &std::collections::BTreeMap<String, String>| {
        some.iter().all(|(key, value)| all.get(key) == Some(value))
    };
    has(&found.metadata.labels, &work.metadata.labels)
        && has(&found.metadata.annotations, &work.metadata.annotations)
}

fn is_for(work: &Work, cluster: &str) -> bool {
    api::names::cluster_of_execution_namespace(&work.metadata.namespace) == Some(cluster)
}

/// Lets a binding go whose Works have been told to go.
async fn release(ctx: &Ctx, key: &BindingKey, binding: &api::Binding) -> Result<(), Error> {
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
