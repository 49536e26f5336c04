//! How do the templates of a policy fare? The counts of its status, from the records on templates and
//! bindings. Walks only what the policy claims.

use api::propagation::TemplateCounts;
use api::records::Pin;

use crate::policy::Policy;
use crate::world::World;

/// Counts of the templates a policy claims, and of those taken from it.
pub fn template_counts(policy: &Policy, world: &World) -> TemplateCounts {
    let mut counts = TemplateCounts::default();
    for key in world.templates.claimed(policy.id()) {
        counts.claimed += 1;
        let binding = world.bindings.get(&key.binding());
        let pin = binding.and_then(|binding| Pin::read(&binding.metadata));
        match pin.is_some_and(|pin| pin.policy == policy.mark()) {
            true => counts.up_to_date += 1,
            false => counts.pending_activation += 1,
        }
        let suspension = binding.and_then(|binding| binding.spec.suspension.as_ref());
        counts.suspended += i32::from(suspension.is_some_and(|suspension| {
            suspension.dispatching == Some(true)
                || suspension.dispatching_on_clusters.as_ref().is_some_and(|on| !on.cluster_names.is_empty())
        }));
        let record = world.templates.get(key).and_then(|template| template.claim_record());
        counts.preempted_from += i32::from(record.is_some_and(|record| !record.taken_from.is_empty()));
    }
    counts.preempted_by = i32::try_from(world.templates.taken_from(&policy.uid).count()).unwrap_or(i32::MAX);
    counts
}
