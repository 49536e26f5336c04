//! Eviction: must a binding leave a cluster, because of a taint it does not tolerate or because it fails there, and
//! when is the old copy deleted? Nothing suspended is moved (U5), and the last copy stays where nothing else fits (M2).

mod application;
mod graceful;
mod last_copy;
mod taints;

use std::collections::BTreeMap;
use std::fmt;

use api::binding::GracefulEvictionTask;
use api::failover::PurgeMode;
use api::taint::NO_EXECUTE;
use api::{Binding, Cluster, Placement, Taint, Time, Toleration, annotations};
use jiff::Timestamp;
use serde::Serialize;

pub use graceful::{Graceful, Kept, LetGo, graceful};
pub use last_copy::kept;
pub use taints::taints;

use crate::affinity::{Borne, borne};
use crate::binding::is_held;

/// On bindings: since when the workload is unhealthy, by cluster. Karmada keeps this in memory, where a
/// restart forgets it (R1).
pub const UNHEALTHY_SINCE: &str = "longshore.io/unhealthy-since";

/// What the operator of the control plane decides about failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `NoExecute` taints evict (C8: they do, unless switched off).
    pub taints_evict: bool,
    /// How copies go when the binding does not say.
    pub purge_mode: PurgeMode,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { taints_evict: true, purge_mode: PurgeMode::Gracefully }
    }
}

/// What has to leave, and what is to be remembered.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evictions {
    /// Clusters the workload leaves, by name.
    pub evictions: BTreeMap<String, Eviction>,
    /// Clusters it would leave if it were not suspended, by name.
    pub held: BTreeMap<String, Why>,
    /// Clusters it would leave if anything else fitted (M2), by name.
    pub last_copies: BTreeMap<String, Why>,
    /// Since when it is unhealthy, by cluster.
    pub unhealthy_since: BTreeMap<String, Time>,
    /// When to judge again.
    pub next: Option<Time>,
}

/// One sentence: which clusters it leaves, and why.
impl fmt::Display for Evictions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaves =
            self.evictions.iter().map(|(cluster, one)| format!("leaves {cluster}, because {}", one.why));
        let held = self
            .held
            .iter()
            .map(|(cluster, why)| format!("would leave {cluster} if it were not suspended, because {why}"));
        let kept = self
            .last_copies
            .iter()
            .map(|(cluster, why)| format!("would leave {cluster} if another cluster fitted, because {why}"));
        let told: Vec<String> = leaves.chain(held).chain(kept).collect();
        match told.is_empty() {
            true => formatter.write_str("It stays in its clusters."),
            false => write!(formatter, "It {}.", told.join("; it ")),
        }
    }
}

/// A cluster that a workload leaves.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Eviction {
    /// Why.
    pub why: Why,
    /// The task that says so on the binding.
    pub task: GracefulEvictionTask,
}

/// Why a workload leaves a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Why {
    /// The cluster has a taint that is not, or no longer, borne.
    TaintUntolerated {
        /// The taint.
        taint: Taint,
    },
    /// The workload is unhealthy there for too long.
    ApplicationFailure {
        /// Since when.
        since: Time,
        /// How long that is borne.
        toleration_seconds: i32,
    },
}

impl Why {
    /// Karmada's word for a failing application.
    pub(crate) const APPLICATION_FAILURE: &str = "ApplicationFailure";

    /// Karmada's word for it.
    pub fn reason(&self) -> &'static str {
        match self {
            Why::TaintUntolerated { .. } => "TaintUntolerated",
            Why::ApplicationFailure { .. } => Why::APPLICATION_FAILURE,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::TaintUntolerated { taint: Taint { key, value, effect, .. } } => {
                let pair = if value.is_empty() { key.clone() } else { format!("{key}={value}") };
                write!(formatter, "the cluster has the taint {pair}:{effect}, which it does not tolerate")
            }
            Why::ApplicationFailure { since, toleration_seconds } => {
                write!(
                    formatter,
                    "it has been unhealthy since {since}, longer than the {toleration_seconds} s of its \
                     toleration"
                )
            }
        }
    }
}

