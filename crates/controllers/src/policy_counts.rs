//! How many templates each policy has, and in which state: counted incrementally, so that a policy's status costs what
//! changed and not what exists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use api::propagation::{RolloutCounts, TemplateCounts};
use decide::claim::claim_on;
use decide::policy_status::{rollout_standing, standing};
use decide::{PolicyKey, Snapshot, Template, TemplateKey};
use supervise::Recovered as _;

/// What each template adds to which policy, and the sums. Clones share it.
#[derive(Clone, Default)]
pub struct PolicyCounts(Arc<Mutex<Sums>>);

#[derive(Default)]
struct Sums {
    shares: BTreeMap<TemplateKey, Share>,
    /// By policy.
    counts: BTreeMap<PolicyKey, Counts>,
    /// Templates that were taken from a policy, by its uid.
    lost: BTreeMap<String, i32>,
}

/// How the templates of a policy, or one of them, fare.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// Who follows.
    pub templates: TemplateCounts,
    /// How far their rollouts are.
    pub rollouts: RolloutCounts,
}

impl Counts {
    fn add(&mut self, one: &Counts, sign: i32) {
        let (sum, more) = (&mut self.templates, &one.templates);
        sum.claimed += sign * more.claimed;
        sum.up_to_date += sign * more.up_to_date;
        sum.pending_activation += sign * more.pending_activation;
        sum.suspended += sign * more.suspended;
        sum.preempted_from += sign * more.preempted_from;
        let (sum, more) = (&mut self.rollouts, &one.rollouts);
        sum.templates += sign * more.templates;
        sum.in_progress += sign * more.in_progress;
        sum.paused += sign * more.paused;
        sum.failed += sign * more.failed;
    }
}

/// What one template adds.
#[derive(Clone, Default, PartialEq)]
struct Share {
    claimed_by: Option<(PolicyKey, Counts)>,
    taken_from: Option<String>,
}

impl PolicyCounts {
    /// Held for moments.
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().recovered()
    }

    /// Counts a template as it is now; returns the policies whose counts changed.
    pub fn recount(&self, snapshot: &Snapshot, key: &TemplateKey) -> Vec<PolicyKey> {
        let share = snapshot.templates.get(key).map(|template| share(template, snapshot)).unwrap_or_default();
        let mut sums = self.sums();
        let before = sums.shares.get(key).cloned().unwrap_or_default();
        if before == share {
            return Vec::new();
        }
        sums.add(&before, -1);
        sums.add(&share, 1);
        let changed = [&before, &share].into_iter().flat_map(|share| share.policies(snapshot)).collect();
        match share == Share::default() {
            true => drop(sums.shares.remove(key)),
            false => drop(sums.shares.insert(key.clone(), share)),
        }
        changed
    }

    /// The counts of a policy, of which the uid is known.
    pub fn of(&self, key: &PolicyKey, uid: &str) -> Counts {
        let sums = self.sums();
        let mut counts = sums.counts.get(key).copied().unwrap_or_default();
        counts.templates.preempted_by = sums.lost.get(uid).copied().unwrap_or(0);
        counts
    }
}

impl Share {
    /// The policies that it counts for: the one that lost the template, and the one that has it.
    fn policies(&self, snapshot: &Snapshot) -> Vec<PolicyKey> {
        let lost = |uid: &String| snapshot.policies.iter().find(|policy| policy.uid == *uid);
        let loser = self.taken_from.as_ref().and_then(lost).map(|policy| &policy.key);
        let owner = self.claimed_by.as_ref().map(|(policy, _)| policy);
        loser.into_iter().chain(owner).cloned().collect()
    }
}

impl Sums {
    fn add(&mut self, share: &Share, sign: i32) {
        if let Some((policy, one)) = &share.claimed_by {
            let sum = self.counts.entry(policy.clone()).or_default();
            sum.add(one, sign);
            if sum.templates.claimed == 0 {
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

fn share(template: &Template, snapshot: &Snapshot) -> Share {
    let mark = claim_on(&template.labels, &template.annotations);
    let policy =
        mark.and_then(|mark| snapshot.policies.get(&mark.policy).filter(|policy| mark.is_of(policy)));
    let binding = snapshot.bindings.get(&template.key.binding()).map(AsRef::as_ref);
    let taken_from = template.claim_record().map(|record| record.taken_from).filter(|uid| !uid.is_empty());
    Share {
        claimed_by: policy.map(|policy| {
            let templates = standing(template, binding, policy);
            (policy.key.clone(), Counts { templates, rollouts: rollout_standing(binding) })
        }),
        taken_from,
    }
}
