//! The decision about one template: claim, activation and binding in one answer, exactly what a controller writes.
//! Reconciling and planning both call this; nothing is decided here that the three do not decide.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::Binding;
use api::records::{ClaimRecord, Pin, ROLLOUT_STRATEGY, StrategyRecord, WAITING};
use serde::Serialize;

use crate::activation::{Activation, HoldWhy, activation, made_under};
use crate::admission::{Rejection, rejected};
use crate::binding::{self, Bound, Refusal, Rollout};
use crate::claim::policies::Policies;
use crate::claim::record::{self, Marks};
use crate::claim::{Claim, ClaimReason, Past, claim};
use crate::gates::Gates;
use crate::interpret::Interpretation;
use crate::policy::{Policy, PolicyKey};
use crate::template::Template;

/// What a controller knows when it looks at one template.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f> {
    /// The template.
    pub template: &'f Template,
    /// The binding of that name, whosever it is.
    pub binding: Option<&'f Binding>,
    /// Every policy.
    pub policies: &'f Policies,
    /// Every rollout policy.
    pub rollouts: &'f BTreeMap<PolicyKey, Rollout>,
    /// Switches.
    pub gates: &'f Gates,
}

/// What is to be written for one template.
#[derive(Debug, Clone, PartialEq)]
pub struct Propagation {
    /// Its owner.
    pub claim: Claim,
    /// Whether its binding follows.
    pub activation: Activation,
    /// Labels and annotations the template should have; none if they are right.
    pub template: Option<Marks>,
    /// The binding as it should be; none if it is right, or none is wanted.
    pub binding: Option<Binding>,
    /// Why no binding can be written.
    pub refusal: Option<Refusal>,
}

impl Propagation {
    /// True when everything is as it should be: looking again would change nothing.
    pub fn is_settled(&self) -> bool {
        self.template.is_none() && self.binding.is_none()
    }

    /// Why admission refuses the binding as it should be, or every change of the one that exists.
    pub fn rejection(&self, existing: Option<&Binding>, gates: &Gates) -> Option<Rejection> {
        let existing = existing.filter(|_| self.refusal.is_none());
        self.binding.as_ref().or(existing).and_then(|binding| rejected(binding, gates))
    }

    /// The two reasons in one value.
    pub fn why(&self) -> PropagationWhy<'_> {
        PropagationWhy {
            claim: self.claim.why(),
            activation: &self.activation,
            refusal: self.refusal.as_ref(),
        }
    }
}

/// Why a template is propagated as it is.
#[derive(Debug, Serialize)]
pub struct PropagationWhy<'w> {
    /// Why it is claimed so.
    pub claim: &'w crate::claim::ClaimWhy,
    /// Why its binding follows or waits.
    pub activation: &'w Activation,
    /// Why it has no binding of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<&'w Refusal>,
}

impl std::fmt::Display for PropagationWhy<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}; {}", self.claim, self.activation)?;
        self.refusal.map_or(Ok(()), |refusal| write!(formatter, "; {refusal}"))
    }
}

/// What becomes of a template. `interpret` is asked only when the binding follows, `missing_overrides`
/// names the override policies a policy waits for.
pub fn propagation(
    facts: Facts<'_>,
    interpret: impl FnOnce(&Template, &Policy) -> Interpretation,
    missing_overrides: impl FnOnce(&Policy) -> Vec<String>,
) -> Propagation {
    let Facts { template, gates, .. } = facts;
    let refusal = facts.binding.and_then(|existing| binding::refusal(template, existing));
    // A binding of another template says nothing about this one.
    let bound = facts.binding.filter(|_| refusal.is_none()).map(Bound::of);
    let look = Look { facts, bound: bound.as_ref(), past: Past::of(template, bound.as_ref()) };
    let claim = claim(template, look.past, facts.policies, gates);
    if matches!(claim, Claim::Foreign(_)) {
        let activation = Activation::Hold(HoldWhy::Foreign);
        return Propagation { claim, activation, template: None, binding: None, refusal };
    }
    let written = template.claim_record();
    let record = record::record(template, written.as_ref(), look.bound, &claim);
    let activation = match (claim.policy(), &record) {
        (Some(policy), Some(record)) => {
            activation(template, look.bound, policy, record, missing_overrides(policy), gates)
        }
        _ => Activation::Hold(HoldWhy::Unclaimed),
    };
    let binding = look.binding(&claim, &activation, interpret).filter(|_| refusal.is_none());
    Propagation {
        template: look.marks(&claim, written.as_ref(), record.as_deref()),
        // One that was not copied is as it was.
        binding: binding.and_then(|binding| match binding {
            Cow::Borrowed(_) => None,
            Cow::Owned(written) => (Some(&written) != facts.binding).then_some(written),
        }),
        claim,
        activation,
        refusal,
    }
}

/// The input of one decision about a template: the facts and what the records say about its past.
#[derive(Clone, Copy)]
struct Look<'l> {
    facts: Facts<'l>,
    bound: Option<&'l Bound<'l>>,
    past: Past,
}

