//! The policy status controller: writes the counts of each policy (`policy_counts`) and its conditions. Writes are
//! debounced and skipped when nothing changed.

use std::sync::Arc;
use std::time::Duration;

use api::rollout_progress::ROLLED_OUT;
use api::{PolicyStatus, PropagationPolicy, kinds};
use decide::conditions::set;
use decide::policy_status::rolled_out;
use decide::{PolicyKey, TemplateKey, policy_status};

use crate::ctx::Ctx;
use crate::policy_counts::Counts;
use crate::rest::{Collection, Error};
use crate::runtime::Action;

/// The debounce interval of a status write.
pub const DEBOUNCE: Duration = Duration::from_millis(250);

/// Counts everything once, before the workers start: a half-counted sum must never be written.
pub fn count_all(ctx: &Ctx) {
    let keys: Vec<Arc<TemplateKey>> =
        ctx.cache.snapshot().templates.iter().map(|one| one.key.clone()).collect();
    keys.iter().for_each(|key| recount(ctx, key));
    let policies: Vec<PolicyKey> = ctx.cache.snapshot().policies.iter().map(|one| one.key.clone()).collect();
    policies.into_iter().for_each(|key| enqueue(ctx, key));
}

/// Counts a template as it is now; called after it was reconciled.
pub fn recount(ctx: &Ctx, key: &TemplateKey) {
    let changed = ctx.policy_counts.recount(&ctx.cache.snapshot(), key);
    changed.into_iter().for_each(|policy| enqueue(ctx, policy));
}

fn enqueue(ctx: &Ctx, key: PolicyKey) {
    ctx.queues.policy_status.add_after(key, DEBOUNCE);
}

/// Writes the status of one policy, if it changed.
pub async fn reconcile(ctx: &Ctx, key: &PolicyKey) -> Result<Action, Error> {
    let Some(policy) = ctx.cache.snapshot().policies.get(key).cloned() else {
        return Ok(Action::AwaitChange);
    };
    let Counts { templates, rollouts } = ctx.policy_counts.of(key, &policy.uid);
    let kind = match key.namespace.as_str() {
        "" => &kinds::CLUSTER_PROPAGATION_POLICY,
        _ => &kinds::PROPAGATION_POLICY,
    };
    let path = Collection::of(kind, &key.namespace).object(&key.name);
    let found = ctx.control.get::<PropagationPolicy>(&path).await?;
    // A namesake that the cache does not know yet is counted when it does.
    let Some(found) = found.filter(|found| found.metadata.uid == policy.uid) else {
        return Ok(Action::AwaitChange);
    };
    let mut conditions = found.status.conditions.clone();
    for condition in policy_status::conditions(&policy, &templates, &ctx.cache.snapshot().gates) {
        set(&mut conditions, condition, (ctx.now)());
    }
    match rolled_out(&rollouts) {
        Some(condition) => set(&mut conditions, condition, (ctx.now)()),
        None => conditions.retain(|condition| condition.kind != ROLLED_OUT),
    }
    let status = PolicyStatus {
        observed_generation: policy.generation,
        templates: Some(templates),
        rollout: (rollouts.templates > 0).then_some(rollouts),
        conditions,
    };
    if status != found.status {
        let version = &found.metadata.resource_version;
        ctx.control.write_status(&path, version, &found.status, &status).await?;
    }
    Ok(Action::AwaitChange)
}
