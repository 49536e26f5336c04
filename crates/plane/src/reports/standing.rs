//! The state of a template relative to the policy that claims it. Pure.

use std::fmt;

use api::records::Pin;
use decide::activation::{Activation, HoldWhy};
use decide::binding::follows;
use decide::orphans::orphan;
use decide::snapshot::Interpreters;
use decide::{Snapshot, TemplateKey};
use serde::{Deserialize, Serialize};

/// How a template stands to its policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", content = "why", rename_all = "camelCase")]
pub enum Standing {
    /// Its policy has something new that waits for a change of the template, or it has none and one matches.
    Waits,
    /// It follows its policy as it is now.
    UpToDate,
    /// Something has to be there first.
    Blocked(String),
    /// No policy claims it, and none would after a reconcile.
    Unclaimed,
}

/// How a template stands.
pub fn standing(snapshot: &Snapshot, key: &TemplateKey) -> Standing {
    let Some((template, decided)) =
        snapshot.templates.get(key).zip(snapshot.look(key, Interpreters::BUILT_IN))
    else {
        return Standing::Unclaimed;
    };
    let Some(policy) = decided.claim.policy() else {
        let follows = orphan(snapshot, key, Interpreters::BUILT_IN).and_then(|orphan| orphan.would_follow);
        return if follows.is_some() { Standing::Waits } else { Standing::Unclaimed };
    };
    if let Some(refusal) = decided.refusal {
        return Standing::Blocked(refusal.to_string());
    }
    match &decided.activation {
        Activation::Hold(hold @ HoldWhy::MissingOverrides { .. }) => Standing::Blocked(hold.to_string()),
        Activation::Hold(HoldWhy::Lazy { .. } | HoldWhy::Static { .. }) => {
            let binding = snapshot.bindings.get(&key.binding());
            let pin = binding.and_then(|binding| Pin::read(&binding.metadata));
            let follows = binding.is_some_and(|binding| follows(binding, policy));
            let is_newest = |pin: Pin| follows && pin.template == template.digest;
            if pin.is_some_and(is_newest) { Standing::UpToDate } else { Standing::Waits }
        }
        _ => Standing::UpToDate,
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Waits => write!(formatter, "waits for a change"),
            Standing::UpToDate => write!(formatter, "follows its policy already"),
            Standing::Blocked(why) => write!(formatter, "cannot be reconciled: {why}"),
            Standing::Unclaimed => write!(formatter, "is claimed by no policy, and no policy matches it"),
        }
    }
}
