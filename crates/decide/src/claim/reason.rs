//! Why a template is claimed as it is: a value that prints as one sentence and as JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rank::{Candidate, TieBreak};
use crate::policy::PolicyKey;

/// The reason of a claim, with every policy that matches, best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimWhy {
    /// What decided.
    #[serde(flatten)]
    pub reason: ClaimReason,
    /// The other candidates.
    pub candidates: Vec<Candidate>,
}

/// What decided a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ClaimReason {
    /// The template is being deleted.
    Deleting,
    /// Another kind took the template over.
    Foreign {
        /// That kind.
        owner: String,
    },
    /// The operator skips its namespace or its kind.
    SkippedResources,
    /// No policy matches.
    NoMatch,
    /// Static mode: un-claimed, and its user did not change it since (S4).
    Unclaimed,
    /// The best of those that match.
    Best {
        /// The policy.
        policy: PolicyKey,
        /// What made it the best.
        tie_break: TieBreak,
        /// The policy it beat.
        #[serde(skip_serializing_if = "Option::is_none")]
        second: Option<PolicyKey>,
    },
    /// The owner still matches and no policy may preempt it.
    Kept {
        /// The owner.
        policy: PolicyKey,
        /// A policy that would be chosen if the template were free.
        #[serde(skip_serializing_if = "Option::is_none")]
        better: Option<PolicyKey>,
        /// Why that one does not take it.
        #[serde(skip_serializing_if = "Option::is_none")]
        blocked: Option<Blocked>,
    },
    /// Taken from its owner (P2).
    Preempted {
        /// The policy that took it.
        by: PolicyKey,
        /// The policy that had it.
        from: PolicyKey,
        /// The taker's priority.
        by_priority: i32,
        /// The owner's priority.
        from_priority: i32,
    },
}

/// Why a better policy does not take a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Blocked {
    /// Its `preemption` is `Never`.
    Never,
    /// The feature gate is off (P1).
    GateOff,
    /// Static mode preempts nothing and re-chooses only at a user change (S2, S5).
    Static,
    /// The operator skips the template's namespace or kind.
    SkippedResources,
    /// Its priority is not strictly higher (P2).
    Priority,
    /// A ClusterPropagationPolicy never takes from a PropagationPolicy (P2).
    Scope,
    /// None of its selectors with a name or a namespace, narrowed by its labels, means it (P4).
    Unbounded,
}

impl fmt::Display for ClaimWhy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            ClaimReason::Deleting => write!(formatter, "it is being deleted, so its claim stays as it is"),
            ClaimReason::Foreign { owner } => {
                write!(formatter, "{owner} took it over, so policies ignore it")
            }
            ClaimReason::SkippedResources => write!(
                formatter,
                "the control plane is configured to skip its namespace or kind, so no policy claims it"
            ),
            ClaimReason::NoMatch => write!(formatter, "no policy matches it"),
            ClaimReason::Unclaimed => {
                write!(formatter, "its policy released it, and static policies wait until it changes (S4)")
            }
            ClaimReason::Best { policy, tie_break, second } => {
                self.best(formatter, policy, *tie_break, second.as_ref())
            }
            ClaimReason::Kept { policy, better, blocked } => {
                write!(formatter, "{policy} claims it and still matches")?;
                match (better, blocked) {
                    (Some(better), Some(blocked)) => {
                        write!(formatter, "; {better} ranks higher but {blocked}")
                    }
                    _ => Ok(()),
                }
            }
            ClaimReason::Preempted { by, from, by_priority, from_priority } => {
                write!(formatter, "{by} takes it from {from}: ")?;
                if by.scope() == from.scope() {
                    write!(formatter, "priority {by_priority} is higher than {from_priority} (P2)")
                } else {
                    write!(formatter, "a PropagationPolicy goes before a ClusterPropagationPolicy (P2)")
                }
            }
        }
    }
}

impl ClaimWhy {
    fn best(
        &self,
        formatter: &mut fmt::Formatter<'_>,
        policy: &PolicyKey,
        tie_break: TieBreak,
        second: Option<&PolicyKey>,
    ) -> fmt::Result {
        let Some(second) = second else {
            return write!(formatter, "{policy} is the only policy that matches it");
        };
        let [won, lost, ..] = self.candidates.as_slice() else {
            return write!(formatter, "{policy} matches it");
        };
        write!(formatter, "{policy} goes before {second}: ")?;
        match tie_break {
            TieBreak::Only => write!(formatter, "it is the only one"),
            TieBreak::Scope => {
                write!(formatter, "a PropagationPolicy goes before a ClusterPropagationPolicy")
            }
            TieBreak::Priority => {
                write!(formatter, "priority {} is higher than {}", won.priority, lost.priority)
            }
            TieBreak::Specificity => {
                write!(formatter, "it matches {} and the other {}", won.matched.words(), lost.matched.words())
            }
            TieBreak::Name => {
                write!(formatter, "both match equally, and its name comes first in the alphabet")
            }
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Blocked::Never => "its preemption is Never",
            Blocked::GateOff => "the feature gate PropagationPolicyPreemption is off (P1)",
            Blocked::Static => "static policies choose anew only when the template changes (S2)",
            Blocked::SkippedResources => "the control plane is configured to skip its namespace or kind",
            Blocked::Priority => "its priority is not strictly higher (P2)",
            Blocked::Scope => "a ClusterPropagationPolicy never takes from a PropagationPolicy (P2)",
            Blocked::Unbounded => {
                "only a selector with a name or a namespace can take a template over, and none of its \
                 selectors does (P4)"
            }
        })
    }
}
