//! The precedence of policies that match one template: PropagationPolicy before ClusterPropagationPolicy, then explicit
//! priority, then how exactly they match, then the alphabetical order.

use std::cmp::Reverse;
use std::sync::Arc;

use api::Scope;
use serde::{Deserialize, Serialize};

use super::matched;
use super::policies::Policies;
use crate::policy::{Policy, PolicyKey};
use crate::selector::Specificity;
use crate::template::Template;

/// A policy that matches, with what its rank is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The policy.
    pub policy: PolicyKey,
    /// Its explicit priority.
    pub priority: i32,
    /// Its implicit priority.
    pub matched: Specificity,
    /// It takes from others.
    pub preempts: bool,
}

/// What decided between the first and the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TieBreak {
    /// There is no second.
    Only,
    /// The first is a PropagationPolicy, the second is not.
    Scope,
    /// Explicit priority.
    Priority,
    /// Name before labels before kind.
    Specificity,
    /// The alphabet.
    Name,
}

/// Policies that match, best first.
pub(super) fn candidates<'p>(
    template: &Template,
    policies: &'p Policies,
) -> Vec<(&'p Arc<Policy>, Candidate)> {
    let mut found: Vec<_> = policies
        .candidates(template)
        .into_iter()
        .filter_map(|policy| Some((policy, candidate(policy, matched(policy, template)?))))
        .collect();
    found.sort_by(|(left, ranked_left), (right, ranked_right)| {
        let rank = |policy: &Policy, candidate: &Candidate| {
            (is_cluster_scoped(policy), Reverse((candidate.priority, candidate.matched)))
        };
        rank(left, ranked_left)
            .cmp(&rank(right, ranked_right))
            .then_with(|| left.key.name.cmp(&right.key.name))
    });
    found
}

/// The same list as values.
pub(super) fn listed(candidates: Vec<(&Arc<Policy>, Candidate)>) -> Vec<Candidate> {
    candidates.into_iter().map(|(_, candidate)| candidate).collect()
}

/// What made the first one first, and against whom.
pub(super) fn tie_break(candidates: &[(&Arc<Policy>, Candidate)]) -> (TieBreak, Option<PolicyKey>) {
    let [(first, won), (second, lost), ..] = candidates else { return (TieBreak::Only, None) };
    let decided = if first.scope() != second.scope() {
        TieBreak::Scope
    } else if won.priority != lost.priority {
        TieBreak::Priority
    } else if won.matched != lost.matched {
        TieBreak::Specificity
    } else {
        TieBreak::Name
    };
    (decided, Some(second.key.clone()))
}

fn candidate(policy: &Policy, matched: Specificity) -> Candidate {
    Candidate {
        policy: policy.key.clone(),
        priority: policy.spec.priority(),
        matched,
        preempts: policy.spec.preemption() == api::propagation::Preemption::Always,
    }
}

fn is_cluster_scoped(policy: &Policy) -> bool {
    policy.scope() == Scope::Cluster
}
