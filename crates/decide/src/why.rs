//! The explanation behind `why`: the reasons of all decisions about one template, in one value: every policy that
//! matches or nearly does, what waits, where it runs and why not elsewhere. Decides nothing.

use std::fmt;

use api::annotations::APPLIED_PLACEMENT;
use api::binding::LAST_COPY_KEPT;
use api::records::Pin;
use api::{Binding, Scope};
use serde::{Deserialize, Serialize};

use crate::activation::{Activation, HoldWhy};
use crate::admission::Rejection;
use crate::binding::{Refusal, adopted, follows, is_held};
use crate::claim::{Claim, ClaimWhy, leaves_out, matched};
use crate::conditions;
use crate::orphans::{Orphan, orphan};
use crate::placement::{Placement, placement};
use crate::policy::{Policy, PolicyKey};
use crate::propagation::Propagation;
use crate::selector::specificity;
use crate::snapshot::{Interpreters, Snapshot};
use crate::template::{BindingKey, Template, TemplateKey};
use crate::works::Frozen;

mod advice;
mod clusters;
mod holds;
mod rivals;
mod staging;
mod staying;

pub use advice::{Step, steps};
pub use clusters::{ClusterWhy, Verdict};
pub use holds::{Hold, Holder};
pub use rivals::{Lost, Rival};
pub use staging::{ClusterStaging, Staging};
pub use staying::{Awaited, NotApplied, Staying, staying};

/// Everything there is to say about one template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The template.
    pub template: TemplateKey,
    /// The policy that owns it; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<PolicyKey>,
    /// Why, and all policies that match.
    pub claim: ClaimWhy,
    /// The other policies that match, and why each lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Rival>,
    /// The policy from which the owner took it by preemption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<Origin>,
    /// Policies that speak of its kind and do not match, and why not.
    pub bystanders: Vec<Bystander>,
    /// Whether its binding follows, and why.
    pub activation: Activation,
    /// What its binding was made from; `None` if there is no binding, or it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_effect: Option<InEffect>,
    /// It runs although no policy claims it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphaned: Option<Orphan>,
    /// It is on the waiting list of static policies (S3).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_policy: bool,
    /// Why nothing newer of it reaches the members (R2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Frozen>,
    /// Why it has no binding of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// Why admission refuses every change of its binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Rejection>,
    /// Bindings that take it along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_by: Vec<BindingKey>,
    /// Where it would be placed if that were decided now, with every cluster that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// What a change of the template would lead to, if policies wait for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
    /// Every cluster and its part in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterWhy>,
    /// Copies that stay until others are applied (M1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staying: Option<Staying>,
    /// How a change spreads over its clusters, if it does in stages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staging: Option<Staging>,
    /// Why copies stay that should leave, where nothing else fits (M2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_copy: Option<String>,
    /// What suspends it, and where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Hold>,
    /// Chosen clusters to which nothing is written now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspended: Vec<String>,
}

/// What comes after what is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// Its owner then.
    pub policy: PolicyKey,
    /// Where it runs then.
    pub placement: Placement,
}

/// What a binding was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InEffect {
    /// The policy.
    pub policy: Origin,
    /// Its generation then; 0 for a binding that Karmada made.
    pub generation: i64,
    /// The owner's generation now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<i64>,
    /// The template was changed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub template_changed: bool,
    /// It is what the owner says now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_current: bool,
}

/// A policy that a record names by its uid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The uid.
    pub uid: String,
    /// Its name, if it still exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyKey>,
}

impl Why {
    /// True when the binding was made from the owner and the template as they are now: nothing waits.
    pub fn is_up_to_date(&self) -> bool {
        let is_newest = |effect: &InEffect| {
            effect.policy.policy == self.owner && effect.is_current && !effect.template_changed
        };
        self.owner.is_some() && self.in_effect.as_ref().is_some_and(is_newest)
    }
}

impl Origin {
    fn of(snapshot: &Snapshot, uid: &str) -> Self {
        let found = snapshot.policies.iter().find(|policy| policy.uid == uid);
        Self { uid: uid.to_owned(), policy: found.map(|policy| policy.key.clone()) }
    }
}

