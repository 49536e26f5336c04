//! Suspension: what is held back, and where (L5, U1, U7, U8). Every writer to members calls [`is_held`].

use std::collections::BTreeSet;

use api::binding::BindingSuspension;
use api::suspension::SuspendClusters;
use api::{Binding, RolloutPolicy, RolloutSpec, Scope, Suspension, kinds};

use crate::policy::PolicyKey;
use crate::selector::{Specificity, best_match};
use crate::template::Template;

/// RolloutPolicy and ClusterRolloutPolicy in one (U7).
#[derive(Debug, Clone, PartialEq)]
pub struct Rollout {
    /// Where it lives and how it is called; an empty namespace means a ClusterRolloutPolicy.
    pub key: PolicyKey,
    /// Its deletion was asked for, so it holds nothing any more.
    pub deleting: bool,
    /// What it says, with the canonical names only.
    pub spec: RolloutSpec,
}

impl From<&RolloutPolicy> for Rollout {
    fn from(object: &RolloutPolicy) -> Self {
        let cluster_scoped = object.kind == kinds::CLUSTER_ROLLOUT_POLICY.kind;
        let namespace = if cluster_scoped { String::new() } else { object.metadata.namespace.clone() };
        let mut spec = object.spec.clone();
        if let Some(suspension) = &mut spec.suspension {
            suspension.normalise();
        }
        Rollout {
            key: PolicyKey { namespace, name: object.metadata.name.clone() },
            deleting: object.metadata.deletion_timestamp.is_some(),
            spec,
        }
    }
}

impl Rollout {
    /// True when it is about this template.
    pub fn matches(&self, template: &Template) -> bool {
        self.specificity(template).is_some()
    }

    /// How exactly it means this template; none if it is not about it.
    pub fn specificity(&self, template: &Template) -> Option<Specificity> {
        let in_reach = match self.key.scope() {
            Scope::Namespaced => self.key.namespace == template.key.namespace,
            Scope::Cluster => true,
        };
        let (selectors, excluded) = (&self.spec.resource_selectors, &self.spec.exclude_resource_selectors);
        let matched = || best_match(selectors, excluded, &template.key, &template.labels);
        (in_reach && !self.deleting).then(matched).flatten()
    }
}

/// The suspension of a binding: what its policy or one of the rollout policies says (U7). `scheduling` and `rollout` have
/// other writers and stay.
pub fn suspension<'s, 'r: 's>(
    policy: Option<&'s Suspension>,
    rollouts: impl Iterator<Item = &'r Rollout>,
    existing: Option<&BindingSuspension>,
) -> Option<BindingSuspension> {
    let from_rollouts: Vec<&Suspension> =
        rollouts.filter_map(|rollout| rollout.spec.suspension.as_ref()).collect();
    let mut merged = match (policy, from_rollouts.is_empty()) {
        (None, true) => BindingSuspension::default(),
        // The policy's own value, also `dispatching: false`, when no rollout policy applies.
        (Some(policy), true) => BindingSuspension {
            dispatching: policy.dispatching,
            dispatching_on_clusters: policy.dispatching_on_clusters.clone(),
            ..BindingSuspension::default()
        },
        _ => union(policy.into_iter().chain(from_rollouts)),
    };
    merged.scheduling = existing.and_then(|suspension| suspension.scheduling);
    merged.rollout = existing.and_then(|suspension| suspension.rollout.clone());
    (merged != BindingSuspension::default()).then_some(merged)
}

fn union<'s>(all: impl Iterator<Item = &'s Suspension>) -> BindingSuspension {
    let (mut everywhere, mut names) = (false, BTreeSet::new());
    for suspension in all {
        everywhere |= suspension.dispatching == Some(true);
        names.extend(
            suspension.dispatching_on_clusters.iter().flat_map(|on| on.cluster_names.iter().cloned()),
        );
    }
    // Both at once is refused in policies (U1), so a binding says the stronger one only.
    let some_clusters = (!everywhere && !names.is_empty())
        .then(|| SuspendClusters { cluster_names: names.into_iter().collect() });
    BindingSuspension {
        dispatching: everywhere.then_some(true),
        dispatching_on_clusters: some_clusters,
        ..BindingSuspension::default()
    }
}

/// True when nothing may be written to this cluster for this binding (U3).
pub fn is_held(binding: &Binding, cluster: &str) -> bool {
    binding.spec.suspension.as_ref().is_some_and(|suspension| {
        suspension.dispatching == Some(true)
            || suspension
                .dispatching_on_clusters
                .as_ref()
                .is_some_and(|on| on.cluster_names.iter().any(|name| name == cluster))
    })
}
