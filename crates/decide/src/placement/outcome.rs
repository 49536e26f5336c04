//! The result of a placement: as a value, as a sentence, and as what is written on the binding.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::binding::{AggregatedStatusItem, BindingStatus, LAST_COPY_KEPT, SCHEDULED, TargetCluster};
use api::records::RESCHEDULED;
use api::{Binding, BindingSpec, ConditionStatus, Time, annotations};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Division, Failure, Refusal, Skip, Trigger, trigger};
use crate::conditions;
use crate::fields::integer;

/// Where a template runs, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Placement {
    /// The binding is none of the scheduler's business.
    Skipped(Skip),
    /// No policy claims it, so it stays where it is, but for clusters that are going away: they would wait for it.
    Left {
        /// Those clusters.
        clusters: Vec<String>,
    },
    /// Nothing calls for a decision.
    Unchanged,
    /// Clusters were chosen.
    Scheduled(Schedule),
    /// No cluster may run it, and the user asked for that, so it leaves its clusters (C3).
    Nowhere {
        /// What triggered the scheduling.
        trigger: Trigger,
        /// Affinity groups that were tried.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tried: Vec<Attempt>,
        /// Why it failed.
        failure: Failure,
    },
    /// It could not be placed, so what was decided before stays (C3, M2).
    Kept {
        /// What triggered the scheduling.
        trigger: Trigger,
        /// Affinity groups that were tried.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tried: Vec<Attempt>,
        /// Why it failed.
        failure: Failure,
        /// Clusters it was in that are gone or going.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<String>,
    },
}

/// Chosen clusters, and why these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// What triggered the scheduling.
    pub trigger: Trigger,
    /// The affinity group in use; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub affinity_name: String,
    /// Affinity groups that failed before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Attempt>,
    /// The chosen clusters, by name.
    pub clusters: Vec<TargetCluster>,
    /// How the replicas were divided.
    pub division: Division,
    /// Why the other clusters may not run it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, Refusal>,
}

/// An affinity group that led nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The group.
    pub affinity_name: String,
    /// Why it failed.
    pub failure: Failure,
}

impl Schedule {
    pub(super) fn new(
        trigger: Trigger,
        affinity_name: &str,
        division: Division,
        refused: BTreeMap<String, Refusal>,
    ) -> Schedule {
        let target =
            |share: &super::Share| TargetCluster { name: share.cluster.clone(), replicas: share.replicas };
        let clusters = division.shares.iter().map(target).collect();
        Schedule {
            trigger,
            affinity_name: affinity_name.to_owned(),
            tried: Vec::new(),
            clusters,
            division,
            refused,
        }
    }

    pub(super) fn after(self, tried: Vec<Attempt>) -> Schedule {
        Schedule { tried, ..self }
    }
}

impl Placement {
    /// Status, reason and message of the `Scheduled` condition; none if it stays as it is.
    pub fn condition(&self) -> Option<(ConditionStatus, &'static str, String)> {
        match self {
            Placement::Skipped(_) | Placement::Left { .. } => None,
            // The existing placement was decided well, even if the scheduler stopped before it wrote the condition.
            Placement::Unchanged | Placement::Scheduled(_) => {
                let message = "Binding has been scheduled successfully.".to_owned();
                Some((ConditionStatus::True, "Success", message))
            }
            Placement::Nowhere { failure, .. } | Placement::Kept { failure, .. } => {
                Some((ConditionStatus::False, failure.reason(), failure.to_string()))
            }
        }
    }

    /// Writes the chosen clusters and the placement they came from.
    pub fn write_spec(&self, binding: &mut Binding) {
        match self {
            Placement::Skipped(_) | Placement::Unchanged => return,
            Placement::Left { clusters: gone } | Placement::Kept { gone, .. } => return leave(binding, gone),
            Placement::Scheduled(schedule) => {
                // Karmada lists them by score; the same clusters in another order are no change (C7).
                if !is_same(&binding.spec.clusters, &schedule.clusters) {
                    binding.spec.clusters.clone_from(&schedule.clusters);
                }
                if let Trigger::Asked { at } = schedule.trigger {
                    binding.metadata.annotations.insert(RESCHEDULED.to_owned(), at.to_string());
                }
            }
            Placement::Nowhere { .. } => binding.spec.clusters.clear(),
        }
        let placement = binding.spec.placement.as_ref();
        let json = serde_json::to_string(&placement).expect("a placement holds only text, numbers and lists");
        binding.metadata.annotations.insert(annotations::APPLIED_PLACEMENT.to_owned(), json);
    }

