//! A cache of recent placements. A default policy leads to the same placement for thousands of bindings, and computing
//! it over many clusters is expensive. Defines the cache key, decides nothing.

use std::sync::Arc;

use api::binding::BindingSpec;
use api::{Binding, Cluster, annotations};
use jiff::Timestamp;

use super::webster::Ties;
use super::{Placement, is_kept, placement, trigger};

/// Questions that are remembered; few, because each new one is compared with all of them.
const QUESTIONS_MAX: usize = 8;

/// The last answers. They hold for the clusters and the moment they were given for, so it lives no longer.
#[derive(Debug, Default)]
pub struct Recent {
    asked: Vec<(Arc<Binding>, Placement)>,
}

impl Recent {
    /// What [`placement`] says.
    pub fn placement(&mut self, binding: &Arc<Binding>, clusters: &[Cluster], now: Timestamp) -> &Placement {
        match self.asked.iter().position(|(asked, _)| is_same(asked, binding)) {
            // The latest stand first, because the next question is likely theirs.
            Some(position) => self.asked[..=position].rotate_right(1),
            None => {
                self.asked.truncate(QUESTIONS_MAX - 1);
                self.asked.insert(0, (Arc::clone(binding), placement(binding, clusters, now)));
            }
        }
        &self.asked[0].1
    }
}

/// True when two bindings ask the same: nothing that a placement depends on differs.
fn is_same(left: &Binding, right: &Binding) -> bool {
    is_same_spec(&left.spec, &right.spec)
        && trigger::skip(left) == trigger::skip(right)
        && trigger::asked(left) == trigger::asked(right)
        && is_kept(left) == is_kept(right)
        && left.status.scheduler_observed_affinity_name == right.status.scheduler_observed_affinity_name
        && left.metadata.annotation(annotations::APPLIED_PLACEMENT)
            == right.metadata.annotation(annotations::APPLIED_PLACEMENT)
}

/// Of the template only its kind matters, and who wins when two clusters are equal. When it was asked for and
/// who needs it do not count, so that every other field must be named here.
fn is_same_spec(left: &BindingSpec, right: &BindingSpec) -> bool {
    let BindingSpec {
        resource,
        propagate_deps: _,
        replica_requirements,
        replicas,
        components,
        clusters,
        placement,
        graceful_eviction_tasks,
        required_by: _,
        scheduler_name: _,
        failover,
        conflict_resolution: _,
        reschedule_triggered_at: _,
        suspension: _,
        preserve_resources_on_deletion: _,
        schedule_priority: _,
        workload_affinity_groups: _,
    } = left;
    *replicas == right.replicas
        && resource.kind == right.resource.kind
        && resource.api_version == right.resource.api_version
        && *clusters == right.clusters
        && *replica_requirements == right.replica_requirements
        && *components == right.components
        && *graceful_eviction_tasks == right.graceful_eviction_tasks
        && *failover == right.failover
        && *placement == right.placement
        && Ties::of(&resource.uid) == Ties::of(&right.resource.uid)
}
