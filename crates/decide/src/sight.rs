//! Authorization of answers: the one place where a snapshot, a plan or an explanation is filtered by the reader's
//! permissions. What a reader may not see is not in the answer, not even by name. Knows no roles: the caller passes the
//! permissions.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::Binding;
use api::records::Pin;

use crate::plan::Plan;
use crate::policy::{Policy, PolicyKey};
use crate::snapshot::Snapshot;
use crate::template::TemplateKey;
use crate::why::Why;

/// What a reader may see.
pub struct Sight<'s> {
    /// Templates of this kind in this namespace; the name does not matter.
    pub template: &'s dyn Fn(&TemplateKey) -> bool,
    /// A propagation policy. One of the cluster is also named where it concerns a template that is seen.
    pub policy: &'s dyn Fn(&PolicyKey) -> bool,
    /// Anything in a namespace; empty for the cluster.
    pub namespace: &'s dyn Fn(&str) -> bool,
}

impl Sight<'_> {
    /// The world with nothing in it that the reader may not see, except for what decides about what they see: clusters,
    /// and policies of the cluster that concern one of their templates.
    ///
    /// What decides about a template is in its own namespace or in the cluster, so decisions about templates that are
    /// left are the same as in the whole world.
    pub fn snapshot(&self, whole: &Snapshot) -> Snapshot {
        let mut snapshot = Snapshot {
            clusters: Arc::clone(&whole.clusters),
            taint_policies: whole.taint_policies.clone(),
            gates: whole.gates.clone(),
            now: whole.now,
            ..Snapshot::default()
        };
        let seen = whole.templates.iter().filter(|template| (self.template)(&template.key));
        seen.for_each(|template| drop(snapshot.templates.insert(Arc::clone(template))));
        let is_seen = |binding: &Binding| (self.template)(&TemplateKey::of(binding));
        let bindings = whole.bindings.iter().filter(|(_, binding)| is_seen(binding));
        snapshot.bindings = Arc::new(bindings.map(|(key, binding)| (key.clone(), binding.clone())).collect());
        let is_near = |key: &PolicyKey| (self.namespace)(&key.namespace);
        let overrides = whole.overrides.iter().filter(|(key, _)| key.namespace.is_empty() || is_near(key));
        snapshot.overrides = overrides.map(|(key, policy)| (key.clone(), policy.clone())).collect();
        let rollouts = whole.rollouts.iter().filter(|(key, _)| key.namespace.is_empty() || is_near(key));
        snapshot.rollouts = rollouts.map(|(key, policy)| (key.clone(), policy.clone())).collect();
        let named = records(&snapshot);
        for policy in whole.policies.iter() {
            if (self.policy)(&policy.key) || concerns(policy, &snapshot, &named) {
                snapshot.policies.insert(Arc::clone(policy));
            }
        }
        snapshot
    }

    /// A plan without the templates that the reader may not see, and how many those are.
    pub fn plan(&self, plan: Plan) -> (Plan, usize) {
        plan.only(|key| (self.template)(key))
    }

    /// An explanation without the names of what the reader may not see.
    pub fn why(&self, mut why: Why) -> Why {
        why.required_by.retain(|binding| (self.namespace)(&binding.namespace));
        why.bystanders.retain(|bystander| (self.policy)(&bystander.policy));
        why
    }

    /// True if a policy may be named to the reader as one that matches what they see.
    pub fn names(&self, policy: &PolicyKey) -> bool {
        policy.namespace.is_empty() || (self.policy)(policy)
    }
}

/// The uids and ids of policies that records on templates and bindings name.
fn records(snapshot: &Snapshot) -> BTreeSet<String> {
    let pins = snapshot.bindings.values().filter_map(|binding| Pin::read(&binding.metadata));
    let claims = snapshot.templates.iter().filter_map(|template| template.claim_record());
    let claims = claims.flat_map(|record| [record.policy.uid.clone(), record.taken_from.clone()]);
    pins.map(|pin| pin.policy.uid).chain(claims).filter(|uid| !uid.is_empty()).collect()
}

/// True for a policy of the cluster that matches, owns or has owned a template of this world.
fn concerns(policy: &Policy, snapshot: &Snapshot, named: &BTreeSet<String>) -> bool {
    let matches = || !snapshot.templates.selected(policy).is_empty();
    let owns = || snapshot.templates.claimed(policy.id()).next().is_some();
    policy.key.namespace.is_empty() && (named.contains(&policy.uid) || owns() || matches())
}

#[cfg(test)]
mod tests;
