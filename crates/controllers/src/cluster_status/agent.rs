//! The health of a Pull member's agent. The agent renews a Lease and writes the Cluster's status itself; when it stops,
//! its last status no longer holds. The time at which a renewal was observed counts, not the agent's clock.

use std::time::Duration;

use api::cluster::READY;
use api::{Cluster, Condition, ConditionStatus};
use decide::conditions;
use serde_json::{Value, json};

use crate::ctx::Ctx;
use crate::rest::{Collection, Error, Path};
use crate::runtime::Action;

/// How long the agent may be silent.
const LEASE_GRACE_PERIOD: Duration = Duration::from_secs(40);
/// How long no renewal is tolerated after the start, before the first one was observed.
const STARTUP_GRACE_PERIOD: Duration = Duration::from_secs(60);
/// How often it is listened for.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Listens for one member's agent.
pub async fn reconcile(ctx: &Ctx, cluster: &Cluster, path: &Path) -> Result<Action, Error> {
    let name = &cluster.metadata.name;
    let lease = Collection::new("coordination.k8s.io/v1", "leases", "karmada-cluster").object(name);
    let lease = ctx.control.get::<Value>(&lease).await?.unwrap_or_default();
    let ready = conditions::find(&cluster.status.conditions, READY);
    // The agent is alive when either moves: its lease, or what it says.
    let heard = format!("{} {ready:?}", lease["spec"]["renewTime"]);
    let silence = ctx.members.member(name).note_status(&heard);
    let grace = if ready.is_none() { STARTUP_GRACE_PERIOD } else { LEASE_GRACE_PERIOD };
    if silence > grace
        && let Some(unknown) = unknown(ready)
    {
        let mut conditions = cluster.status.conditions.clone();
        conditions::set(&mut conditions, unknown, (ctx.now)());
        let patch = json!({
            "metadata": { "resourceVersion": cluster.metadata.resource_version },
            "status": { "conditions": conditions },
        });
        ctx.control.merge(&path.below("status"), &patch).await?;
    }
    Ok(Action::RequeueAfter(LEASE_CHECK_INTERVAL))
}

/// What is said of a member whose agent is silent; none if that is said already.
fn unknown(ready: Option<&Condition>) -> Option<Condition> {
    let (reason, message) = match ready {
        None => ("ClusterStatusNeverUpdated", "Cluster status controller never posted cluster status."),
        Some(ready) if ready.status == ConditionStatus::Unknown => return None,
        Some(_) => ("ClusterStatusUnknown", "Cluster status controller stopped posting cluster status."),
    };
    Some(conditions::condition(READY, ConditionStatus::Unknown, reason, message))
}