/// Decides which clusters a workload has to leave now.
pub fn eviction(binding: &Binding, clusters: &[Cluster], now: Timestamp, settings: Settings) -> Evictions {
    let mut answer = Evictions::default();
    if binding.metadata.deletion_timestamp.is_some() {
        return answer;
    }
    if settings.taints_evict {
        by_taints(binding, clusters, now, settings, &mut answer);
    }
    application::evict(binding, now, &mut answer);
    last_copy::spare(binding, clusters, now, &mut answer);
    for cluster in answer.evictions.keys() {
        answer.unhealthy_since.remove(cluster);
    }
    answer
}

impl Evictions {
    /// Takes the clusters out of the binding, adds the tasks, and remembers since when it is unhealthy.
    pub fn write(&self, binding: &mut Binding) {
        let spec = &mut binding.spec;
        spec.clusters.retain(|target| !self.evictions.contains_key(&target.name));
        for eviction in self.evictions.values() {
            if !spec
                .graceful_eviction_tasks
                .iter()
                .any(|task| task.from_cluster == eviction.task.from_cluster)
            {
                spec.graceful_eviction_tasks.push(eviction.task.clone());
            }
        }
        match self.unhealthy_since.is_empty() {
            true => drop(binding.metadata.annotations.remove(UNHEALTHY_SINCE)),
            false => {
                let json =
                    serde_json::to_string(&self.unhealthy_since).expect("names and times are always JSON");
                binding.metadata.annotations.insert(UNHEALTHY_SINCE.to_owned(), json);
            }
        }
    }

    fn add(&mut self, binding: &Binding, cluster: &str, why: Why, task: GracefulEvictionTask) {
        if is_held(binding, cluster) {
            self.held.insert(cluster.to_owned(), why);
            return;
        }
        let target = binding.spec.clusters.iter().find(|target| target.name == cluster);
        let task = GracefulEvictionTask {
            from_cluster: cluster.to_owned(),
            replicas: target.map(|target| target.replicas).filter(|replicas| *replicas > 0),
            reason: why.reason().to_owned(),
            ..task
        };
        self.evictions.insert(cluster.to_owned(), Eviction { why, task });
    }

    fn look_again(&mut self, at: Time) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

fn by_taints(
    binding: &Binding,
    clusters: &[Cluster],
    now: Timestamp,
    settings: Settings,
    answer: &mut Evictions,
) {
    // The placement that was scheduled counts, not one that waits for its turn.
    let applied = binding.metadata.annotation(annotations::APPLIED_PLACEMENT);
    let Ok(placement) = serde_json::from_str::<Placement>(applied) else { return };
    let failover = binding.spec.failover.as_ref().and_then(|failover| failover.cluster.as_ref());
    let purge_mode = failover.map_or(settings.purge_mode, |cluster| cluster.purge_mode.unwrap_or_default());
    for cluster in clusters {
        let name = &cluster.metadata.name;
        if !binding.spec.clusters.iter().any(|target| target.name == *name) {
            continue;
        }
        match end(&cluster.spec.taints, &placement.cluster_tolerations) {
            End::Never => {}
            End::At(at, _) if at.timestamp() > now => answer.look_again(at),
            End::Now(taint) | End::At(_, taint) => {
                let task = GracefulEvictionTask {
                    purge_mode: Some(purge_mode),
                    producer: "TaintManager".to_owned(),
                    ..GracefulEvictionTask::default()
                };
                answer.add(binding, name, Why::TaintUntolerated { taint: taint.clone() }, task);
            }
        }
    }
}

/// Until when a cluster's taints are borne.
enum End<'a> {
    Never,
    At(Time, &'a Taint),
    Now(&'a Taint),
}

/// The shortest time of all taints counts.
fn end<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> End<'a> {
    let mut end = End::Never;
    for taint in taints.iter().filter(|taint| taint.effect == NO_EXECUTE) {
        match borne(taint, tolerations) {
            Borne::Never => return End::Now(taint),
            Borne::Until(at) if !matches!(end, End::At(earliest, _) if earliest <= at) => {
                end = End::At(at, taint);
            }
            Borne::Until(_) | Borne::Always => {}
        }
    }
    end
}

#[cfg(test)]
mod tests;
