//! The execution controller, the only module that writes to members. Applies one Work's manifest (server-side apply) or
//! deletes it; suspension is checked here (in `decide::works::dispatch`) and nowhere else.

use std::time::Duration;

use api::cluster::{READY, SyncMode};
use api::{Cluster, ConditionStatus, Work};
use decide::conditions;
use decide::status::dispatching;
use decide::works::{Dispatch, Withdraw, dispatch, withdraw};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cache::WorkKey;
use crate::ctx::{self, Ctx};
use crate::member_client::MemberClient;
use crate::rest::{Collection, Error, Path};
use crate::runtime::{Action, Priority};

mod ownership;
mod report;

use ownership::Ownership;
use report::{Counted, Outcome};

/// The retry interval of a manifest that the member refused for a reason whose end no watch reports.
const REFUSED_RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// The retry interval of a manifest whose namespace was created while it was refused.
const NAMESPACE_RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// The retry interval while the owner of a Work is unclear.
const UNCLEAR_OWNER_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The retry interval while there is no client for the member.
const NO_CLIENT_RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Brings one member's object in line with its Work.
pub async fn reconcile(ctx: &Ctx, key: &WorkKey) -> Result<Action, Error> {
    let path = ctx::works(&key.cluster).object(&key.name);
    let Some(work) = ctx.control.get::<Work>(&path).await? else {
        ctx.members.member(&key.cluster).forget(&key.name);
        return Ok(Action::AwaitChange);
    };
    let clusters = ctx.cache.snapshot().clusters.clone();
    // A cluster that comes brings its Works here again.
    let Some(cluster) = clusters.iter().find(|cluster| cluster.metadata.name == key.cluster) else {
        return Ok(Action::AwaitChange);
    };
    if work.metadata.deletion_timestamp.is_some() {
        return remove_from_member(ctx, key, cluster, &work, &path).await;
    }
    // It ends with its execution namespace anyway, but Kubernetes gets to that after five seconds and, as the
    // Work is not gone at once then, comes back after eight more.
    if cluster.metadata.deletion_timestamp.is_some() {
        ctx.control.delete(&path, Some(&work.metadata.uid)).await?;
        return Ok(Action::AwaitChange);
    }
    let mut refused = None;
    match ownership::find_ownership(ctx, &work).await? {
        Ownership::Backed => {}
        Ownership::Foreign(why) => refused = Some(why),
        Ownership::Unclear => return Ok(Action::RequeueAfter(UNCLEAR_OWNER_RETRY_INTERVAL)),
        Ownership::Abandoned => {
            ctx.control.delete(&path, Some(&work.metadata.uid)).await?;
            return Ok(Action::AwaitChange);
        }
    }
    // An agent in the member does the rest.
    if cluster.spec.sync_mode == SyncMode::Pull {
        return Ok(Action::AwaitChange);
    }
    let mut next = work.status.clone();
    conditions::set(&mut next.conditions, dispatching(&work), (ctx.now)());
    let start = Instant::now();
    let delivery = match refused {
        Some(why) => Delivery::refused(why.to_string()),
        None => deliver_work(ctx, key, cluster, &work).await?,
    };
    report::record_writes(ctx, &work, &delivery.outcomes, start);
    // The member's status follows within moments, and both are written together. Until then the member itself shows
    // what it has.
    if report::is_first_delivery(&delivery.outcomes) {
        return Ok(earlier(delivery.next, Action::RequeueDebounced));
    }
    if !delivery.outcomes.is_empty() {
        report::report(&work, &mut next, &delivery.outcomes, (ctx.now)());
    }
    if next != work.status {
        let version = &work.metadata.resource_version;
        ctx.control.write_status(&path, version, &work.status, &next).await?;
    }
    report::record_status_changes(ctx, &work, &next);
    Ok(delivery.next)
}

/// The result of a delivery to the member; no outcomes if no request was sent.
struct Delivery {
    outcomes: Vec<Outcome>,
    next: Action,
}

impl Delivery {
    fn later(next: Action) -> Self {
        Self { outcomes: Vec::new(), next }
    }

    fn refused(why: String) -> Self {
        Self { outcomes: vec![Outcome::Failed { why, recreating: false }], next: Action::AwaitChange }
    }
}

