//! The claim: which policy owns a template. Level-based: the answer follows from the existing policies and the records,
//! never from what happened last. `activation` decides whether propagation follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{Scope, annotations, labels};

use crate::bound::Bound;
use crate::gates::Gates;
use crate::policy::{Policy, PolicyKey};
use crate::selector::{Specificity, best_match, is_excluded, labels_match, specificity};
use crate::template::Template;

pub mod policies;
mod rank;
mod reason;
pub mod record;
pub mod templates;

pub use rank::{Candidate, TieBreak};
pub use reason::{Blocked, ClaimReason, ClaimWhy};

use policies::Policies;

/// The policy that owns a template, and why.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// The policy that claims it already.
    Kept(Arc<Policy>, ClaimWhy),
    /// A policy that claims it from now on.
    Taken(Arc<Policy>, ClaimWhy),
    /// No policy owns it; a claim that is still written on it is removed.
    None(ClaimWhy),
    /// Not for policies to say: whatever is written on it stays.
    Foreign(ClaimWhy),
}

impl Claim {
    /// The owner.
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        match self {
            Claim::Kept(policy, _) | Claim::Taken(policy, _) => Some(policy),
            Claim::None(_) | Claim::Foreign(_) => None,
        }
    }

    /// Why.
    pub fn why(&self) -> &ClaimWhy {
        match self {
            Claim::Kept(_, why) | Claim::Taken(_, why) | Claim::None(why) | Claim::Foreign(why) => why,
        }
    }
}

/// What the records say about the past of a template; all that static mode needs to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// It has a binding.
    pub bound: bool,
    /// Its user changed it since its binding or its claim was made.
    pub changed: bool,
    /// It is on the waiting list (S3).
    pub waiting: bool,
    /// `longshore reconcile` asked for a policy, and its binding has not answered yet.
    pub asked: bool,
}

impl Past {
    /// Reads the records.
    pub fn of(template: &Template, bound: Option<&Bound<'_>>) -> Past {
        let changed = match bound {
            // A binding that Karmada made has no pin; it is up to date with its template.
            Some(bound) => bound.pin.as_ref().is_some_and(|pin| pin.template != template.digest),
            None => template.claim_record().is_none_or(|record| record.template != template.digest),
        };
        let pin = bound.and_then(|bound| bound.pin.as_ref());
        let asked =
            pin.is_some_and(|pin| !template.reconcile().is_empty() && template.reconcile() != pin.reconcile);
        Past { bound: bound.is_some(), changed, waiting: template.is_waiting(), asked }
    }
}

impl Past {
    /// True when a template that no policy claims stays as it is.
    fn is_at_rest(self) -> bool {
        self.bound && !self.changed && !self.waiting && !self.asked
    }
}

/// Which policy owns the template.
pub fn claim(template: &Template, past: Past, policies: &Policies, gates: &Gates) -> Claim {
    if let Some(reason) = foreign(template) {
        return Claim::Foreign(ClaimWhy { reason, candidates: Vec::new() });
    }
    let candidates = rank::candidates(template, policies);
    let current = ClaimSeen::on(&template.labels, &template.annotations);
    let owner = current.as_ref().and_then(|mark| candidates.iter().find(|(policy, _)| mark.is_of(policy)));
    let skipped = gates.skipped.has(&template.key);
    let decided = match owner {
        // The owner keeps it, so that nothing that runs is abandoned; no other policy gets it.
        Some((owner, _)) if skipped => keep(owner, &candidates, Some(Blocked::SkippedResources)),
        None if skipped => {
            return Claim::None(ClaimWhy { reason: ClaimReason::SkippedResources, candidates: Vec::new() });
        }
        Some((owner, _)) if gates.static_policy && !past.changed => {
            keep(owner, &candidates, Some(Blocked::Static))
        }
        Some((owner, _)) if !gates.static_policy => contested(owner, template, &candidates, gates),
        // S4: being un-claimed is no trigger by itself; to be asked for is one.
        None if gates.static_policy && past.is_at_rest() => (None, ClaimReason::Unclaimed),
        _ => best(&candidates),
    };
    let why = ClaimWhy { reason: decided.1, candidates: rank::listed(candidates) };
    match decided.0 {
        Some(policy) if current.is_some_and(|mark| mark.is_of(&policy)) => Claim::Kept(policy, why),
        Some(policy) => Claim::Taken(policy, why),
        None => Claim::None(why),
    }
}

type Decided = (Option<Arc<Policy>>, ClaimReason);
type Ranked<'p> = [(&'p Arc<Policy>, Candidate)];

fn foreign(template: &Template) -> Option<ClaimReason> {
    if template.deleting {
        return Some(ClaimReason::Deleting);
    }
    let owner = template.labels.get(labels::TEMPLATE_CLAIMED_BY).filter(|owner| !owner.is_empty())?;
    Some(ClaimReason::Foreign { owner: owner.clone() })
}

fn best(candidates: &Ranked) -> Decided {
    let Some((policy, _)) = candidates.first() else { return (None, ClaimReason::NoMatch) };
    let (tie_break, second) = rank::tie_break(candidates);
    let reason = ClaimReason::Best { policy: policy.key.clone(), tie_break, second };
    (Some(Arc::clone(policy)), reason)
}

fn keep(owner: &Arc<Policy>, candidates: &Ranked, blocked: Option<Blocked>) -> Decided {
    let better = candidates.first().map(|(policy, _)| policy.key.clone()).filter(|best| *best != owner.key);
    let blocked = better.is_some().then_some(blocked).flatten();
    (Some(Arc::clone(owner)), ClaimReason::Kept { policy: owner.key.clone(), better, blocked })
}

