//! Admission warnings: what the author of a policy should know before it acts, such as its effects on other policies
//! and theirs on it. Promises nothing that a plan does not show.

use std::collections::{BTreeMap, BTreeSet};

use crate::claim::{Claim, ClaimReason, ClaimWhy, TieBreak};
use crate::plan::{NOWHERE, Plan};
use crate::policy::{Policy, PolicyKey};
use crate::snapshot::{Interpreters, Snapshot};
use crate::template::TemplateKey;
use crate::unknown_clusters;

mod remedy;

/// How many other policies are named in one sentence.
const NAMED_MAX: usize = 3;
/// How many sentences are said about one write.
const SENTENCES_MAX: usize = 10;

/// What there is to say about a policy, there or gone, in the world after its change, given the plan of that.
pub fn warnings(
    after: &Snapshot,
    policy: &PolicyKey,
    plan: &Plan,
    interpreters: Interpreters<'_>,
) -> Vec<String> {
    totals(plan)
        .into_iter()
        .chain(nowhere(plan))
        .chain(admission_warnings(after, policy, interpreters))
        .collect()
}

/// What a change does, in numbers; none if it does nothing.
pub fn totals(plan: &Plan) -> Option<String> {
    (!plan.is_empty()).then(|| format!("{} See `longshore plan`.", plan.totals))
}

/// Which templates run nowhere after a change; none if each has a cluster.
pub fn nowhere(plan: &Plan) -> Option<String> {
    let (mut named, mut count) = (Vec::new(), 0);
    for one in plan.nowhere() {
        count += 1;
        if count <= NAMED_MAX {
            named.push(one.template.to_string());
        }
    }
    let more = if count > NAMED_MAX { format!(" and {} more", count - NAMED_MAX) } else { String::new() };
    let templates = if count == 1 { "1 template" } else { &format!("{count} templates") };
    (count > 0).then(|| format!("{templates} {NOWHERE}: {}{more}.", named.join(", ")))
}

/// The same warnings, for a caller that already has the plan.
pub fn admission_warnings(
    after: &Snapshot,
    policy: &PolicyKey,
    interpreters: Interpreters<'_>,
) -> Vec<String> {
    remarks_naming(after, policy, interpreters, &|_| true)
}

/// The same for a reader who may see only some policies by name; the others are counted.
pub fn remarks_naming(
    after: &Snapshot,
    policy: &PolicyKey,
    interpreters: Interpreters<'_>,
    may_name: &dyn Fn(&PolicyKey) -> bool,
) -> Vec<String> {
    let Some(policy) = after.policies.get(policy) else { return Vec::new() };
    let unknown = unknown_clusters::in_policy(&policy.spec, &after.clusters);
    let rivals = Rivals::of(after, policy, interpreters);
    let unknown = unknown.iter().map(ToString::to_string);
    unknown.chain(rivals.sentences(may_name)).chain(idle_selectors(after, policy)).collect()
}

/// Other policies that match what this one matches, and for how many templates.
#[derive(Default)]
struct Rivals {
    /// They have it.
    before: BTreeMap<PolicyKey, usize>,
    /// This one has it.
    behind: BTreeMap<PolicyKey, usize>,
    /// Policies that only the alphabetical order of their names ranks.
    ties: BTreeMap<PolicyKey, usize>,
    /// How the first template that another policy keeps could be had.
    remedy: Option<(PolicyKey, String)>,
}

impl Rivals {
    fn of(snapshot: &Snapshot, policy: &Policy, interpreters: Interpreters<'_>) -> Self {
        let mut rivals = Self::default();
        for key in snapshot.templates.touched(None, Some(policy)) {
            if let Some(decided) = snapshot.look(&key, interpreters) {
                rivals.add(&policy.key, decided.claim.why());
                rivals.add_remedy(snapshot, policy, &key, &decided.claim);
            }
        }
        rivals
    }

    fn add(&mut self, own: &PolicyKey, why: &ClaimWhy) {
        if !why.candidates.iter().any(|candidate| candidate.policy == *own) {
            return;
        }
        let owner = match &why.reason {
            ClaimReason::Best { policy, tie_break, second } => {
                if let (TieBreak::Name, Some(second)) = (tie_break, second) {
                    let other =
                        if policy == own { Some(second) } else { Some(policy).filter(|_| second == own) };
                    other.into_iter().for_each(|other| count(&mut self.ties, other));
                }
                policy
            }
            ClaimReason::Kept { policy, .. } | ClaimReason::Preempted { by: policy, .. } => policy,
            ClaimReason::Deleting
            | ClaimReason::Foreign { .. }
            | ClaimReason::SkippedResources
            | ClaimReason::NoMatch
            | ClaimReason::Unclaimed => return,
        };
        if owner != own {
            return count(&mut self.before, owner);
        }
        let others = why.candidates.iter().map(|candidate| &candidate.policy).filter(|other| *other != own);
        others.for_each(|other| count(&mut self.behind, other));
    }

