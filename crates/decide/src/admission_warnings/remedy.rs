//! How a policy could claim a template that belongs to another policy: what prevents it, and which field to set.

use std::sync::Arc;

use api::Scope;
use api::propagation::Preemption;

use crate::claim::{Blocked, may_take};
use crate::policy::Policy;
use crate::snapshot::Snapshot;
use crate::template::Template;

/// What to do so that the policy takes the template from its owner.
pub(super) fn remedy(snapshot: &Snapshot, policy: &Policy, owner: &Policy, template: &Template) -> String {
    if snapshot.gates.skipped.has(&template.key) {
        return "the control plane is configured to skip its namespace or kind".to_owned();
    }
    if snapshot.gates.static_policy {
        return "policies are static, so a change of the template chooses the best policy anew".to_owned();
    }
    let mut fields = Vec::new();
    let mut changed = policy.clone();
    if changed.spec.preemption() != Preemption::Always {
        changed.spec.preemption = Some(Preemption::Always);
        fields.push("spec.preemption: Always".to_owned());
    }
    if let Err(Blocked::Priority) = may_take(&changed, owner, template, &snapshot.gates) {
        let above = owner.spec.priority().saturating_add(1);
        changed.spec.priority = Some(above);
        fields.push(format!("spec.priority: {above}"));
    }
    match may_take(&changed, owner, template, &snapshot.gates) {
        Ok(()) => format!("set {} in this policy", fields.join(" and ")),
        Err(Blocked::Scope) => format!("leave it out of {} with excludeResourceSelectors", owner.key),
        Err(Blocked::GateOff) => {
            "the feature gate PropagationPolicyPreemption is off, so delete the template and \
             create it after this policy"
                .to_owned()
        }
        Err(Blocked::Unbounded) => {
            fields.push("a name or a namespace in the selector".to_owned());
            format!("set {} in this policy", fields.join(" and "))
        }
        Err(Blocked::Never | Blocked::Static | Blocked::SkippedResources | Blocked::Priority) => {
            "delete the template and create it after this policy".to_owned()
        }
    }
}

/// Why the templates that a policy selects stay with their owner, and how to get them, told by one of them.
pub(super) fn sentence(
    snapshot: &Snapshot,
    policy: &Policy,
    owner: &Policy,
    template: &Arc<Template>,
) -> String {
    let came_first = match (policy.scope(), owner.scope()) {
        (Scope::Namespaced, Scope::Cluster) => "which claimed it before this policy existed",
        _ => "which claims it already",
    };
    let remedy = remedy(snapshot, policy, owner, template);
    format!("{} stays with {}, {came_first}. To take it over: {remedy}.", template.key, owner.key)
}
