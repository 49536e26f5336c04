//! Starts the controllers around the pipeline: dependencies, failover, taint policies, rebalancers, policy status and
//! events.

use api::{ClusterTaintPolicy, kinds};
use decide::PolicyKey;
use serde_json::Value;

use super::{Starter, place};
use crate::ctx::Ctx;
use crate::rest::Collection;
use crate::runtime::{Priority, Seen};

impl Starter {
    /// Starts the watches that only these controllers need.
    pub(super) fn watch_policy_side(&self) {
        self.follow_definitions();
        self.follow_taint_policies();
        self.follow_rebalancers();
    }

    fn follow_taint_policies(&self) {
        let (ctx, kind) = (self.ctx.clone(), &kinds::CLUSTER_TAINT_POLICY);
        self.follow(Collection::of(kind, ""), (&kind.api_version(), kind.kind), move |seen| {
            match seen {
                Seen::Is(object) => match serde_json::from_value::<ClusterTaintPolicy>(*object) {
                    Ok(policy) => ctx.cache.put_taint_policy(policy),
                    Err(error) => tracing::warn!(%error, "a ClusterTaintPolicy is left out of account"),
                },
                // Deleting a policy removes no taint, so nothing is enqueued.
                Seen::Gone(_, name) => return ctx.cache.remove_taint_policy(&name),
                Seen::Complete | Seen::Refused => return,
            }
            let clusters = ctx.cache.snapshot().clusters.clone();
            let names = clusters.iter().map(|cluster| cluster.metadata.name.clone());
            names.for_each(|name| ctx.queues.taints.add(name, Priority::Resync));
        });
    }

    fn follow_rebalancers(&self) {
        let (ctx, kind) = (self.ctx.clone(), &kinds::WORKLOAD_REBALANCER);
        self.follow(Collection::of(kind, ""), (&kind.api_version(), kind.kind), move |seen| {
            if let Seen::Is(object) = seen {
                ctx.queues.rebalancers.add(place(&object).1, Priority::User);
            }
        });
    }
}

/// Whether a policy says what it said before; its status may be new.
pub(super) fn is_known(ctx: &Ctx, kind: &kinds::Kind, object: &Value) -> bool {
    let (namespace, name) = place(object);
    let Ok(read) = serde_json::from_value::<api::PropagationPolicy>(object.clone()) else { return false };
    let now = decide::Policy::from(&api::PropagationPolicy { kind: kind.kind.to_owned(), ..read });
    let snapshot = ctx.cache.snapshot();
    snapshot.policies.get(&PolicyKey { namespace, name }).is_some_and(|known| {
        // Admission judges by the budget in the cache.
        let same_budget = known.budget == now.budget;
        known.mark() == now.mark() && known.deleting == now.deleting && known.id() == now.id() && same_budget
    })
}
