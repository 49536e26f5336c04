//! What becomes of one template: claim, activation and binding in one answer, exactly what a controller
//! writes. Reconciling and planning both call this; nothing is decided here that the three do not decide.

use std::collections::BTreeMap;

use api::Binding;
use api::records::{Pin, WAITING};
use serde::Serialize;

use crate::activation::{Activation, HoldWhy, activation};
use crate::binding::{self, Interpretation, Refusal, Rollout};
use crate::claim::policies::Policies;
use crate::claim::record::{self, Marks};
use crate::claim::{Claim, ClaimReason, Past, claim};
use crate::gates::Gates;
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
    /// Who owns it.
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
    // Somebody else's binding says nothing about this template.
    let existing = facts.binding.filter(|_| refusal.is_none());
    let past = Past::of(template, existing);
    let claim = claim(template, past, facts.policies, gates);
    let record = record::record(template, existing, &claim);
    let activation = match (&claim, &record) {
        (Claim::Foreign(_), _) => Activation::Hold(HoldWhy::Foreign),
        (claim, Some(record)) => match claim.policy() {
            Some(policy) => activation(template, existing, policy, record, missing_overrides(policy), gates),
            None => Activation::Hold(HoldWhy::Unclaimed),
        },
        _ => Activation::Hold(HoldWhy::Unclaimed),
    };
    let written = match &claim {
        Claim::Foreign(_) => None,
        _ => bound(facts, existing, &claim, &activation, interpret).filter(|_| refusal.is_none()),
    };
    let marks = match &claim {
        Claim::Foreign(_) => None,
        _ => Some(marks(facts, existing, past, &claim, record.as_ref())),
    };
    Propagation {
        template: marks
            .filter(|marks| marks.labels != template.labels || marks.annotations != template.annotations),
        binding: written.filter(|written| Some(written) != existing),
        claim,
        activation,
        refusal,
    }
}

/// The binding after this look; none if there is none.
fn bound(
    facts: Facts<'_>,
    existing: Option<&Binding>,
    claim: &Claim,
    activation: &Activation,
    interpret: impl FnOnce(&Template, &Policy) -> Interpretation,
) -> Option<Binding> {
    let policy = claim.policy().map(AsRef::as_ref);
    let written = match (activation, policy, existing) {
        (Activation::Follow(_), Some(policy), existing) => {
            let interpretation = interpret(facts.template, policy);
            binding::binding(facts.template, policy, existing, &interpretation, facts.gates)
        }
        (Activation::Adopt, Some(policy), Some(existing)) => {
            binding::adopted(facts.template, policy, existing)
        }
        (_, _, existing) => existing?.clone(),
    };
    Some(braked(facts, binding::with_claim(written, policy), policy))
}

/// L5, U7, U8: the brake of the policy in charge, or of the last one, or of any rollout policy.
fn braked(facts: Facts<'_>, mut written: Binding, policy: Option<&Policy>) -> Binding {
    if written.spec.placement.is_none() {
        // Only other bindings need it, so their brakes count (U6); see `dependencies`.
        return written;
    }
    let mut pin = Pin::read(&written.metadata);
    if let (Some(policy), Some(pin)) = (policy, &mut pin) {
        pin.suspension.clone_from(&policy.spec.suspension);
        pin.write(&mut written.metadata);
    }
    // Without a pin nobody knows which part of the brake was the policy's, so it all stays.
    let Some(pin) = pin else { return written };
    let rollouts = facts.rollouts.values().filter(|rollout| rollout.matches(facts.template));
    let existing = written.spec.suspension.take();
    written.spec.suspension = binding::suspension(pin.suspension.as_ref(), rollouts, existing.as_ref());
    written
}

fn marks(
    facts: Facts<'_>,
    existing: Option<&Binding>,
    past: Past,
    claim: &Claim,
    claim_record: Option<&api::records::ClaimRecord>,
) -> Marks {
    let template = facts.template;
    let mut marks = Marks { labels: template.labels.clone(), annotations: template.annotations.clone() };
    match claim.policy() {
        Some(policy) => marks.claim(policy),
        None => marks.unclaim(),
    }
    record::write(&mut marks.annotations, claim_record);
    if waits(facts, existing, past, claim) {
        marks.annotations.entry(WAITING.to_owned()).or_insert_with(|| template.digest.clone());
    } else {
        marks.annotations.remove(WAITING);
    }
    marks
}

/// S3: changed while no policy matched. The mark stays until the binding shows that its successor acted,
/// so that nothing is lost between the two writes.
fn waits(facts: Facts<'_>, existing: Option<&Binding>, past: Past, claim: &Claim) -> bool {
    match claim.policy() {
        None => {
            let unmatched = claim.why().reason == ClaimReason::NoMatch;
            past.waiting || (facts.gates.static_policy && past.bound && past.changed && unmatched)
        }
        Some(policy) => {
            let pin = existing.and_then(|existing| Pin::read(&existing.metadata));
            past.waiting
                && pin
                    .is_some_and(|pin| pin.policy.uid != policy.uid || pin.template != facts.template.digest)
        }
    }
}
