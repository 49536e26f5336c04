//! Orphaned templates: they run although no policy claims them. Their policy is gone or released them, and what runs
//! stays as it is (R2, S2, S4). No policy's status shows them. Changes nothing.

use api::Binding;
use serde::{Deserialize, Serialize};

use crate::claim::ClaimSeen;
use crate::policy::PolicyKey;
use crate::snapshot::{Interpreters, Snapshot};
use crate::template::{Template, TemplateKey};

/// A template that runs and that no policy claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// The template.
    pub template: TemplateKey,
    /// The clusters in which it runs.
    pub clusters: Vec<String>,
    /// The policy that a change of the template or `longshore reconcile` puts into effect; none if none matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_follow: Option<PolicyKey>,
}

/// Every template that runs and that no policy claims, by name.
pub fn orphans(snapshot: &Snapshot, interpreters: Interpreters<'_>) -> Vec<Orphan> {
    let bound = snapshot.bindings.values().filter_map(|binding| {
        let template = snapshot.templates.get(&TemplateKey::of(binding))?;
        orphan_of(snapshot, template, binding, interpreters)
    });
    let mut all: Vec<Orphan> = bound.collect();
    all.sort_by(|a, b| {
        (&a.template.namespace, &a.template.kind, &a.template.name).cmp(&(
            &b.template.namespace,
            &b.template.kind,
            &b.template.name,
        ))
    });
    all
}

/// The same for one template; none if a policy claims it, or if it runs nowhere.
pub fn orphan(snapshot: &Snapshot, key: &TemplateKey, interpreters: Interpreters<'_>) -> Option<Orphan> {
    let binding = snapshot.bindings.get(&key.binding()).filter(|binding| TemplateKey::of(binding) == *key)?;
    orphan_of(snapshot, snapshot.templates.get(key)?, binding, interpreters)
}

fn orphan_of(
    snapshot: &Snapshot,
    template: &Template,
    binding: &Binding,
    interpreters: Interpreters<'_>,
) -> Option<Orphan> {
    // What only other bindings need has no placement, and no policy ever claimed it.
    let is_propagated = binding.spec.placement.is_some() && !binding.spec.clusters.is_empty();
    if !is_propagated || template.deleting || ClaimSeen::on(&template.labels, &template.annotations).is_some()
    {
        return None;
    }
    let decided = snapshot.look_at(template, Some(binding), interpreters);
    if decided.claim.policy().is_some() || decided.refusal.is_some() {
        return None;
    }
    let candidates = &decided.claim.why().candidates;
    Some(Orphan {
        template: template.key.as_ref().clone(),
        clusters: binding.spec.clusters.iter().map(|target| target.name.clone()).collect(),
        would_follow: candidates.first().map(|candidate| candidate.policy.clone()),
    })
}