/// A policy of the same kind that does not match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bystander {
    /// The policy.
    pub policy: PolicyKey,
    /// What does not fit.
    pub because: Mismatch,
}

/// What does not fit: the nearest any of its selectors came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mismatch {
    /// The kind has that name in another group or version.
    ApiVersion,
    /// The namespace.
    Namespace,
    /// The name.
    Name,
    /// The labels.
    Labels,
    /// It matches, but an exclusion takes it out.
    Excluded,
    /// It matches, but the policy is being deleted.
    Deleting,
}

/// Why one template is propagated as it is; none if there is no such template.
pub fn why(snapshot: &Snapshot, key: &TemplateKey, interpreters: Interpreters<'_>) -> Option<Why> {
    let template = snapshot.templates.get(key)?;
    let decided = snapshot.look(key, interpreters)?;
    let binding = snapshot.bindings.get(&key.binding()).filter(|_| decided.refusal.is_none());
    let binding = binding.map(AsRef::as_ref);
    let bystanders = snapshot.policies.iter().filter_map(|policy| bystander(policy, template)).collect();
    let targets =
        binding.iter().flat_map(|binding| binding.spec.clusters.iter().map(move |target| (binding, target)));
    let suspended = targets.filter(|(binding, target)| is_held(binding, &target.name));
    let placed = binding.map(|binding| anew(binding, snapshot));
    let clusters = binding.zip(placed.as_ref());
    let mut why = Why {
        template: key.clone(),
        owner: decided.claim.policy().map(|owner| owner.key.clone()),
        rivals: rivals::rivals(snapshot, template, &decided.claim),
        taken_from: taken_from(snapshot, template, &decided.claim),
        bystanders,
        in_effect: binding.and_then(|binding| in_effect(snapshot, template, binding, &decided.claim)),
        orphaned: orphan(snapshot, key, interpreters),
        waits_for_policy: template.is_waiting(),
        frozen: binding.and_then(|binding| clusters::frozen(snapshot, template, binding)),
        required_by: binding.map(required_by).unwrap_or_default(),
        suspended: suspended.map(|(_, target)| target.name.clone()).collect(),
        next: ahead(snapshot, template, &decided, interpreters).and_then(|then| next(snapshot, then)),
        clusters: clusters
            .map(|(binding, placed)| clusters::clusters(snapshot, template, binding, placed))
            .unwrap_or_default(),
        staying: binding.and_then(|binding| staying(binding, &snapshot.clusters)),
        staging: binding.and_then(|binding| staging::staging(snapshot, binding)),
        last_copy: binding.and_then(last_copy),
        holds: binding
            .map(|binding| holds::holds(snapshot, template, binding, &decided.claim))
            .unwrap_or_default(),
        placement: placed,
        rejection: decided.rejection(binding, &snapshot.gates),
        claim: decided.claim.why().clone(),
        activation: decided.activation,
        refusal: decided.refusal,
    };
    if why.is_up_to_date() {
        why.next = None;
    }
    Some(why)
}

fn last_copy(binding: &Binding) -> Option<String> {
    let kept = conditions::find(&binding.status.conditions, LAST_COPY_KEPT);
    kept.map(|condition| condition.message.clone())
}

fn next(snapshot: &Snapshot, then: Propagation) -> Option<Next> {
    let policy = then.claim.policy()?.key.clone();
    then.binding.map(|binding| Next { policy, placement: anew(&binding, snapshot) })
}

fn taken_from(snapshot: &Snapshot, template: &Template, claim: &Claim) -> Option<Origin> {
    let record = template.claim_record()?;
    let owner = claim.policy().filter(|owner| owner.uid == record.policy.uid);
    owner.filter(|_| !record.taken_from.is_empty()).map(|_| Origin::of(snapshot, &record.taken_from))
}