impl<'l> Look<'l> {
    /// The binding after this look, a copy only if it changes; none if there is none.
    fn binding(
        self,
        claim: &Claim,
        activation: &Activation,
        interpret: impl FnOnce(&Template, &Policy) -> Interpretation,
    ) -> Option<Cow<'l, Binding>> {
        let (template, policy) = (self.facts.template, claim.policy().map(AsRef::as_ref));
        let (mut written, mut pin) = match (activation, policy, self.bound) {
            (Activation::Follow(_), Some(policy), bound) => {
                let interpretation = interpret(template, policy);
                let (mut written, pin) =
                    binding::binding(template, policy, bound, interpretation, self.facts.gates);
                binding::show(&mut written, policy);
                (written, Some(pin))
            }
            (Activation::Adopt, Some(policy), Some(bound)) => {
                (Cow::Borrowed(bound.binding), Some(binding::adopted(template, policy)))
            }
            (_, _, bound) => (Cow::Borrowed(bound?.binding), bound?.pin.clone()),
        };
        if !record::is_written(&written.metadata.labels, &written.metadata.annotations, policy) {
            binding::put_claim(written.to_mut(), policy);
        }
        self.brake(&mut written, pin.as_mut(), policy);
        if let Some(pin) = pin.filter(|pin| self.bound.and_then(|bound| bound.pin.as_ref()) != Some(pin)) {
            pin.write(&mut written.to_mut().metadata);
        }
        Some(written)
    }

    /// L5, U7, U8: the suspension by the policy in charge, or the last one, or any rollout policy. How a change spreads
    /// is noted with it, so that the brake and what it holds back are one write (G12).
    fn brake(self, written: &mut Cow<'_, Binding>, pin: Option<&mut Pin>, policy: Option<&Policy>) {
        // Only other bindings need it, so their suspension counts (U6); see `dependencies`. And without a pin it is not
        // known which part of the suspension was the policy's, so all of it stays.
        let (Some(_), Some(pin)) = (&written.spec.placement, pin) else { return };
        if let Some(policy) = policy {
            pin.suspension.clone_from(&policy.spec.suspension);
        }
        let rollouts = self.facts.rollouts.values().filter(|rollout| rollout.matches(self.facts.template));
        let suspension =
            binding::suspension(pin.suspension.as_ref(), rollouts, written.spec.suspension.as_ref());
        if written.spec.suspension != suspension {
            written.to_mut().spec.suspension = suspension;
        }
        let recorded = StrategyRecord::read(&written.metadata);
        let rollouts = self.facts.rollouts.values();
        let strategy = binding::strategy(self.facts.template, policy, rollouts, recorded.clone());
        if strategy != recorded {
            match strategy {
                Some(strategy) => strategy.write(&mut written.to_mut().metadata),
                None => drop(written.to_mut().metadata.annotations.remove(ROLLOUT_STRATEGY)),
            }
        }
    }

    /// Labels and annotations the template should have; none if it has them.
    fn marks(
        self,
        claim: &Claim,
        written: Option<&ClaimRecord>,
        claim_record: Option<&ClaimRecord>,
    ) -> Option<Marks> {
        let template = self.facts.template;
        let (policy, waits) = (claim.policy().map(AsRef::as_ref), self.waits(claim, claim_record));
        // What Karmada claimed and bound needs no record: the pin on its binding says as much. A write to the template
        // would give a Deployment another generation, which members receive, and taking over must write to none (C7).
        let taken_over = matches!(claim, Claim::Kept(..)) && written.is_none() && self.bound.is_some();
        let right = record::is_written(&template.labels, &template.annotations, policy)
            && (taken_over || written == claim_record)
            && waits == self.past.waiting;
        if right {
            return None;
        }
        let mut marks = Marks { labels: template.labels.clone(), annotations: template.annotations.clone() };
        match policy {
            Some(policy) => marks.claim(policy),
            None => marks.unclaim(),
        }
        record::write(&mut marks.annotations, claim_record);
        if waits {
            marks.annotations.entry(WAITING.to_owned()).or_insert_with(|| template.digest.clone());
        } else {
            marks.annotations.remove(WAITING);
        }
        Some(marks)
    }

    /// S3: changed while no policy matched. The mark stays until the binding shows that its successor acted, so
    /// that nothing is lost between the two writes. A successor may have made the binding in an earlier life of its
    /// own; that is not what the template waits for, so only a binding made under this claim counts.
    fn waits(self, claim: &Claim, claim_record: Option<&ClaimRecord>) -> bool {
        let Past { bound, changed, waiting, .. } = self.past;
        let Some(claim_record) = claim_record else {
            let unmatched = claim.why().reason == ClaimReason::NoMatch;
            return waiting || (self.facts.gates.static_policy && bound && changed && unmatched);
        };
        let pin = self.bound.and_then(|bound| bound.pin.as_ref());
        let acted = |pin: &Pin| made_under(pin, claim_record) && pin.template == self.facts.template.digest;
        waiting && pin.is_some_and(|pin| !acted(pin))
    }
}
