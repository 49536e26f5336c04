//! The steps that would bring a template onto a cluster. Follows from the same answers as everything else; does
//! nothing.

use std::fmt;

use api::placement::SpreadField;
use api::{Binding, Taint};
use serde::{Deserialize, Serialize};

use super::clusters::{ClusterWhy, Verdict, clusters};
use super::holds::{Hold, Holder, holds};
use super::{Bystander, Mismatch, ahead, anew, bystander};
use crate::activation::{Activation, HoldWhy};
use crate::binding::Refusal as Collision;
use crate::claim::ClaimReason;
use crate::placement::Refusal;
use crate::policy::PolicyKey;
use crate::propagation::Propagation;
use crate::snapshot::{Interpreters, Snapshot};
use crate::template::{Template, TemplateKey};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Step {
    /// The cluster has not joined.
    Join,
    /// Policies leave the template alone.
    LetPoliciesAct,
    /// Remove its namespace or kind from the skipped namespaces or kinds.
    StopLeavingOut,
    /// No policy selects the template.
    CreatePolicy,
    /// A policy nearly matches.
    Select {
        /// That policy.
        policy: PolicyKey,
        /// What does not fit.
        because: Mismatch,
    },
    /// Another object has the binding's name.
    Rename {
        /// Why.
        because: Collision,
    },
    /// The policy waits for override policies.
    CreateOverrides {
        /// Their names.
        names: Vec<String>,
    },
    /// Only what needs it decides where it goes.
    MoveDependents,
    /// The placement does not mean the cluster.
    AddToPlacement {
        /// The policy with the placement.
        policy: PolicyKey,
        /// It is named in an `exclude`.
        excluded: bool,
    },
    /// A taint keeps it away.
    Tolerate {
        /// The policy that could tolerate it.
        policy: PolicyKey,
        /// The taint.
        taint: Taint,
    },
    /// The cluster does not have the kind.
    InstallApi {
        /// `group/version`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// It is just leaving the cluster, or the cluster is going.
    Wait {
        /// Which of the two.
        because: Refusal,
    },
    /// The cluster lacks what the placement spreads by.
    SetField {
        /// What it lacks.
        field: SpreadField,
    },
    /// It fits, and others were preferred.
    Prefer {
        /// The policy with the placement.
        policy: PolicyKey,
    },
    /// The policy waits for the template.
    Activate {
        /// The policy.
        policy: PolicyKey,
        /// It does not own the template yet, so it takes a change to choose it.
        chooses_anew: bool,
    },
    /// It is held back there.
    Resume {
        /// By whom.
        hold: Hold,
    },
    /// An override policy cannot act.
    FixOverride {
        /// That policy.
        policy: PolicyKey,
    },
}

/// What would have to be done to get a template onto a cluster, in order; nothing if it is there. None if there
/// is no such template.
pub fn steps(
    snapshot: &Snapshot,
    key: &TemplateKey,
    cluster: &str,
    interpreters: Interpreters<'_>,
) -> Option<Vec<Step>> {
    let template = snapshot.templates.get(key)?;
    let decided = snapshot.look(key, interpreters)?;
    if !snapshot.clusters.iter().any(|known| known.metadata.name == cluster) {
        return Some(vec![Step::Join]);
    }
    if let Some(because) = decided.refusal {
        return Some(vec![Step::Rename { because }]);
    }
    let stored = snapshot.bindings.get(&key.binding()).map(AsRef::as_ref);
    if let Some(binding) = stored.filter(|binding| binding.spec.placement.is_none()) {
        let there = part(snapshot, template, binding, cluster);
        let there = there.is_some_and(|part| matches!(part.verdict, Verdict::Chosen { .. }));
        return Some(if there {
            held(snapshot, template, binding, &decided, cluster)
        } else {
            vec![Step::MoveDependents]
        });
    }
    let then = ahead(snapshot, template, &decided, interpreters);
    let owner = decided.claim.policy().map(|owner| owner.key.clone());
    let next = then.as_ref().and_then(|then| then.claim.policy()).map(|next| next.key.clone());
    let Some(policy) = next.clone().or_else(|| owner.clone()) else {
        return Some(vec![without_owner(snapshot, template, &decided)]);
    };
    let mut steps = Vec::new();
    if let Activation::Hold(HoldWhy::MissingOverrides { names, .. }) = &decided.activation {
        steps.push(Step::CreateOverrides { names: names.clone() });
    }
    let wanted = then.and_then(|then| then.binding).or_else(|| decided.binding.clone());
    let Some(binding) = wanted.as_ref().or(stored) else { return Some(steps) };
    let part = part(snapshot, template, binding, cluster);
    let placement = part.as_ref().and_then(|part| placing(&policy, &binding.spec.resource, part));
    let moves = placement.is_some() || stored.is_none_or(|stored| !names(stored, cluster));
    steps.extend(placement);
    // A change of the policy waits as well.
    if moves && let Some(next) = next {
        let chooses_anew = owner.as_ref() != Some(&next);
        steps.push(Step::Activate { policy: next, chooses_anew });
    }
    steps.extend(held(snapshot, template, stored.unwrap_or(binding), &decided, cluster));
    let failed = part.and_then(|part| part.failed_override);
    steps.extend(failed.map(|failed| Step::FixOverride { policy: failed.policy }));
    Some(steps)
}

fn names(binding: &Binding, cluster: &str) -> bool {
    binding.spec.clusters.iter().any(|target| target.name == cluster)
}

/// The part of a cluster, if the binding is placed anew.
fn part(snapshot: &Snapshot, template: &Template, binding: &Binding, cluster: &str) -> Option<ClusterWhy> {
    let placed = anew(binding, snapshot);
    let mut binding = binding.clone();
    placed.write_spec(&mut binding);
    clusters(snapshot, template, &binding, &placed).into_iter().find(|part| part.name == cluster)
}

fn without_owner(snapshot: &Snapshot, template: &Template, decided: &Propagation) -> Step {
    if matches!(decided.activation, Activation::Hold(HoldWhy::Foreign)) {
        return Step::LetPoliciesAct;
    }
    if decided.claim.why().reason == ClaimReason::SkippedResources {
        return Step::StopLeavingOut;
    }
    let near = snapshot.policies.iter().filter_map(|policy| bystander(policy, template));
    match near.max_by_key(|bystander| bystander.because) {
        Some(Bystander { policy, because }) => Step::Select { policy, because },
        None => Step::CreatePolicy,
    }
}

/// What keeps the placement from choosing a cluster; none if it does.
fn placing(owner: &PolicyKey, resource: &api::binding::ObjectReference, part: &ClusterWhy) -> Option<Step> {
    let policy = owner.clone();
    match &part.verdict {
        Verdict::Chosen { .. } | Verdict::Missing => None,
        Verdict::PassedOver | Verdict::NotAsked => Some(Step::Prefer { policy }),
        Verdict::Refused { why, excluded } => Some(match why {
            Refusal::ClusterAffinity => Step::AddToPlacement { policy, excluded: *excluded },
            Refusal::TaintToleration { taint } => Step::Tolerate { policy, taint: taint.clone() },
            Refusal::ApiEnablement => {
                Step::InstallApi { api_version: resource.api_version.clone(), kind: resource.kind.clone() }
            }
            Refusal::SpreadConstraint { field } => Step::SetField { field: *field },
            Refusal::Deleting | Refusal::ClusterEviction => Step::Wait { because: why.clone() },
        }),
    }
}

fn held(
    snapshot: &Snapshot,
    template: &Template,
    binding: &Binding,
    decided: &Propagation,
    cluster: &str,
) -> Vec<Step> {
    let holds = holds(snapshot, template, binding, &decided.claim).into_iter();
    let there =
        holds.filter(|hold| hold.clusters.is_empty() || hold.clusters.iter().any(|name| name == cluster));
    there.map(|hold| Step::Resume { hold }).collect()
}

/// What makes a policy select a template that it does not select for this reason.
fn selecting_change(because: &Mismatch) -> &'static str {
    match because {
        Mismatch::Excluded => "remove it from the exclusions of",
        Mismatch::Deleting => "create a policy like the one that is being deleted:",
        _ => "change the selectors of",
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Join => write!(formatter, "join the cluster: no Cluster has that name"),
            Step::StopLeavingOut => write!(
                formatter,
                "remove its namespace from --skipped-propagating-namespaces of the control plane, or its \
                 kind from --skipped-propagating-apis"
            ),
            Step::LetPoliciesAct => write!(formatter, "let policies claim it again, which ignore it now"),
            Step::CreatePolicy => write!(formatter, "create a policy that selects it"),
            Step::Select { policy, because } => {
                let change = selecting_change(because);
                write!(formatter, "{change} {policy}, which {because}, or create a policy that selects it")
            }
            Step::Rename { because } => write!(formatter, "rename it: {because}"),
            Step::CreateOverrides { names } => {
                write!(
                    formatter,
                    "create the override policies that its policy waits for: {}",
                    names.join(", ")
                )
            }
            Step::MoveDependents => {
                formatter.write_str("deliver the workload that depends on it to that cluster")
            }
            Step::AddToPlacement { policy, excluded: true } => {
                write!(formatter, "remove the cluster from `exclude` in the placement of {policy}")
            }
            Step::AddToPlacement { policy, .. } => {
                write!(formatter, "let the placement of {policy} select the cluster")
            }
            Step::Tolerate { policy, taint } => write!(
                formatter,
                "remove the taint {}:{} from the cluster, or tolerate it in the placement of {policy}",
                taint.key, taint.effect
            ),
            Step::InstallApi { api_version, kind } => {
                write!(formatter, "install {kind} of {api_version} in the cluster")
            }
            Step::Wait { because: Refusal::Deleting } => {
                write!(formatter, "wait until the cluster, which is being deleted, has joined again")
            }
            Step::Wait { .. } => write!(formatter, "wait until its eviction from the cluster is over"),
            Step::SetField { field } => {
                write!(
                    formatter,
                    "set the {} in the spec of the Cluster",
                    format!("{field:?}").to_lowercase()
                )
            }
            Step::Prefer { policy } => write!(
                formatter,
                "change the spread constraints, weights or replicas of {policy}, which prefers others"
            ),
            Step::Activate { policy, chooses_anew: true } => {
                write!(formatter, "change the template, so that {policy} claims it")
            }
            Step::Activate { policy, .. } => {
                write!(formatter, "change the template or reconcile it, so that {policy} takes effect")
            }
            Step::Resume { hold } => match &hold.by {
                Holder::LastPolicy => write!(formatter, "let a policy claim it: it is suspended {hold}"),
                _ => write!(formatter, "resume it: it is suspended {hold}"),
            },
            Step::FixOverride { policy } => {
                let PolicyKey { namespace, name } = policy;
                let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
                write!(formatter, "correct the override policy {namespace}{name}, which cannot be applied")
            }
        }
    }
}