async fn deliver_work(ctx: &Ctx, key: &WorkKey, cluster: &Cluster, work: &Work) -> Result<Delivery, Error> {
    // A cluster that becomes ready brings its Works here again.
    if conditions::status(&cluster.status.conditions, READY) != Some(ConditionStatus::True) {
        return Ok(Delivery::later(Action::AwaitChange));
    }
    let Some(reach) = MemberClient::of(ctx, &key.cluster) else {
        return Ok(Delivery::later(Action::RequeueAfter(NO_CLIENT_RETRY_INTERVAL)));
    };
    if let Some(pause) = reach.member.pause() {
        return Ok(Delivery::later(Action::RequeueAfter(pause)));
    }
    let mut delivery = Delivery::later(Action::AwaitChange);
    for (place, manifest) in work.spec.workload.manifests.iter().enumerate() {
        match deliver_manifest(ctx, &reach, key, work, (place, manifest)).await {
            Ok((outcome, next)) => {
                delivery.outcomes.push(outcome);
                delivery.next = earlier(delivery.next, next);
            }
            // The whole member is unreachable, which its Cluster's conditions say; the Work keeps its last status.
            Err(error) if error.is_outage() => {
                return Ok(Delivery::later(Action::RequeueAfter(reach.member.retry())));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(delivery)
}

fn earlier(one: Action, other: Action) -> Action {
    match (one, other) {
        (Action::AwaitChange, next) | (next, Action::AwaitChange) => next,
        (Action::RequeueDebounced, _) | (_, Action::RequeueDebounced) => Action::RequeueDebounced,
        (Action::RequeueAfter(one), Action::RequeueAfter(other)) => Action::RequeueAfter(one.min(other)),
    }
}

/// Writes one manifest unless something holds it or the member has it already.
async fn deliver_manifest(
    ctx: &Ctx,
    reach: &MemberClient<'_>,
    key: &WorkKey,
    work: &Work,
    (place, manifest): (usize, &Value),
) -> Result<(Outcome, Action), Error> {
    let recreating = report::was_applied(work);
    let failed = |why: String, next| Ok((Outcome::Failed { why, recreating: false }, next));
    let Some(path) = ownership::manifest_path(ctx, reach, manifest).await? else {
        let why = format!("{} {} is not served", text(manifest, "apiVersion"), text(manifest, "kind"));
        return failed(why, Action::RequeueAfter(REFUSED_RETRY_INTERVAL));
    };
    let live = match reach.call(reach.rest.get::<Value>(&path)).await? {
        Some(object) if reach.member.has(work, place, manifest, &object) => {
            return Ok((Outcome::Has(object), Action::AwaitChange));
        }
        live => live,
    };
    let mut wanted = match dispatch(work, manifest, live.as_ref()) {
        Dispatch::Held => return Ok((Outcome::Held(live), Action::AwaitChange)),
        Dispatch::Refused(conflict) => {
            return failed(conflict.to_string(), Action::RequeueAfter(REFUSED_RETRY_INTERVAL));
        }
        Dispatch::Apply(wanted) => wanted,
    };
    // What was decided about one object must not hit another of the same name.
    if let Some(uid) = live.as_ref().map(|live| &live["metadata"]["uid"]).filter(|uid| uid.is_string()) {
        wanted["metadata"]["uid"] = uid.clone();
    }
    let applied = reach.call(reach.rest.apply(&path, &wanted, true)).await;
    let recreating = recreating && live.is_none();
    let counted = Counted { cluster: &key.cluster, manifest };
    counted.applied(ctx, live.as_ref(), recreating, applied.as_ref().ok());
    match applied {
        Ok(object) => {
            let first = reach.member.note_applied(work, place, &object);
            enqueue_works_awaiting_namespace(ctx, reach, key, manifest);
            match live.is_some_and(|live| revision(&live) == revision(&object)) {
                true => Ok((Outcome::Has(object), Action::AwaitChange)),
                false => Ok((Outcome::Written { object, recreating, first }, Action::AwaitChange)),
            }
        }
        Err(error) if error.is_outage() => Err(error),
        Err(error) if live.is_some() && has_changed(reach, &path, &wanted).await? => Err(error),
        Err(error) => {
            let next = match &error {
                Error::NotFound { .. } => await_namespace(reach, key, manifest).await?,
                _ => Action::RequeueAfter(REFUSED_RETRY_INTERVAL),
            };
            Ok((Outcome::Failed { why: error.to_string(), recreating }, next))
        }
    }
}

/// Whether the object that was decided about has made room for another, or for none: then it is decided anew.
async fn has_changed(reach: &MemberClient<'_>, path: &Path, wanted: &Value) -> Result<bool, Error> {
    let now = reach.call(reach.rest.get::<Value>(path)).await?;
    Ok(now.is_none_or(|now| now["metadata"]["uid"] != wanted["metadata"]["uid"]))
}

fn revision(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// Lets a manifest wait for its namespace, which has a Work of its own.
async fn await_namespace(reach: &MemberClient<'_>, key: &WorkKey, manifest: &Value) -> Result<Action, Error> {
    let namespace = text(&manifest["metadata"], "namespace");
    if namespace.is_empty() {
        return Ok(Action::RequeueAfter(REFUSED_RETRY_INTERVAL));
    }
    reach.member.wait_for(namespace, &key.name);
    // It may have been created before the Work was registered as waiting.
    let path = Collection::new("v1", "namespaces", "").object(namespace);
    let exists = reach.call(reach.rest.get::<Value>(&path)).await?.is_some();
    Ok(Action::RequeueAfter(if exists { NAMESPACE_RETRY_INTERVAL } else { REFUSED_RETRY_INTERVAL }))
}

fn enqueue_works_awaiting_namespace(ctx: &Ctx, reach: &MemberClient<'_>, key: &WorkKey, manifest: &Value) {
    if (text(manifest, "apiVersion"), text(manifest, "kind")) != ("v1", "Namespace") {
        return;
    }
    for name in reach.member.take_waiting(text(&manifest["metadata"], "name")) {
        ctx.queues.execution.add(WorkKey { cluster: key.cluster.clone(), name }, Priority::User);
    }
}

/// Deletes a deleted Work's object from its member, then removes the Work's finalizer.
async fn remove_from_member(
    ctx: &Ctx,
    key: &WorkKey,
    cluster: &Cluster,
    work: &Work,
    path: &Path,
) -> Result<Action, Error> {
    let own = |one: &&String| *one == api::finalizers::EXECUTION;
    if !work.metadata.finalizers.iter().any(|one| own(&one)) {
        return Ok(Action::AwaitChange);
    }
    for manifest in &work.spec.workload.manifests {
        // Whether the cluster can be asked at all is decided before it is asked.
        match withdraw(work, None, cluster) {
            Withdraw::Abandoned => break,
            // A cluster that becomes ready brings its Works here again; an agent does it all by itself.
            Withdraw::Wait => return Ok(Action::AwaitChange),
            _ if cluster.spec.sync_mode == SyncMode::Pull => return Ok(Action::AwaitChange),
            _ => {}
        }
        let Some(reach) = MemberClient::of(ctx, &key.cluster) else {
            return Ok(Action::RequeueAfter(NO_CLIENT_RETRY_INTERVAL));
        };
        if let Some(pause) = reach.member.pause() {
            return Ok(Action::RequeueAfter(pause));
        }
        match remove_manifest(ctx, &reach, work, cluster, manifest).await {
            Err(error) if error.is_outage() => return Ok(Action::RequeueAfter(reach.member.retry())),
            gone => gone?,
        }
    }
    let finalizers: Vec<&String> = work.metadata.finalizers.iter().filter(|one| !own(one)).collect();
    let patch = json!({
        "metadata": { "resourceVersion": work.metadata.resource_version, "finalizers": finalizers },
    });
    match ctx.control.merge(path, &patch).await {
        Err(Error::NotFound { .. }) | Ok(_) => Ok(Action::AwaitChange),
        Err(error) => Err(error),
    }
}

async fn remove_manifest(
    ctx: &Ctx,
    reach: &MemberClient<'_>,
    work: &Work,
    cluster: &Cluster,
    manifest: &Value,
) -> Result<(), Error> {
    // What a member does not serve it does not have.
    let Some(path) = ownership::manifest_path(ctx, reach, manifest).await? else { return Ok(()) };
    let live = reach.call(reach.rest.get::<Value>(&path)).await?.unwrap_or_default();
    match withdraw(work, Some(&live).filter(|live| live.is_object()), cluster) {
        Withdraw::Delete => {
            let deleted = reach.call(reach.rest.delete(&path, live["metadata"]["uid"].as_str())).await;
            Counted { cluster: &cluster.metadata.name, manifest }.deleted(ctx, deleted.is_ok());
            deleted
        }
        Withdraw::Release { labels, annotations } => {
            let mut patch = removal_patch(&labels, &annotations);
            patch["metadata"]["resourceVersion"] = revision(&live).clone();
            match reach.call(reach.rest.merge(&path, &patch)).await {
                Err(Error::NotFound { .. }) | Ok(_) => Ok(()),
                Err(error) => Err(error),
            }
        }
        Withdraw::Nothing | Withdraw::Abandoned | Withdraw::Wait => Ok(()),
    }
}

/// A patch that takes these labels and annotations away.
fn removal_patch(labels: &[String], annotations: &[String]) -> Value {
    let nulls = |keys: &[String]| -> Value { keys.iter().map(|key| (key.clone(), Value::Null)).collect() };
    json!({ "metadata": { "labels": nulls(labels), "annotations": nulls(annotations) } })
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}
