//! The strategy by which a change of a template spreads: which policy says so, and what (G13).

use std::cmp::Reverse;

use api::Scope;
use api::records::StrategyRecord;

use super::Rollout;
use crate::policy::Policy;
use crate::template::Template;

/// The strategy that counts; none if changes go everywhere at once (G1).
///
/// A rollout policy goes before the propagation policy: the more specific selector first, then the name. Without a
/// propagation policy the last one's strategy stays, as its suspension does (U8).
pub fn strategy<'r>(
    template: &Template,
    policy: Option<&Policy>,
    rollouts: impl Iterator<Item = &'r Rollout>,
    recorded: Option<StrategyRecord>,
) -> Option<StrategyRecord> {
    let matching = rollouts.filter_map(|rollout| {
        let strategy = rollout.spec.rollout_strategy.as_ref()?;
        Some((rollout, strategy, rollout.specificity(template)?))
    });
    let best = matching.max_by_key(|(rollout, _, specificity)| {
        let key = &rollout.key;
        (*specificity, Reverse(&key.name), !key.namespace.is_empty(), Reverse(&key.namespace))
    });
    let (from, strategy) = match (best, policy) {
        (Some((rollout, strategy, _)), _) => (rollout_name(rollout), strategy),
        (None, Some(policy)) => (policy.key.to_string(), policy.spec.rollout_strategy.as_ref()?),
        (None, None) => return recorded.filter(|recorded| recorded.from.contains("PropagationPolicy ")),
    };
    Some(StrategyRecord { from, staged: strategy.staged()? })
}

fn rollout_name(rollout: &Rollout) -> String {
    let key = &rollout.key;
    match key.scope() {
        Scope::Namespaced => format!("RolloutPolicy {}/{}", key.namespace, key.name),
        Scope::Cluster => format!("ClusterRolloutPolicy {}", key.name),
    }
}
