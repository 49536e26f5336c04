//! The policy status controller: keeps a count per policy, updated incrementally, so that a status costs what changed
//! and not what exists. Writes are debounced and skipped when nothing changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::propagation::TemplateCounts;
use api::{PolicyStatus, PropagationPolicy, kinds};
use decide::claim::claim_on;
use decide::conditions::set;
use decide::policy_status::{self, standing};
use decide::{PolicyKey, Snapshot, Template, TemplateKey};
use supervise::Recovered as _;

use crate::ctx::Ctx;
use crate::rest::{Collection, Error};
use crate::runtime::Action;

/// The debounce interval of a status write.
const GATHER: Duration = Duration::from_millis(250);

/// What each template adds to which policy, and the sums. Clones share it.
#[derive(Clone, Default)]
pub struct Tally(Arc<Mutex<Sums>>);

#[derive(Default)]
struct Sums {
    shares: BTreeMap<TemplateKey, Share>,
    /// By policy.
    counts: BTreeMap<PolicyKey, TemplateCounts>,
    /// Templates that were taken from a policy, by its uid.
    lost: BTreeMap<String, i32>,
}

/// What one template adds.
#[derive(Clone, Default, PartialEq)]
struct Share {
    claimed_by: Option<(PolicyKey, TemplateCounts)>,
    taken_from: Option<String>,
}

impl Sums {
    fn add(&mut self, share: &Share, sign: i32) {
        if let Some((policy, one)) = &share.claimed_by {
            let sum = self.counts.entry(policy.clone()).or_default();
            sum.claimed += sign * one.claimed;
            sum.up_to_date += sign * one.up_to_date;
            sum.pending_activation += sign * one.pending_activation;
            sum.suspended += sign * one.suspended;
            sum.preempted_from += sign * one.preempted_from;
            if sum.claimed == 0 {
                self.counts.remove(policy);
            }
        }
        if let Some(uid) = &share.taken_from {
            let sum = self.lost.entry(uid.clone()).or_default();
            *sum += sign;
            if *sum == 0 {
                self.lost.remove(uid);
            }
        }
    }
}

/// Counts everything once, before the workers start: a half-counted sum must never be written.
pub fn count_all(ctx: &Ctx) {
    let keys: Vec<Arc<TemplateKey>> =
        ctx.cache.snapshot().templates.iter().map(|one| one.key.clone()).collect();
    keys.iter().for_each(|key| touched(ctx, key));
    let policies: Vec<PolicyKey> = ctx.cache.snapshot().policies.iter().map(|one| one.key.clone()).collect();
    policies.into_iter().for_each(|key| look_later(ctx, key));
}

/// Looks at a policy's status once things are quiet.
pub fn look_later(ctx: &Ctx, key: PolicyKey) {
    ctx.queues.policy_status.add_after(key, GATHER);
}

/// Counts a template as it is now; called after it was reconciled.
pub fn touched(ctx: &Ctx, key: &TemplateKey) {
    let snapshot = ctx.cache.snapshot();
    let share = snapshot.templates.get(key).map(|template| share(template, &snapshot)).unwrap_or_default();
    let mut sums = ctx.tally.0.lock().recovered();
    let before = sums.shares.get(key).cloned().unwrap_or_default();
    if before == share {
        return;
    }
    sums.add(&before, -1);
    sums.add(&share, 1);
    for one in [&before, &share] {
        let loser =
            one.taken_from.as_ref().and_then(|uid| snapshot.policies.iter().find(|one| one.uid == *uid));
        let owner = one.claimed_by.as_ref().map(|(policy, _)| policy);
        for policy in loser.map(|policy| &policy.key).into_iter().chain(owner) {
            look_later(ctx, policy.clone());
        }
    }
    match share == Share::default() {
        true => drop(sums.shares.remove(key)),
        false => drop(sums.shares.insert(key.clone(), share)),
    }
}

fn share(template: &Template, snapshot: &Snapshot) -> Share {
    let mark = claim_on(&template.labels, &template.annotations);
    let policy =
        mark.and_then(|mark| snapshot.policies.get(&mark.policy).filter(|policy| mark.is_of(policy)));
    let binding = snapshot.bindings.get(&template.key.binding()).map(AsRef::as_ref);
    let taken_from = template.claim_record().map(|record| record.taken_from).filter(|uid| !uid.is_empty());
    Share {
        claimed_by: policy.map(|policy| (policy.key.clone(), standing(template, binding, policy))),
        taken_from,
    }
}

/// Writes the status of one policy, if it changed.
pub async fn reconcile(ctx: &Ctx, key: &PolicyKey) -> Result<Action, Error> {
    let Some(policy) = ctx.cache.snapshot().policies.get(key).cloned() else {
        return Ok(Action::AwaitChange);
    };
    let templates = {
        let sums = ctx.tally.0.lock().recovered();
        let counts = sums.counts.get(key).copied().unwrap_or_default();
        TemplateCounts { preempted_by: sums.lost.get(&policy.uid).copied().unwrap_or(0), ..counts }
    };
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
    let status =
        PolicyStatus { observed_generation: policy.generation, templates: Some(templates), conditions };
    if status != found.status {
        let version = &found.metadata.resource_version;
        ctx.control.write_status(&path, version, &found.status, &status).await?;
    }
    Ok(Action::AwaitChange)
}