/// The owner keeps its template unless another policy may preempt it (P2).
fn contested(owner: &Arc<Policy>, template: &Template, candidates: &Ranked, gates: &Gates) -> Decided {
    let mut blocked = None;
    for (policy, _) in candidates.iter().take_while(|(policy, _)| policy.key != owner.key) {
        match may_take(policy, owner, template, gates) {
            Ok(()) => {
                let reason = ClaimReason::Preempted {
                    by: policy.key.clone(),
                    from: owner.key.clone(),
                    by_priority: policy.spec.priority(),
                    from_priority: owner.spec.priority(),
                };
                return (Some(Arc::clone(policy)), reason);
            }
            Err(reason) => blocked = blocked.or(Some(reason)),
        }
    }
    keep(owner, candidates, blocked)
}

/// P1, P2 and P4. Uses the current priorities, so when the owner's priority falls from A to B every policy above B has
/// a chance, A itself included (P3).
pub(crate) fn may_take(
    policy: &Policy,
    owner: &Policy,
    template: &Template,
    gates: &Gates,
) -> Result<(), Blocked> {
    if policy.spec.preemption() != api::propagation::Preemption::Always {
        return Err(Blocked::Never);
    }
    if !gates.may_preempt() {
        return Err(Blocked::GateOff);
    }
    let higher = policy.spec.priority() > owner.spec.priority();
    match (policy.scope(), owner.scope()) {
        (Scope::Cluster, Scope::Namespaced) => return Err(Blocked::Scope),
        (Scope::Namespaced, Scope::Cluster) => {}
        _ if !higher => return Err(Blocked::Priority),
        _ => {}
    }
    if !takes(policy, template) {
        return Err(Blocked::Unbounded);
    }
    Ok(())
}

/// True when a bounded selector of the policy means the template; a label selector narrows it even beside
/// a name (P4).
fn takes(policy: &Policy, template: &Template) -> bool {
    let labels = &template.labels;
    policy.spec.resource_selectors.iter().any(|selector| {
        let bounded = policy.scope() == Scope::Namespaced
            || !selector.name.is_empty()
            || !selector.namespace.is_empty();
        bounded
            && specificity(selector, &template.key, labels).is_some()
            && selector.label_selector.as_ref().is_none_or(|wanted| labels_match(wanted, labels))
    })
}

/// How well a policy means a template, exclusions respected; none if it does not.
pub fn matched(policy: &Policy, template: &Template) -> Option<Specificity> {
    let in_reach = match policy.scope() {
        Scope::Namespaced => policy.key.namespace == template.key.namespace,
        Scope::Cluster => true,
    };
    if policy.deleting || !in_reach {
        return None;
    }
    let spec = &policy.spec;
    best_match(&spec.resource_selectors, &spec.exclude_resource_selectors, &template.key, &template.labels)
}

/// True when the policy selects the template but leaves it out (B2).
pub fn leaves_out(policy: &Policy, template: &Template) -> bool {
    let spec = &policy.spec;
    is_excluded(&spec.resource_selectors, &spec.exclude_resource_selectors, &template.key, &template.labels)
}

/// The claim that is written on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimMark {
    /// Which policy it names.
    pub policy: PolicyKey,
    /// The permanent id of that policy when it claimed.
    pub id: String,
}

impl ClaimMark {
    /// True when it is this policy's, not that of an earlier one with the same name.
    pub fn is_of(&self, policy: &Policy) -> bool {
        self.policy == policy.key && self.id == policy.id()
    }
}

/// Reads the claim on a template or binding; as in Karmada, an incomplete one is none.
pub fn claim_on(
    labels_of: &BTreeMap<String, String>,
    annotations_of: &BTreeMap<String, String>,
) -> Option<ClaimMark> {
    ClaimSeen::on(labels_of, annotations_of).map(ClaimSeen::mark)
}

/// The same, as it stands on the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimSeen<'o> {
    pub namespace: &'o str,
    pub name: &'o str,
    pub id: &'o str,
}

impl<'o> ClaimSeen<'o> {
    pub fn on(
        labels_of: &'o BTreeMap<String, String>,
        annotations_of: &'o BTreeMap<String, String>,
    ) -> Option<ClaimSeen<'o>> {
        let set = |map: &'o BTreeMap<String, String>, key: &str| {
            map.get(key).map(String::as_str).filter(|value| !value.is_empty())
        };
        let namespaced = || {
            let namespace = set(annotations_of, annotations::PROPAGATION_POLICY_NAMESPACE)?;
            let name = set(annotations_of, annotations::PROPAGATION_POLICY_NAME)?;
            let id = set(labels_of, labels::PROPAGATION_POLICY_PERMANENT_ID)?;
            Some(ClaimSeen { namespace, name, id })
        };
        let cluster_scoped = || {
            let name = set(annotations_of, annotations::CLUSTER_PROPAGATION_POLICY_NAME)?;
            let id = set(labels_of, labels::CLUSTER_PROPAGATION_POLICY_PERMANENT_ID)?;
            Some(ClaimSeen { namespace: "", name, id })
        };
        namespaced().or_else(cluster_scoped)
    }

    pub fn is_of(&self, policy: &Policy) -> bool {
        self.name == policy.key.name && self.namespace == policy.key.namespace && self.id == policy.id()
    }

    pub fn policy(self) -> PolicyKey {
        PolicyKey { namespace: self.namespace.to_owned(), name: self.name.to_owned() }
    }

    fn mark(self) -> ClaimMark {
        ClaimMark { policy: self.policy(), id: self.id.to_owned() }
    }
}

#[cfg(test)]
mod tests;
