//! The scheduling trigger: is there anything to schedule, and why? The first match of behaviour.md 5.2 wins.

use std::fmt;

use api::placement::ClusterAffinityTerm;
use api::propagation::DEFAULT_SCHEDULER;
use api::records::RESCHEDULED;
use api::{Binding, BindingSpec, Cluster, Placement, Time, annotations, labels};
use serde::{Deserialize, Serialize};

use super::strategy::Strategy;

/// Why a binding is not scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Skip {
    /// It is being deleted.
    Deleting,
    /// Its scheduling is held.
    Suspended,
    /// Another scheduler takes care of it.
    OtherScheduler {
        /// Its name.
        name: String,
    },
    /// No policy claims it: it stays as it is.
    Unclaimed,
    /// Only other bindings need it, so they decide where it goes.
    NoPlacement,
}

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skip::Deleting => formatter.write_str("the binding is being deleted"),
            Skip::Suspended => formatter.write_str("scheduling of the binding is suspended"),
            Skip::OtherScheduler { name } => {
                write!(formatter, "the binding belongs to the scheduler {name:?}")
            }
            Skip::Unclaimed => formatter.write_str("no policy claims the binding, so it stays where it is"),
            Skip::NoPlacement => formatter.write_str("the binding has no placement of its own"),
        }
    }
}

/// Why a binding is scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Trigger {
    /// The placement is another one than was last scheduled.
    PlacementChanged,
    /// The clusters hold another number of replicas than is wanted.
    ReplicasChanged {
        /// What they hold.
        from: i64,
        /// What is wanted.
        to: i32,
    },
    /// A client requested it (`rescheduleTriggeredAt`).
    Asked {
        /// When.
        at: Time,
    },
    /// It goes to every cluster that fits, so each change of a cluster counts.
    FollowsClusters,
    /// A cluster it is in is going away.
    ClusterLeaves {
        /// That cluster.
        cluster: String,
    },
    /// It is nowhere yet.
    Nowhere,
}

impl Trigger {
    /// Karmada's name for it in the scheduler's metrics.
    pub fn schedule_type(&self) -> &'static str {
        if matches!(self, Trigger::ReplicasChanged { .. }) { "ScaleSchedule" } else { "ReconcileSchedule" }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::PlacementChanged => formatter.write_str("the placement changed"),
            Trigger::ReplicasChanged { from, to } => {
                write!(formatter, "replicas changed from {from} to {to}")
            }
            Trigger::Asked { at } => write!(formatter, "a rescheduling was requested at {at}"),
            Trigger::FollowsClusters => formatter.write_str("it follows every change of the clusters"),
            Trigger::ClusterLeaves { cluster } => write!(formatter, "the cluster {cluster} is going away"),
            Trigger::Nowhere => formatter.write_str("it is in no cluster yet"),
        }
    }
}

/// Why the binding is none of the scheduler's business; none if it is.
pub(super) fn skip(binding: &Binding) -> Option<Skip> {
    let spec = &binding.spec;
    let claimed = [
        labels::PROPAGATION_POLICY_PERMANENT_ID,
        labels::CLUSTER_PROPAGATION_POLICY_PERMANENT_ID,
        labels::BINDING_MANAGED_BY,
    ];
    if binding.metadata.deletion_timestamp.is_some() {
        Some(Skip::Deleting)
    } else if !matches!(spec.scheduler_name.as_str(), "" | DEFAULT_SCHEDULER) {
        Some(Skip::OtherScheduler { name: spec.scheduler_name.clone() })
    } else if spec.suspension.as_ref().is_some_and(|suspension| suspension.scheduling == Some(true)) {
        Some(Skip::Suspended)
    } else if claimed.iter().all(|label| binding.metadata.label(label).is_empty()) {
        Some(Skip::Unclaimed)
    } else if spec.placement.is_none() {
        Some(Skip::NoPlacement)
    } else {
        None
    }
}

