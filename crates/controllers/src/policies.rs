//! The finalizer of policies: a policy that is being deleted is released once no template carries its claim.

use api::kinds;
use decide::PolicyKey;
use serde_json::json;

use crate::ctx::Ctx;
use crate::rest::{Collection, Error};
use crate::runtime::Action;
use std::time::Duration;

/// The requeue interval of a policy that still has claims.
const STILL_CLAIMED_REQUEUE_INTERVAL: Duration = Duration::from_millis(50);

/// Releases one policy if it may go.
pub async fn reconcile(ctx: &Ctx, key: &PolicyKey) -> Result<Action, Error> {
    let claimed = {
        let snapshot = ctx.cache.snapshot();
        let Some(policy) = snapshot.policies.get(key).filter(|policy| policy.deleting) else {
            return Ok(Action::AwaitChange);
        };
        snapshot.templates.claimed(policy.id()).next().is_some()
    };
    if claimed {
        return Ok(Action::RequeueAfter(STILL_CLAIMED_REQUEUE_INTERVAL));
    }
    let kind = match key.namespace.as_str() {
        "" => &kinds::CLUSTER_PROPAGATION_POLICY,
        _ => &kinds::PROPAGATION_POLICY,
    };
    let path = Collection::of(kind, &key.namespace).object(&key.name);
    let found = ctx.control.get::<api::PropagationPolicy>(&path).await?;
    // A namesake that the cache does not know yet is not the one that is being deleted.
    let Some(policy) = found.filter(|found| found.metadata.deletion_timestamp.is_some()) else {
        return Ok(Action::AwaitChange);
    };
    let own = [api::finalizers::PROPAGATION_POLICY, api::finalizers::CLUSTER_PROPAGATION_POLICY];
    let finalizers: Vec<&String> =
        policy.metadata.finalizers.iter().filter(|one| !own.contains(&one.as_str())).collect();
    if finalizers.len() == policy.metadata.finalizers.len() {
        return Ok(Action::AwaitChange);
    }
    let patch = json!({
        "metadata": { "resourceVersion": policy.metadata.resource_version, "finalizers": finalizers },
    });
    match ctx.control.merge(&path, &patch).await {
        Err(Error::NotFound { .. }) | Ok(_) => Ok(Action::AwaitChange),
        Err(error) => Err(error),
    }
}
