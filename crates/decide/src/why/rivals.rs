//! Every policy that matches and is not the owner, and why it is not. Ranks nothing itself: the claim has.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::claim::{Blocked, Claim, may_take};
use crate::gates::Gates;
use crate::policy::PolicyKey;
use crate::selector::Specificity;
use crate::snapshot::Snapshot;
use crate::template::Template;

/// A policy that matches and does not own the template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rival {
    /// The policy.
    pub policy: PolicyKey,
    /// Why it does not own it.
    pub because: Lost,
}

/// Why a policy that matches is not the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Lost {
    /// The owner is a PropagationPolicy, this one is not.
    Scope,
    /// The owner's priority is higher.
    Priority {
        /// Its own.
        own: i32,
        /// The owner's.
        owners: i32,
    },
    /// The owner matches more exactly.
    Specificity {
        /// How it matches.
        own: Specificity,
        /// How the owner matches.
        owners: Specificity,
    },
    /// The owner's name is first in the alphabet.
    Name,
    /// It ranks higher than the owner and may not take the template from it.
    Blocked {
        /// Why not.
        why: Blocked,
    },
    /// Static mode: no policy owns it until its user changes it (S4).
    Unclaimed,
}

/// Those that match and lost, best first.
pub(super) fn rivals(snapshot: &Snapshot, template: &Template, claim: &Claim) -> Vec<Rival> {
    let candidates = &claim.why().candidates;
    let owner = claim.policy().map(|owner| &owner.key);
    let place = candidates.iter().position(|candidate| Some(&candidate.policy) == owner);
    let others = candidates.iter().enumerate().filter(|(_, candidate)| Some(&candidate.policy) != owner);
    let lost = |at: usize| match place {
        None => Lost::Unclaimed,
        Some(place) if at < place => blocked(snapshot, template, claim, &candidates[at].policy),
        Some(place) => {
            let (won, lost) = (&candidates[place], &candidates[at]);
            if won.policy.scope() != lost.policy.scope() {
                Lost::Scope
            } else if won.priority != lost.priority {
                Lost::Priority { own: lost.priority, owners: won.priority }
            } else if won.matched != lost.matched {
                Lost::Specificity { own: lost.matched, owners: won.matched }
            } else {
                Lost::Name
            }
        }
    };
    others.map(|(at, candidate)| Rival { policy: candidate.policy.clone(), because: lost(at) }).collect()
}

fn blocked(snapshot: &Snapshot, template: &Template, claim: &Claim, better: &PolicyKey) -> Lost {
    let Gates { static_policy, .. } = snapshot.gates;
    let pair = snapshot.policies.get(better).zip(claim.policy());
    let refused = pair.and_then(|(policy, owner)| may_take(policy, owner, template, &snapshot.gates).err());
    let why = match (snapshot.gates.skipped.has(&template.key), static_policy) {
        (true, _) => Blocked::SkippedResources,
        (false, true) => Blocked::Static,
        (false, false) => refused.unwrap_or(Blocked::Never),
    };
    Lost::Blocked { why }
}

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Scope => write!(formatter, "a PropagationPolicy goes before a ClusterPropagationPolicy"),
            Lost::Priority { own, owners } => write!(formatter, "its priority {own} is lower than {owners}"),
            Lost::Specificity { own, owners } => {
                write!(formatter, "it matches {}, which is less exact than {}", own.words(), owners.words())
            }
            Lost::Name => write!(formatter, "both match equally, and its name comes later in the alphabet"),
            Lost::Blocked { why } => write!(formatter, "it ranks higher, but {why}"),
            Lost::Unclaimed => write!(formatter, "static policies wait until the template changes (S4)"),
        }
    }
}
