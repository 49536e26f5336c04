//! Writes a claim: Karmada's labels and annotations, and our record of the state at that time. Decides nothing but
//! which came first, template or policy (R3).

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::records::{CLAIM, ClaimRecord, PolicyMark};
use api::{Scope, annotations, labels};

use super::{Claim, ClaimReason, ClaimSeen, claim_on};
use crate::bound::Bound;
use crate::policy::{Policy, claim_marks};
use crate::template::Template;

/// Labels and annotations of an object, the part of it that claims live in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

const CLAIM_LABELS: [&str; 2] =
    [labels::PROPAGATION_POLICY_PERMANENT_ID, labels::CLUSTER_PROPAGATION_POLICY_PERMANENT_ID];
const CLAIM_ANNOTATIONS: [&str; 3] = [
    annotations::PROPAGATION_POLICY_NAMESPACE,
    annotations::PROPAGATION_POLICY_NAME,
    annotations::CLUSTER_PROPAGATION_POLICY_NAME,
];

/// True when exactly this claim is written, or none is.
pub fn is_written(
    labels_of: &BTreeMap<String, String>,
    annotations_of: &BTreeMap<String, String>,
    policy: Option<&Policy>,
) -> bool {
    let labels = CLAIM_LABELS.iter().filter(|key| labels_of.contains_key(**key)).count();
    let annotations = CLAIM_ANNOTATIONS.iter().filter(|key| annotations_of.contains_key(**key)).count();
    match policy {
        None => labels + annotations == 0,
        Some(policy) => {
            let marks = usize::from(policy.scope() == Scope::Namespaced) + 1;
            (labels, annotations) == (1, marks)
                && ClaimSeen::on(labels_of, annotations_of).is_some_and(|claim| claim.is_of(policy))
        }
    }
}

impl Marks {
    /// Writes the policy's claim in place of any other.
    pub fn claim(&mut self, policy: &Policy) {
        self.unclaim();
        let marks = claim_marks(policy);
        self.labels.insert(marks.label.0.to_owned(), marks.label.1);
        self.annotations.extend(marks.annotations.into_iter().map(|(key, value)| (key.to_owned(), value)));
    }

    /// Takes every claim away.
    pub fn unclaim(&mut self) {
        self.labels.retain(|key, _| !CLAIM_LABELS.contains(&key.as_str()));
        self.annotations.retain(|key, _| !CLAIM_ANNOTATIONS.contains(&key.as_str()));
    }
}

/// The record of a claim: the one that is written on the template while its owner keeps it, else a new one.
pub fn record<'w>(
    template: &Template,
    written: Option<&'w ClaimRecord>,
    bound: Option<&Bound<'_>>,
    claim: &Claim,
) -> Option<Cow<'w, ClaimRecord>> {
    let policy = claim.policy()?;
    let own = written.filter(|record| record.policy.uid == policy.uid);
    Some(match (claim, own) {
        (Claim::Kept(..), Some(record)) => Cow::Borrowed(record),
        (Claim::Kept(..), None) => Cow::Owned(adopted(template, bound, policy)),
        _ => Cow::Owned(ClaimRecord {
            policy: policy.mark(),
            template: template.digest.clone(),
            template_first: template_first(template, written, bound, policy),
            taken_from: taken_from(template, written, claim),
            reconcile: template.reconcile().to_owned(),
        }),
    })
}

/// Karmada's claim without our record. A lazy policy that claims and made no binding is waiting there too; one that
/// made a binding has already acted. Its generation is unknown, so it is 0, the same as in the pin that such a binding
/// gets.
fn adopted(template: &Template, bound: Option<&Bound<'_>>, policy: &Policy) -> ClaimRecord {
    ClaimRecord {
        policy: PolicyMark { uid: policy.uid.clone(), generation: 0 },
        template: template.digest.clone(),
        template_first: bound.is_none(),
        taken_from: String::new(),
        reconcile: template.reconcile().to_owned(),
    }
}

/// R3: did the policy come to a template that was already there? A template that is still what its binding
/// was made from, or what an earlier claim was waiting with, has not moved, so the policies have. Otherwise
/// the stamps of the API server tell; inside one second the resource versions do.
fn template_first(
    template: &Template,
    written: Option<&ClaimRecord>,
    bound: Option<&Bound<'_>>,
    policy: &Policy,
) -> bool {
    let unmoved = match bound {
        Some(bound) => bound.pin.is_none() || bound.is_of(template),
        None => written.is_some_and(|earlier| earlier.template_first && earlier.template == template.digest),
    };
    unmoved || template.changed < policy.selects_since
}

fn taken_from(template: &Template, written: Option<&ClaimRecord>, claim: &Claim) -> String {
    match (&claim.why().reason, written) {
        (ClaimReason::Preempted { .. }, Some(record)) => record.policy.uid.clone(),
        (ClaimReason::Preempted { .. }, None) => {
            claim_on(&template.labels, &template.annotations).map(|mark| mark.id).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// Puts the record among the annotations, or takes it away.
pub fn write(annotations: &mut BTreeMap<String, String>, record: Option<&ClaimRecord>) {
    match record {
        Some(record) => {
            let json = serde_json::to_string(record).expect("strings, numbers and booleans are always JSON");
            annotations.insert(CLAIM.to_owned(), json);
        }
        None => {
            annotations.remove(CLAIM);
        }
    }
}