fn in_effect(snapshot: &Snapshot, template: &Template, binding: &Binding, claim: &Claim) -> Option<InEffect> {
    let owner = claim.policy();
    let pin = match Pin::read(&binding.metadata) {
        // What Karmada made is as new as the template.
        None => adopted(template, owner?),
        Some(pin) => Some(pin).filter(|pin| !pin.policy.uid.is_empty())?,
    };
    Some(InEffect {
        policy: Origin::of(snapshot, &pin.policy.uid),
        generation: pin.policy.generation,
        newest: owner.map(|owner| owner.generation),
        template_changed: pin.template != template.digest,
        is_current: owner.is_some_and(|owner| follows(binding, owner)),
    })
}

fn required_by(binding: &Binding) -> Vec<BindingKey> {
    let key = |one: &api::binding::BindingSnapshot| BindingKey {
        namespace: one.namespace.clone(),
        name: one.name.clone(),
    };
    binding.spec.required_by.iter().map(key).collect()
}

/// What a change of the template would lead to, if its policies wait for one.
fn ahead(
    snapshot: &Snapshot,
    template: &Template,
    decided: &Propagation,
    interpreters: Interpreters<'_>,
) -> Option<Propagation> {
    let Activation::Hold(HoldWhy::Lazy { .. } | HoldWhy::Static { .. } | HoldWhy::Unclaimed) =
        decided.activation
    else {
        return None;
    };
    // No digest is like this one, so to the decisions its user has changed it.
    let changed = Template { digest: "changed".to_owned(), ..template.clone() };
    let binding = snapshot.bindings.get(&template.key.binding()).map(AsRef::as_ref);
    Some(snapshot.look_at(&changed, binding, interpreters)).filter(|next| next.claim.policy().is_some())
}

/// A scheduler that sees nothing to do gives no reasons, so it is asked as if it had never been.
fn anew(binding: &Binding, snapshot: &Snapshot) -> Placement {
    let mut binding = binding.clone();
    binding.metadata.annotations.remove(APPLIED_PLACEMENT);
    placement(&binding, &snapshot.clusters, snapshot.now)
}

fn bystander(policy: &Policy, template: &Template) -> Option<Bystander> {
    if matched(policy, template).is_some() {
        return None;
    }
    let nearest = policy
        .spec
        .resource_selectors
        .iter()
        .filter_map(|selector| mismatch(policy, selector, template))
        .max()?;
    Some(Bystander { policy: policy.key.clone(), because: nearest })
}

fn mismatch(policy: &Policy, selector: &api::ResourceSelector, template: &Template) -> Option<Mismatch> {
    let key = &template.key;
    if selector.kind != key.kind {
        return None;
    }
    let anywhere = api::ResourceSelector { name: String::new(), label_selector: None, ..selector.clone() };
    let own = policy.scope() == Scope::Cluster || policy.key.namespace == key.namespace;
    Some(if selector.api_version != key.api_version {
        Mismatch::ApiVersion
    } else if !own || specificity(&anywhere, key, &template.labels).is_none() {
        Mismatch::Namespace
    } else if !selector.name.is_empty() && selector.name != key.name {
        Mismatch::Name
    } else if specificity(selector, key, &template.labels).is_none() {
        Mismatch::Labels
    } else if leaves_out(policy, template) {
        Mismatch::Excluded
    } else {
        Mismatch::Deleting
    })
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.template, self.claim, self.activation)?;
        if let Some(refusal) = &self.refusal {
            write!(formatter, "; {refusal}")?;
        }
        if !self.suspended.is_empty() {
            write!(formatter, "; nothing is written to {} while it is suspended", self.suspended.join(", "))?;
        }
        formatter.write_str(".")?;
        if let Some(staying) = &self.staying {
            write!(formatter, " {staying}.")?;
        }
        self.placement.as_ref().map_or(Ok(()), |placement| write!(formatter, " {placement}"))
    }
}

impl fmt::Display for Bystander {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.policy, self.because)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Mismatch::ApiVersion => "selects the kind in another group or version",
            Mismatch::Namespace => "selects other namespaces",
            Mismatch::Name => "selects another name",
            Mismatch::Labels => "selects other labels",
            Mismatch::Excluded => "excludes it",
            Mismatch::Deleting => "is being deleted",
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.policy {
            Some(policy) => write!(formatter, "{policy}"),
            None => write!(formatter, "a deleted policy (uid {})", self.uid),
        }
    }
}