    /// Writes what the binding's status says about scheduling, at the generation [`Self::write_spec`] led to.
    pub fn write_status(&self, binding: &mut Binding, now: Timestamp) {
        let (generation, unanswered) = (binding.metadata.generation, trigger::unanswered(binding));
        let status = &mut binding.status;
        let news = status.scheduler_observed_generation != generation
            || conditions::status(&status.conditions, SCHEDULED) != Some(ConditionStatus::True);
        if let Some((state, reason, message)) = self.condition() {
            let condition = conditions::condition(SCHEDULED, state, reason, &message);
            conditions::set(&mut status.conditions, condition, now);
        }
        match self {
            Placement::Unchanged => {
                status.scheduler_observed_generation = generation;
                status.last_scheduled_time.get_or_insert(Time::from(now));
                // Granted, and not yet said.
                if unanswered.is_some() {
                    status.last_scheduled_time = Some(Time::from(now)).max(unanswered);
                }
            }
            Placement::Scheduled(schedule) => {
                status.scheduler_observed_generation = generation;
                status.scheduler_observed_affinity_name.clone_from(&schedule.affinity_name);
                // Karmada stamps every success; the same success twice is no write here (C6). A wish that is
                // dated ahead of our clock counts as granted, or it would be granted for ever.
                if news || status.last_scheduled_time.is_none() || unanswered.is_some() {
                    let asked = binding.spec.reschedule_triggered_at;
                    status.last_scheduled_time = Some(Time::from(now)).max(asked);
                }
            }
            Placement::Skipped(_)
            | Placement::Left { .. }
            | Placement::Nowhere { .. }
            | Placement::Kept { .. } => {}
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Skipped(skip) => write!(formatter, "Not scheduled, because {skip}."),
            Placement::Left { clusters } => {
                write!(formatter, "Leaves {}, which is going away; {}.", clusters.join(", "), Skip::Unclaimed)
            }
            Placement::Unchanged => {
                formatter.write_str("Stays where it is, because nothing triggers scheduling.")
            }
            Placement::Scheduled(schedule) => {
                write!(formatter, "Scheduled because {}: {}", schedule.trigger, schedule.division)?;
                if !schedule.affinity_name.is_empty() {
                    write!(formatter, ", by the affinity group {}", schedule.affinity_name)?;
                }
                formatter.write_str(".")
            }
            Placement::Nowhere { trigger, failure, .. } => {
                write!(formatter, "Runs nowhere (scheduling was triggered because {trigger}): {failure}")
            }
            Placement::Kept { trigger, failure, .. } => {
                write!(formatter, "Stays where it is (scheduling was triggered because {trigger}): {failure}")
            }
        }
    }
}

/// Whether the binding says, in its present generation, that it stays because nothing fits (M2).
pub(crate) fn is_kept(binding: &Binding) -> bool {
    let condition = conditions::find(&binding.status.conditions, LAST_COPY_KEPT);
    condition.is_some_and(|kept| kept.observed_generation == binding.metadata.generation)
}

/// Takes clusters out of the binding that are gone. If none is left, it stays where it still has copies: they waited
/// for the ones that are gone (M1).
fn leave(binding: &mut Binding, gone: &[String]) {
    if gone.is_empty() {
        return;
    }
    let Binding { spec, status, .. } = binding;
    spec.clusters.retain(|target| !gone.contains(&target.name));
    if spec.clusters.is_empty() {
        spec.clusters = delivered(spec, status, gone);
    }
}

/// The clusters that have a copy, with the replicas that they have.
fn delivered(spec: &BindingSpec, status: &BindingStatus, gone: &[String]) -> Vec<TargetCluster> {
    let evicted = |name: &str| spec.graceful_eviction_tasks.iter().any(|task| task.from_cluster == name);
    let stays = |item: &&AggregatedStatusItem| {
        let name = &item.cluster_name;
        item.applied && !gone.contains(name) && !evicted(name)
    };
    let items: Vec<&AggregatedStatusItem> = status.aggregated_status.iter().filter(stays).collect();
    let told = |item: &AggregatedStatusItem| {
        let told = integer(&item.status.as_ref()?.read(), &["replicas"])?;
        i32::try_from(told).ok().filter(|_| items.len() > 1)
    };
    let target = |item: &&AggregatedStatusItem| TargetCluster {
        name: item.cluster_name.clone(),
        replicas: told(item).unwrap_or(spec.replicas),
    };
    items.iter().map(target).collect()
}

/// Clusters as Karmada's events show them, for example `{m1:2, m2:1}`.
pub fn listed(clusters: &[TargetCluster]) -> String {
    let targets = clusters.iter().map(|target| format!("{}:{}", target.name, target.replicas));
    format!("{{{}}}", targets.collect::<Vec<_>>().join(", "))
}

/// Whether two lists name the same clusters with the same replicas.
pub(crate) fn is_same(one: &[TargetCluster], other: &[TargetCluster]) -> bool {
    let all: BTreeSet<&TargetCluster> = one.iter().collect();
    one.len() == other.len() && all == other.iter().collect()
}
