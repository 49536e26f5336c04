//! Why is it so? Everything the decisions about one template say for themselves, in one value: every policy
//! that matches or nearly does, what waits, where it runs and why not elsewhere. Decides nothing.

use std::fmt;

use api::annotations::APPLIED_PLACEMENT;
use api::{Binding, Scope};
use serde::Serialize;

use crate::activation::Activation;
use crate::binding::{Refusal, is_held};
use crate::claim::{ClaimWhy, leaves_out, matched};
use crate::placement::{Placement, placement};
use crate::policy::{Policy, PolicyKey};
use crate::selector::specificity;
use crate::template::{Template, TemplateKey};
use crate::world::{Answers, World};

/// Everything there is to say about one template.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The template.
    pub template: TemplateKey,
    /// Who owns it, and who else could.
    pub claim: ClaimWhy,
    /// Policies that speak of its kind and do not match, and why not.
    pub bystanders: Vec<Bystander>,
    /// Whether its binding follows, and why.
    pub activation: Activation,
    /// Why it has no binding of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// Where it would be placed if that were decided now, with every cluster that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Chosen clusters to which nothing is written now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suspended: Vec<String>,
}

/// A policy of the same kind that does not match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bystander {
    /// The policy.
    pub policy: PolicyKey,
    /// What does not fit.
    pub because: Mismatch,
}

/// What does not fit: the nearest any of its selectors came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
pub fn why(world: &World, key: &TemplateKey, answers: Answers<'_>) -> Option<Why> {
    let template = world.templates.get(key)?;
    let decided = world.look(key, answers)?;
    let binding = world.bindings.get(&key.binding()).filter(|_| decided.refusal.is_none());
    let bystanders = world.policies.iter().filter_map(|policy| bystander(policy, template)).collect();
    let targets =
        binding.iter().flat_map(|binding| binding.spec.clusters.iter().map(move |target| (binding, target)));
    let suspended = targets.filter(|(binding, target)| is_held(binding, &target.name));
    Some(Why {
        template: key.clone(),
        bystanders,
        suspended: suspended.map(|(_, target)| target.name.clone()).collect(),
        placement: binding.map(|binding| anew(binding, world)),
        claim: decided.claim.why().clone(),
        activation: decided.activation,
        refusal: decided.refusal,
    })
}

/// A scheduler that sees nothing to do gives no reasons, so it is asked as if it had never been.
fn anew(binding: &Binding, world: &World) -> Placement {
    let mut binding = binding.clone();
    binding.metadata.annotations.remove(APPLIED_PLACEMENT);
    placement(&binding, &world.clusters, world.now)
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
        self.placement.as_ref().map_or(Ok(()), |placement| write!(formatter, " {placement}"))
    }
}

impl fmt::Display for Bystander {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let because = match self.because {
            Mismatch::ApiVersion => "selects the kind in another group or version",
            Mismatch::Namespace => "selects other namespaces",
            Mismatch::Name => "selects another name",
            Mismatch::Labels => "selects other labels",
            Mismatch::Excluded => "leaves it out by an exclusion",
            Mismatch::Deleting => "is being deleted",
        };
        write!(formatter, "{} {because}", self.policy)
    }
}