/// Why the binding is scheduled now; none if nothing calls for it.
pub(super) fn trigger(binding: &Binding, placement: &Placement, clusters: &[&Cluster]) -> Option<Trigger> {
    let spec = &binding.spec;
    if placement_changed(binding, placement) {
        return Some(Trigger::PlacementChanged);
    }
    if let Some(changed) = replicas_changed(spec, placement) {
        return Some(changed);
    }
    if let Some(at) = asked(binding) {
        return Some(Trigger::Asked { at });
    }
    if !is_workload(spec) || Strategy::of(placement) == Strategy::Duplicated {
        return Some(Trigger::FollowsClusters);
    }
    let leaves = |cluster: &&&Cluster| {
        cluster.metadata.deletion_timestamp.is_some()
            && spec.clusters.iter().any(|target| target.name == cluster.metadata.name)
    };
    if let Some(cluster) = clusters.iter().find(leaves) {
        return Some(Trigger::ClusterLeaves { cluster: cluster.metadata.name.clone() });
    }
    // Karmada leaves a workload without replicas out of every cluster; here it belongs somewhere (C2).
    spec.clusters.is_empty().then_some(Trigger::Nowhere)
}

/// The clusters it is in that are going away.
pub(super) fn left(spec: &BindingSpec, clusters: &[Cluster]) -> Vec<String> {
    let leaves = |name: &str| {
        let cluster = clusters.iter().find(|cluster| cluster.metadata.name == name);
        cluster.is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some())
    };
    spec.clusters.iter().map(|target| &target.name).filter(|name| leaves(name)).cloned().collect()
}

/// When a fresh placement was asked for, unless one was made since. It is noted together with the clusters, because
/// the status follows later: dividing anew what was just divided, before members have moved, gives something else.
pub(super) fn asked(binding: &Binding) -> Option<Time> {
    let granted = |at: &Time| binding.metadata.annotation(RESCHEDULED) == at.to_string();
    unanswered(binding).filter(|at| !granted(at))
}

/// When a fresh placement was asked for of which the status does not say that it was made.
pub(super) fn unanswered(binding: &Binding) -> Option<Time> {
    let last = binding.status.last_scheduled_time?;
    binding.spec.reschedule_triggered_at.filter(|at| *at > last)
}

/// True for what has replicas or says what a replica needs.
pub(crate) fn is_workload(spec: &BindingSpec) -> bool {
    spec.replicas > 0 || spec.replica_requirements.is_some() || !spec.components.is_empty()
}

fn placement_changed(binding: &Binding, placement: &Placement) -> bool {
    let applied = binding.metadata.annotation(annotations::APPLIED_PLACEMENT);
    if applied.is_empty() {
        return true;
    }
    // What cannot be read counts as unchanged, as in Karmada: better stale than moved by a typo.
    let Ok(applied) = serde_json::from_str::<Placement>(applied) else { return false };
    let without_groups = |placement: &Placement| Placement {
        cluster_affinities: Vec::new(),
        workload_affinity: None,
        ..placement.clone()
    };
    let observed = &binding.status.scheduler_observed_affinity_name;
    if *placement == applied {
        // The scheduler chose an affinity group but stopped before it wrote which.
        return !placement.cluster_affinities.is_empty() && observed.is_empty();
    }
    without_groups(placement) != without_groups(&applied)
        || group_changed(&placement.cluster_affinities, &applied.cluster_affinities, observed)
}

/// Only the group in use counts: changes of the others do not concern what runs.
fn group_changed(now: &[ClusterAffinityTerm], applied: &[ClusterAffinityTerm], observed: &str) -> bool {
    let find =
        |terms: &[ClusterAffinityTerm]| terms.iter().find(|term| term.affinity_name == observed).cloned();
    let (now, applied) = (find(now), find(applied));
    observed.is_empty() || now.is_none() || applied.is_none() || now != applied
}

fn replicas_changed(spec: &BindingSpec, placement: &Placement) -> Option<Trigger> {
    placement.replica_scheduling.as_ref()?;
    let to = spec.replicas.max(0);
    let from = match Strategy::of(placement) {
        Strategy::Duplicated => {
            let other = spec.clusters.iter().find(|target| target.replicas != to)?;
            i64::from(other.replicas)
        }
        _ => spec.clusters.iter().map(|target| i64::from(target.replicas)).sum(),
    };
    (from != i64::from(to)).then_some(Trigger::ReplicasChanged { from, to })
}
