//! The cluster controller: maintains a cluster's execution namespace, its finalizer, and the health taints that the
//! scheduler reads. Deleting a cluster deletes its execution namespace.

use std::time::Duration;

use api::{Cluster, finalizers, kinds, labels, names};
use decide::eviction::taints;
use serde_json::{Value, json};

use crate::ctx::Ctx;
use crate::events::{EventType, Regarding};
use crate::rest::{Collection, Error, Path};
use crate::runtime::Action;
use crate::taint_policies;

const COMPONENT: &str = "cluster-controller";
/// The requeue interval of a cluster that is still in use.
const STILL_IN_USE_REQUEUE_INTERVAL: Duration = Duration::from_millis(500);

/// Tends one cluster.
pub async fn reconcile(ctx: &Ctx, name: &str) -> Result<Action, Error> {
    let path = Collection::of(&kinds::CLUSTER, "").object(name);
    let Some(cluster) = ctx.control.get::<Cluster>(&path).await? else { return Ok(Action::AwaitChange) };
    if cluster.metadata.deletion_timestamp.is_some() {
        return leave(ctx, &cluster, &path).await;
    }
    ensure_execution_namespace(ctx, &cluster).await?;
    let mut patch = json!({ "metadata": { "resourceVersion": cluster.metadata.resource_version } });
    let mut changed = false;
    if !cluster.metadata.finalizers.iter().any(|one| one == finalizers::CLUSTER) {
        let mut all = cluster.metadata.finalizers.clone();
        all.push(finalizers::CLUSTER.to_owned());
        patch["metadata"]["finalizers"] = json!(all);
        changed = true;
    }
    // `taint_policies` sets the taints of ClusterTaintPolicies; this controller sets the health taints.
    let taints = taints(&cluster, &[], (ctx.now)());
    if taints != cluster.spec.taints {
        patch["spec"] = json!({ "taints": taints });
        changed = true;
    }
    if changed {
        let written = ctx.control.merge(&path, &patch).await;
        if taints != cluster.spec.taints {
            let told = ("TaintClusterSucceed", "TaintClusterFailed");
            let message = format!("Taint cluster succeed: {}.", taint_policies::spoken(&taints));
            record_events(ctx, &cluster, told, &message, written.as_ref().err());
        }
        written?;
    }
    Ok(Action::AwaitChange)
}

/// Records the result as an event; a write conflict records none.
fn record_events(
    ctx: &Ctx,
    cluster: &Cluster,
    (good, bad): (&'static str, &'static str),
    message: &str,
    failure: Option<&Error>,
) {
    let (event_type, reason, message) = match failure {
        None => (EventType::Normal, good, message.to_owned()),
        Some(Error::Conflict { .. }) => return,
        Some(error) => (EventType::Warning, bad, error.to_string()),
    };
    ctx.record_event([Regarding::from(cluster)], COMPONENT, event_type, reason, &message);
}

async fn ensure_execution_namespace(ctx: &Ctx, cluster: &Cluster) -> Result<(), Error> {
    let namespaces = Collection::new("v1", "namespaces", "");
    let name = names::execution_namespace(&cluster.metadata.name);
    if ctx.control.get::<Value>(&namespaces.object(&name)).await?.is_some() {
        return Ok(());
    }
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": name, "labels": { labels::SYSTEM: labels::TRUE } },
    });
    let created = ctx.control.create(&namespaces, &namespace).await;
    let told = ("CreateExecutionSpaceSucceed", "CreateExecutionSpaceFailed");
    let message = format!("Created execution space({name}) for cluster({}).", cluster.metadata.name);
    record_events(ctx, cluster, told, &message, created.as_ref().err());
    match created {
        Err(Error::Conflict { .. }) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Asks for the end of the execution namespace; true when it has come.
async fn end_execution_namespace(ctx: &Ctx, cluster: &Cluster) -> Result<bool, Error> {
    let name = names::execution_namespace(&cluster.metadata.name);
    let path = Collection::new("v1", "namespaces", "").object(&name);
    let Some(namespace) = ctx.control.get::<Value>(&path).await? else { return Ok(true) };
    if namespace["metadata"]["deletionTimestamp"].is_string() {
        return Ok(false);
    }
    let deleted = ctx.control.delete(&path, None).await;
    let told = ("RemoveExecutionSpaceSucceed", "RemoveExecutionSpaceFailed");
    let message = format!("Removed execution space for cluster({}).", cluster.metadata.name);
    record_events(ctx, cluster, told, &message, deleted.as_ref().err());
    deleted?;
    Ok(ctx.control.get::<Value>(&path).await?.is_none())
}

/// Lets a cluster go once nothing is on it.
async fn leave(ctx: &Ctx, cluster: &Cluster, path: &Path) -> Result<Action, Error> {
    let name = &cluster.metadata.name;
    let gone = end_execution_namespace(ctx, cluster).await?;
    let in_use = ctx
        .cache
        .snapshot()
        .bindings
        .values()
        .any(|binding| binding.spec.clusters.iter().any(|target| target.name == *name));
    if !gone || in_use {
        return Ok(Action::RequeueAfter(STILL_IN_USE_REQUEUE_INTERVAL));
    }
    let finalizers: Vec<&String> =
        cluster.metadata.finalizers.iter().filter(|one| *one != finalizers::CLUSTER).collect();
    let patch = json!({
        "metadata": { "resourceVersion": cluster.metadata.resource_version, "finalizers": finalizers },
    });
    match ctx.control.merge(path, &patch).await {
        Err(Error::NotFound { .. }) | Ok(_) => Ok(Action::AwaitChange),
        Err(error) => Err(error),
    }
}
