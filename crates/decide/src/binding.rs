//! The desired binding: its spec from policy, template and interpretation, its claim, its pin. Does not decide whether
//! it may follow now, and never touches what schedulers and evictors write.

use std::borrow::Cow;
use std::fmt;

use api::records::{Pin, PolicyMark, SHOWN_GENERATION, SHOWN_POLICY};
use api::{Binding, kinds};
use serde::{Deserialize, Serialize};

pub use crate::bound::Bound;
use crate::claim::record::{self, Marks};
use crate::gates::Gates;
use crate::interpret::Interpretation;
use crate::policy::Policy;
use crate::template::{Template, group};

mod strategy;
mod suspension;
mod trespass;
mod wanted;

pub use strategy::strategy;
pub use suspension::{Rollout, is_held, suspension};
pub use trespass::{Trespass, trespass};
pub(crate) use wanted::{own, reference_now};

use wanted::{Wanted, is_owned};

/// Why there can be no binding for a template now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Refusal {
    /// Another template of the same name has the binding already (C5).
    Collision {
        /// The binding.
        binding: String,
        /// The other template.
        holder: String,
    },
    /// The binding belongs to a deleted template of the same name, until the garbage collector took it.
    Predecessor {
        /// The binding.
        binding: String,
        /// Uid of the deleted template.
        uid: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Collision { binding, holder } => {
                write!(formatter, "binding {binding} already belongs to {holder}; rename one of the two (C5)")
            }
            Refusal::Predecessor { binding, uid } => {
                write!(formatter, "binding {binding} still belongs to a deleted object with uid {uid}")
            }
        }
    }
}

/// Whether an existing binding is this template's own.
pub fn refusal(template: &Template, binding: &Binding) -> Option<Refusal> {
    let name = || {
        let name = format!("{}/{}", binding.metadata.namespace, binding.metadata.name);
        name.trim_start_matches('/').to_owned()
    };
    let holder = &binding.spec.resource;
    let same = group(&holder.api_version) == template.key.group()
        && holder.kind == template.key.kind
        && holder.namespace == template.key.namespace
        && holder.name == template.key.name;
    if !same {
        let holder =
            format!("{} {}/{} of {}", holder.kind, holder.namespace, holder.name, holder.api_version);
        return Some(Refusal::Collision { binding: name(), holder });
    }
    let owner = binding.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))?;
    let foreign = !owner.uid.is_empty() && owner.uid != template.uid;
    foreign.then(|| Refusal::Predecessor { binding: name(), uid: owner.uid.clone() })
}

/// The binding as policy and template want it now, and its pin, which is written once the brake is known. Of
/// an existing one, everything that others write stays: clusters, evictions, who requires it, when to
/// reschedule, whether scheduling is suspended. One that is right already is not copied.
pub fn binding<'b>(
    template: &Template,
    policy: &Policy,
    existing: Option<&Bound<'b>>,
    interpretation: Interpretation,
    gates: &Gates,
) -> (Cow<'b, Binding>, Pin) {
    let pin = Pin {
        policy: policy.mark(),
        template: template.digest.clone(),
        reconcile: template.reconcile().to_owned(),
        suspension: None,
    };
    let wanted = Wanted::of(template, policy, existing, interpretation, gates);
    let mut binding =
        existing.map_or_else(|| Cow::Owned(empty(template)), |bound| Cow::Borrowed(bound.binding));
    if !is_owned(&binding.metadata, template) {
        own(&mut binding.to_mut().metadata, template);
    }
    if !wanted.is_in(&binding.spec) {
        let spec = &mut binding.to_mut().spec;
        *spec = wanted.spec(std::mem::take(spec));
    }
    (binding, pin)
}

/// The pin of a binding that Karmada made; its policy's generation is unknown, so it is 0.
pub fn adopted(template: &Template, policy: &Policy) -> Pin {
    Pin {
        policy: adopted_mark(policy),
        template: template.digest.clone(),
        reconcile: template.reconcile().to_owned(),
        suspension: None,
    }
}

/// True when a binding follows a policy as it is now: it was made from this generation, or from another one of the same
/// policy that says the same. Suspending and resuming a lazy policy, for example, makes two generations and changes
/// nothing. Karmada records no generation, so what it made is compared as well (M5).
pub fn follows(binding: &Binding, policy: &Policy) -> bool {
    let metadata = &binding.metadata;
    let repeats = || wanted::repeats(&binding.spec, &policy.spec);
    match Pin::read(metadata) {
        None => record::is_written(&metadata.labels, &metadata.annotations, Some(policy)) && repeats(),
        Some(pin) => pin.policy == policy.mark() || (pin.policy.uid == policy.uid && repeats()),
    }
}

/// The mark of a policy whose generation was not recorded.
fn adopted_mark(policy: &Policy) -> PolicyMark {
    PolicyMark { uid: policy.uid.clone(), generation: 0 }
}

/// Records the effective policy as text, for users of kubectl.
pub(crate) fn show(binding: &mut Cow<'_, Binding>, policy: &Policy) {
    let short = match policy.key.namespace.as_str() {
        "" => kinds::CLUSTER_PROPAGATION_POLICY.short_names[0],
        _ => kinds::PROPAGATION_POLICY.short_names[0],
    };
    let shown = [
        (SHOWN_POLICY, format!("{short}/{}", policy.key.name)),
        (SHOWN_GENERATION, policy.generation.to_string()),
    ];
    for (key, value) in shown {
        if binding.metadata.annotations.get(key) != Some(&value) {
            binding.to_mut().metadata.annotations.insert(key.to_owned(), value);
        }
    }
}

/// Writes or takes away the claim on a binding: relationship acts at once (L1, S2).
pub fn put_claim(binding: &mut Binding, policy: Option<&Policy>) {
    let metadata = &mut binding.metadata;
    let mut marks = Marks {
        labels: std::mem::take(&mut metadata.labels),
        annotations: std::mem::take(&mut metadata.annotations),
    };
    match policy {
        Some(policy) => marks.claim(policy),
        None => marks.unclaim(),
    }
    metadata.labels = marks.labels;
    metadata.annotations = marks.annotations;
}

pub(crate) fn empty(template: &Template) -> Binding {
    let kind = match template.key.namespace.as_str() {
        "" => kinds::CLUSTER_RESOURCE_BINDING,
        _ => kinds::RESOURCE_BINDING,
    };
    let key = template.key.binding();
    Binding::new(&kind, &key.namespace, &key.name)
}

#[cfg(test)]
mod tests;
