//! Graceful eviction: when the old copy is deleted. When the new copies are healthy or the grace period is over; never
//! while the workload is suspended in the old or the new cluster (U5), and never because of time alone where nothing
//! replaces it: then the cluster is chosen again (M2).

use std::collections::BTreeMap;
use std::fmt;

use api::binding::{GracefulEvictionTask, TargetCluster};
use api::work::Health;
use api::{Binding, Cluster, Time};
use jiff::Timestamp;
use serde::Serialize;

use super::Why;
use super::last_copy::{application_gives_up, cluster_gives_up, fits};
use crate::affinity::later;
use crate::binding::is_held;
use crate::works::goes_directly;

/// How the tasks of a binding stand.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Graceful {
    /// Tasks that stay, with the time they began.
    pub tasks: Vec<GracefulEvictionTask>,
    /// Why each of them stays, by cluster.
    pub kept: BTreeMap<String, Kept>,
    /// Clusters whose copy may go, by name.
    pub let_go: BTreeMap<String, LetGo>,
    /// Clusters that are chosen again, because nothing else is there to choose.
    pub returned: Vec<TargetCluster>,
    /// When to judge again.
    pub next: Option<Time>,
}

/// Why a task stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kept {
    /// It has just begun.
    Begun,
    /// A user decides by hand.
    ByHand,
    /// The workload is suspended.
    Suspended,
    /// The new copies are not healthy yet.
    Waiting,
    /// Nothing replaces it yet.
    LastCopy,
}

/// Why a copy may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LetGo {
    /// A user decided so.
    ByHand,
    /// Its time is up.
    TimedOut,
    /// Every new copy is healthy.
    Replaced,
}

impl fmt::Display for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kept::Begun => "the eviction has just begun",
            Kept::ByHand => "its deletion is suppressed until a user changes suppressDeletion",
            Kept::Suspended => "the workload is suspended",
            Kept::Waiting => "the new copies are not healthy yet",
            Kept::LastCopy => "it is the last copy, and no cluster is chosen to replace it",
        })
    }
}

impl fmt::Display for LetGo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            LetGo::ByHand => "a user allowed its deletion",
            LetGo::TimedOut => "its grace period is over",
            LetGo::Replaced => "every new copy is healthy",
        })
    }
}

/// Decides which copies may go now; tasks without a grace period of their own get the given one.
pub fn graceful(binding: &Binding, clusters: &[Cluster], now: Timestamp, grace_seconds: i64) -> Graceful {
    let mut answer = Graceful::default();
    let nowhere = is_nowhere(binding, clusters, now);
    for task in &binding.spec.graceful_eviction_tasks {
        let mut task = task.clone();
        if nowhere && returns(binding, &task, clusters) {
            let replicas = task.replicas.unwrap_or_default();
            answer.returned.push(TargetCluster { name: task.from_cluster, replicas });
            continue;
        }
        let begun = task.creation_timestamp.is_some();
        let began = *task.creation_timestamp.get_or_insert(now.into());
        let ends = later(began, task.grace_period_seconds.map_or(grace_seconds, i64::from));
        match if begun { judge(binding, &task, ends, now) } else { Err(Kept::Begun) } {
            Ok(reason) => drop(answer.let_go.insert(task.from_cluster, reason)),
            Err(reason) => {
                if matches!(reason, Kept::Begun | Kept::Waiting) {
                    answer.next = Some(answer.next.map_or(ends, |next| next.min(ends)));
                }
                answer.kept.insert(task.from_cluster.clone(), reason);
                answer.tasks.push(task);
            }
        }
    }
    answer
}

impl Graceful {
    /// Writes the tasks that stay, and the clusters that are chosen again, into the binding.
    pub fn write(&self, binding: &mut Binding) {
        binding.spec.graceful_eviction_tasks.clone_from(&self.tasks);
        binding.spec.clusters.extend(self.returned.iter().cloned());
    }
}

fn judge(binding: &Binding, task: &GracefulEvictionTask, ends: Time, now: Timestamp) -> Result<LetGo, Kept> {
    match task.suppress_deletion {
        Some(true) => return Err(Kept::ByHand),
        Some(false) => return Ok(LetGo::ByHand),
        None => {}
    }
    let targets = &binding.spec.clusters;
    if targets.is_empty() && !gives_up(binding, task) {
        return Err(Kept::LastCopy);
    }
    if is_held(binding, &task.from_cluster) || targets.iter().any(|target| is_held(binding, &target.name)) {
        return Err(Kept::Suspended);
    }
    if now > ends.timestamp() {
        return Ok(LetGo::TimedOut);
    }
    let scheduled = binding.status.scheduler_observed_generation == binding.metadata.generation;
    let healthy = |cluster: &str| {
        let mut items = binding.status.aggregated_status.iter();
        items.any(|item| item.cluster_name == cluster && item.health == Some(Health::Healthy))
    };
    match scheduled && targets.iter().all(|target| healthy(&target.name)) {
        true => Ok(LetGo::Replaced),
        false => Err(Kept::Waiting),
    }
}

/// Whether it is chosen for no cluster, and no scheduler would choose one.
fn is_nowhere(binding: &Binding, clusters: &[Cluster], now: Timestamp) -> bool {
    let spec = &binding.spec;
    !spec.graceful_eviction_tasks.is_empty() && spec.clusters.is_empty() && !fits(binding, clusters, now)
}

/// Whether an evicted cluster without a replacement is chosen again: the cluster is not being deleted, and no user said
/// otherwise.
fn returns(binding: &Binding, task: &GracefulEvictionTask, clusters: &[Cluster]) -> bool {
    let mut of_name = clusters.iter().filter(|cluster| cluster.metadata.name == task.from_cluster);
    let stays = of_name.any(|cluster| cluster.metadata.deletion_timestamp.is_none());
    stays && task.suppress_deletion.is_none() && !gives_up(binding, task)
}

fn gives_up(binding: &Binding, task: &GracefulEvictionTask) -> bool {
    let by_application = task.reason == Why::APPLICATION_FAILURE;
    let spec = &binding.spec;
    let by_policy = if by_application { application_gives_up(spec) } else { cluster_gives_up(spec) };
    by_policy || goes_directly(task.purge_mode)
}
