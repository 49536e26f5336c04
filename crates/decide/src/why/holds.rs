//! What suspends a template, and where: its policy, the last one it had, rollout policies, or the bindings that need
//! it. The effective suspension is on the binding.

use std::fmt;

use api::records::Pin;
use api::{Binding, Suspension};
use serde::{Deserialize, Serialize};

use crate::binding::is_held;
use crate::claim::Claim;
use crate::policy::PolicyKey;
use crate::snapshot::Snapshot;
use crate::template::Template;
use crate::works::targets;

/// A policy or binding that suspends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// What suspends it.
    pub by: Holder,
    /// Where; everywhere if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
}

/// What suspends a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "policy", rename_all = "camelCase")]
pub enum Holder {
    /// The policy in charge.
    Policy(PolicyKey),
    /// The last policy in charge, which is gone or releases it; its suspension stays (U8).
    LastPolicy,
    /// A RolloutPolicy, or a ClusterRolloutPolicy if the namespace is empty (U7).
    Rollout(PolicyKey),
    /// All bindings that need it are suspended themselves (U6).
    Dependents,
}

/// Everything that suspends a template.
pub(super) fn holds(snapshot: &Snapshot, template: &Template, binding: &Binding, claim: &Claim) -> Vec<Hold> {
    let pin = Pin::read(&binding.metadata);
    let own = match claim.policy() {
        Some(policy) => {
            policy.spec.suspension.clone().map(|brake| (Holder::Policy(policy.key.clone()), brake))
        }
        None => pin.and_then(|pin| pin.suspension).map(|brake| (Holder::LastPolicy, brake)),
    };
    let rollouts = snapshot.rollouts.values().filter(|rollout| rollout.matches(template));
    let rollouts = rollouts
        .filter_map(|rollout| Some((Holder::Rollout(rollout.key.clone()), rollout.spec.suspension.clone()?)));
    let mut holds: Vec<Hold> =
        own.into_iter().chain(rollouts).filter_map(|(by, brake)| hold(by, &brake)).collect();
    if holds.is_empty() && binding.spec.placement.is_none() {
        let held = targets(&binding.spec).into_iter().filter(|target| is_held(binding, &target.name));
        let clusters: Vec<String> = held.map(|target| target.name).collect();
        holds.extend((!clusters.is_empty()).then_some(Hold { by: Holder::Dependents, clusters }));
    }
    holds
}

fn hold(by: Holder, brake: &Suspension) -> Option<Hold> {
    if brake.dispatching == Some(true) {
        return Some(Hold { by, clusters: Vec::new() });
    }
    let clusters = brake.dispatching_on_clusters.as_ref().map(|on| on.cluster_names.clone());
    clusters.filter(|names| !names.is_empty()).map(|clusters| Hold { by, clusters })
}

impl fmt::Display for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clusters.as_slice() {
            [] => write!(formatter, "everywhere")?,
            clusters => write!(formatter, "in {}", clusters.join(", "))?,
        }
        write!(formatter, ", by {}", self.by)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Policy(key) => write!(formatter, "{key}"),
            Holder::LastPolicy => write!(formatter, "its last policy, whose suspension stays in effect (U8)"),
            Holder::Rollout(PolicyKey { namespace, name }) => match namespace.as_str() {
                "" => write!(formatter, "ClusterRolloutPolicy {name}"),
                namespace => write!(formatter, "RolloutPolicy {namespace}/{name}"),
            },
            Holder::Dependents => {
                write!(formatter, "all workloads that depend on it, which are suspended themselves (U6)")
            }
        }
    }
}