    /// Only where this policy ranks higher: a policy that ranks lower is not meant to have it.
    fn add_remedy(&mut self, snapshot: &Snapshot, policy: &Policy, key: &TemplateKey, claim: &Claim) {
        let ClaimReason::Kept { better: Some(better), .. } = &claim.why().reason else { return };
        if self.remedy.is_none()
            && *better == policy.key
            && let Some((owner, template)) = claim.policy().zip(snapshot.templates.get(key))
        {
            self.remedy = Some((owner.key.clone(), remedy::sentence(snapshot, policy, owner, template)));
        }
    }

    fn sentences(&self, may_name: &dyn Fn(&PolicyKey) -> bool) -> impl Iterator<Item = String> {
        let named = |rivals: &BTreeMap<PolicyKey, usize>| named(rivals, may_name);
        let remedy = self.remedy.as_ref().filter(|(owner, _)| may_name(owner)).map(|(_, text)| text.clone());
        let before = named(&self.before)
            .map(|names| format!("Templates that it selects belong to other policies: {names}."));
        let behind = named(&self.behind)
            .map(|names| format!("Other policies select templates that belong to it: {names}."));
        let ties = named(&self.ties).map(|names| {
            format!(
                "Against {names}, only the alphabetical order of the names decides; set spec.priority to \
                 choose."
            )
        });
        [before, remedy, behind, ties].into_iter().flatten()
    }
}

fn count(rivals: &mut BTreeMap<PolicyKey, usize>, policy: &PolicyKey) {
    match rivals.get_mut(policy) {
        Some(count) => *count += 1,
        None => drop(rivals.insert(policy.clone(), 1)),
    }
}

/// Those with the most templates first; none if there is none.
fn named(rivals: &BTreeMap<PolicyKey, usize>, may_name: &dyn Fn(&PolicyKey) -> bool) -> Option<String> {
    let mut sorted: Vec<(&PolicyKey, &usize)> = rivals.iter().filter(|(key, _)| may_name(key)).collect();
    let unnamed = rivals.len() - sorted.len();
    sorted.sort_by_key(|(_, templates)| std::cmp::Reverse(**templates));
    let shown = sorted.iter().take(NAMED_MAX).map(|(policy, templates)| format!("{policy} ({templates})"));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if sorted.len() > NAMED_MAX {
        text.push_str(&format!(" and {} more", sorted.len() - NAMED_MAX));
    }
    if unnamed > 0 {
        let and = if text.is_empty() { "" } else { " and " };
        text.push_str(&format!("{and}{unnamed} that you cannot read"));
    }
    (!text.is_empty()).then_some(text)
}

/// Selectors that mean nothing that is there. Each is looked up by itself, so the cost grows with their number and what
/// they mean, not with the square of it.
fn idle_selectors(snapshot: &Snapshot, policy: &Policy) -> Vec<String> {
    let mut alone = policy.clone();
    let selectors = std::mem::take(&mut alone.spec.resource_selectors);
    let mut sentences = Vec::new();
    let mut more = 0;
    for (place, selector) in selectors.into_iter().enumerate() {
        alone.spec.resource_selectors = vec![selector];
        if snapshot.templates.selects_any(&alone) {
            continue;
        }
        match sentences.len() < NAMED_MAX {
            true => sentences.push(format!(
                "spec.resourceSelectors[{place}] selects no {} that exists now.",
                alone.spec.resource_selectors[0].kind
            )),
            false => more += 1,
        }
    }
    sentences.extend(
        (more > 0).then(|| format!("{more} more of spec.resourceSelectors select nothing that exists now.")),
    );
    sentences
}

/// What a person can read of it: each sentence once, the first ones, and how many there are besides.
pub fn capped(mut sentences: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    sentences.retain(|sentence| seen.insert(sentence.clone()));
    let more = sentences.len().saturating_sub(SENTENCES_MAX);
    sentences.truncate(SENTENCES_MAX);
    sentences.extend((more > 0).then(|| format!("… and {more} more.")));
    sentences
}

#[cfg(test)]
mod tests;
