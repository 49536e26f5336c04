//! The WorkloadRebalancer controller: triggers one rescheduling of the listed workloads, and deletes the rebalancer
//! after its TTL. `decide::rebalance` decides what is triggered and what the status says.

use std::time::Duration;

use api::{Time, WorkloadRebalancer, kinds};
use decide::BindingKey;
use decide::rebalance::{Rebalance, rebalance};
use serde_json::json;

use crate::ctx::{Ctx, bindings};
use crate::rest::{Collection, Error};
use crate::runtime::Action;

/// Brings one rebalancer forward.
///
/// The bindings are asked before the status says so: after a crash in between they are asked again with the
/// same date, which is no write.
pub async fn reconcile(ctx: &Ctx, name: &str) -> Result<Action, Error> {
    let path = Collection::of(&kinds::WORKLOAD_REBALANCER, "").object(name);
    let Some(rebalancer) = ctx.control.get::<WorkloadRebalancer>(&path).await? else {
        return Ok(Action::AwaitChange);
    };
    let now = (ctx.now)();
    let (Rebalance { asked, status, goes_at }, versions) = {
        let snapshot = ctx.cache.snapshot();
        let answer = rebalance(&rebalancer, |key| snapshot.bindings.get(key).map(AsRef::as_ref), now);
        let version = |key: &BindingKey| Some(snapshot.bindings.get(key)?.metadata.resource_version.clone());
        let versions: Vec<Option<String>> = answer.asked.keys().map(version).collect();
        (answer, versions)
    };
    for ((binding, since), version) in asked.iter().zip(versions) {
        ask(ctx, binding, version, *since).await?;
    }
    let metadata = &rebalancer.metadata;
    if status != rebalancer.status {
        let version = &metadata.resource_version;
        ctx.control.write_status(&path, version, &rebalancer.status, &status).await?;
    }
    let Some(goes_at) = goes_at else { return Ok(Action::AwaitChange) };
    let left = Duration::try_from(goes_at.timestamp().duration_since(now)).unwrap_or_default();
    if !left.is_zero() {
        return Ok(Action::RequeueAfter(left));
    }
    ctx.control.delete(&path, Some(&metadata.uid)).await?;
    Ok(Action::AwaitChange)
}

/// A binding that was deleted meanwhile is no failure: the next reconcile says so in the status.
async fn ask(ctx: &Ctx, key: &BindingKey, version: Option<String>, since: Time) -> Result<(), Error> {
    let patch = json!({
        "metadata": { "resourceVersion": version },
        "spec": { "rescheduleTriggeredAt": since },
    });
    match ctx.control.merge(&bindings(key).object(&key.name), &patch).await {
        Err(Error::NotFound { .. }) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}
