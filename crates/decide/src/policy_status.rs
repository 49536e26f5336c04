//! How do the templates of a policy fare? The counts of its status, from the records on templates and
//! bindings: what one template adds, and the sum. Walks only what the policy claims.

use api::Binding;
use api::propagation::TemplateCounts;
use api::records::Pin;

use crate::policy::Policy;
use crate::template::Template;
use crate::world::World;

/// Counts of the templates a policy claims, and of those taken from it.
pub fn template_counts(policy: &Policy, world: &World) -> TemplateCounts {
    let mut counts = TemplateCounts::default();
    for template in world.templates.claimed(policy.id()).filter_map(|key| world.templates.get(key)) {
        let binding = world.bindings.get(&template.key.binding()).map(AsRef::as_ref);
        let one = standing(template, binding, policy);
        counts.claimed += one.claimed;
        counts.up_to_date += one.up_to_date;
        counts.pending_activation += one.pending_activation;
        counts.suspended += one.suspended;
        counts.preempted_from += one.preempted_from;
    }
    counts.preempted_by = i32::try_from(world.templates.taken_from(&policy.uid).count()).unwrap_or(i32::MAX);
    counts
}

/// What one template adds to the counts of the policy that claims it; each is none or one.
pub fn standing(template: &Template, binding: Option<&Binding>, policy: &Policy) -> TemplateCounts {
    let pin = binding.and_then(|binding| Pin::read(&binding.metadata));
    let up_to_date = pin.is_some_and(|pin| pin.policy == policy.mark());
    let suspension = binding.and_then(|binding| binding.spec.suspension.as_ref());
    let suspended = suspension.is_some_and(|suspension| {
        suspension.dispatching == Some(true)
            || suspension.dispatching_on_clusters.as_ref().is_some_and(|on| !on.cluster_names.is_empty())
    });
    let taken = template.claim_record().is_some_and(|record| !record.taken_from.is_empty());
    TemplateCounts {
        claimed: 1,
        up_to_date: up_to_date.into(),
        pending_activation: (!up_to_date).into(),
        suspended: suspended.into(),
        preempted_from: taken.into(),
        preempted_by: 0,
    }
}
