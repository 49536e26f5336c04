//! Works of a change that spreads in stages: a cluster that has to wait keeps the Work that it has, and what the Works
//! report is what the next step of the rollout is decided from. That a Work is filled with a revision only where the
//! binding records that it may be is the whole brake: execution delivers what Works say.

use std::collections::BTreeSet;
use std::fmt;

use api::cluster::READY;
use api::records::{ROLLOUT_REQUEST, ROLLOUT_STRATEGY, StrategyRecord};
use api::work::{APPLIED, Health};
use api::{Binding, Cluster, Condition, ConditionStatus, OverridePolicy, Text, Work};
use jiff::Timestamp;
use serde_json::Value;

use super::{Orphan, Sources, Works, cluster_of, clusters_in_use, targets, works};
use crate::binding::is_held;
use crate::conditions;
use crate::fields::{integer, list, text};
use crate::interpret::{revise_replicas, told_replicas};
use crate::rollout::{
    self, Delivery, Permit, Seen, Situation, Stages, Step, content, permit, revision, stays,
};
use crate::template::Template;

/// What waits for its stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// What clusters are to have.
    pub revision: String,
    /// Which of them may have it.
    pub permit: Permit,
    /// Clusters that have to wait.
    pub waiting: BTreeSet<String>,
    /// Clusters that have it, but for replicas.
    same: BTreeSet<String>,
    /// Clusters that are no longer wanted and keep their copy (G9).
    pub leaving: BTreeSet<String>,
}

impl Staged {
    /// None where changes of the binding go everywhere at once (G1).
    pub(super) fn of(binding: &Binding, template: &Template, overrides: &[OverridePolicy]) -> Option<Staged> {
        StrategyRecord::read(&binding.metadata)?;
        let revision = revision(template, &binding.spec, overrides);
        let permit = permit(binding, &revision);
        let none = BTreeSet::new;
        Some(Staged { revision, permit, waiting: none(), same: none(), leaving: none() })
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.leaving.is_empty()
    }

    /// The Work that a cluster is to have now: the one that was rendered, or the one that it has, with the replicas of
    /// the new one, because scaling never waits (G2).
    pub(super) fn due(&mut self, cluster: &str, rendered: Work, old: Option<&Work>) -> Option<Work> {
        let manifest = |work: &Work| work.spec.workload.manifests.first().map(content);
        if old.is_some_and(|old| manifest(old) == manifest(&rendered)) {
            self.same.insert(cluster.to_owned());
        }
        if self.permit.allows(cluster) {
            return Some(rendered);
        }
        self.waiting.insert(cluster.to_owned());
        let mut kept = old.filter(|old| old.metadata.deletion_timestamp.is_none())?.clone();
        kept.spec.suspend_dispatching = rendered.spec.suspend_dispatching;
        let replicas = rendered.spec.workload.manifests.first().and_then(told_replicas);
        if let Some((manifest, replicas)) = kept.spec.workload.manifests.first_mut().zip(replicas)
            && told_replicas(manifest) != Some(replicas)
        {
            revise_replicas(manifest, replicas);
        }
        Some(kept)
    }
}

/// One sentence: who waits, and whose copy stays.
impl fmt::Display for Staged {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let waiting = (!self.waiting.is_empty())
            .then(|| format!("revision {} waits for its stage in {}", self.revision, list(&self.waiting)));
        let leaving = (!self.leaving.is_empty())
            .then(|| format!("the copies in {} stay until the rollout is complete", list(&self.leaving)));
        let said: Vec<String> = waiting.into_iter().chain(leaving).collect();
        formatter.write_str(&said.join("; "))
    }
}

/// What the Works will be when every stage has passed.
pub fn complete(binding: &Binding, sources: Sources<'_>) -> Works {
    if StrategyRecord::read(&binding.metadata).is_none() {
        return works(binding, sources);
    }
    let mut binding = binding.clone();
    binding.metadata.annotations.remove(ROLLOUT_STRATEGY);
    works(&binding, sources)
}

/// Keeps Works of clusters that are left until the rollout is complete (G9); returns the clusters. An eviction never
/// waits.
pub(super) fn keep(binding: &Binding, answer: &mut Works) -> BTreeSet<String> {
    let revision = answer.staged.as_ref().map(|staged| staged.revision.as_str());
    let tasks = &binding.spec.graceful_eviction_tasks;
    let is_evicted = |cluster: &str| tasks.iter().any(|task| task.from_cluster == cluster);
    let kept = answer.orphans.iter().filter(|(cluster, orphan)| {
        **orphan == Orphan::NotChosen && !is_evicted(cluster) && stays(binding, revision, cluster)
    });
    let kept: BTreeSet<String> = kept.map(|(cluster, _)| cluster.clone()).collect();
    answer.orphans.retain(|cluster, _| !kept.contains(cluster));
    if let Some(staged) = answer.staged.as_mut() {
        staged.leaving.clone_from(&kept);
    }
    kept
}

/// The next step of a binding's rollout, from its Works as they should be and as they are; none where changes go
/// everywhere at once, where nothing can be rendered, or while clusters are being chosen.
pub fn advance(
    binding: &Binding,
    works: &Works,
    existing: &[Work],
    clusters: &[Cluster],
    now: Timestamp,
) -> Option<Step> {
    let staged = works.staged.as_ref()?;
    let stages = Stages::of(&StrategyRecord::read(&binding.metadata)?.staged);
    let find = |name: &str| {
        let mut named = clusters.iter().filter(|cluster| cluster.metadata.name == name);
        named.find(|cluster| cluster.metadata.deletion_timestamp.is_none())
    };
    let looks = targets(&binding.spec).into_iter().filter_map(|target| {
        let cluster = find(&target.name)?;
        let seen = Seen {
            stage: stages.stage_of(cluster),
            held: is_held(binding, &target.name),
            same: staged.same.contains(&target.name),
            delivery: delivery(cluster, works, existing),
        };
        Some((target.name, seen))
    });
    let tasks = &binding.spec.graceful_eviction_tasks;
    let in_use = clusters_in_use(&binding.spec);
    let living = existing.iter().filter(|work| work.metadata.deletion_timestamp.is_none()).map(cluster_of);
    let is_unwanted = |cluster: &&str| {
        !in_use.contains_key(cluster) && !tasks.iter().any(|task| task.from_cluster == *cluster)
    };
    rollout::step(&Situation {
        stages: &stages,
        revision: &staged.revision,
        recorded: binding.spec.suspension.as_ref().and_then(|suspension| suspension.rollout.as_ref()),
        progress: binding.status.rollout.as_ref(),
        request: binding.metadata.annotation(ROLLOUT_REQUEST),
        clusters: looks.collect(),
        unwanted: living.filter(is_unwanted).map(str::to_owned).collect(),
        placed: is_placed(binding),
        fails_over: !tasks.is_empty(),
        now,
    })
}

/// Whether the scheduler has answered to the binding as it is now. Where it cannot, what it chose before counts.
fn is_placed(binding: &Binding) -> bool {
    let suspended = binding.spec.suspension.as_ref().is_some_and(|one| one.scheduling == Some(true));
    let failed = conditions::status(&binding.status.conditions, api::binding::SCHEDULED);
    binding.status.scheduler_observed_generation == binding.metadata.generation
        || suspended
        || failed == Some(ConditionStatus::False)
}

/// What a cluster shows of what it is to have.
fn delivery(cluster: &Cluster, works: &Works, existing: &[Work]) -> Delivery {
    let name = &cluster.metadata.name;
    if let Some(failed) = works.failed.get(name) {
        return Delivery::Refused { why: failed.to_string(), since: None };
    }
    if conditions::status(&cluster.status.conditions, READY) != Some(ConditionStatus::True) {
        return Delivery::Unreachable;
    }
    let found = existing.iter().find(|work| cluster_of(work) == name);
    let wanted = works.works.get(name);
    let is_written = |(found, wanted): &(&Work, &Work)| found.spec == wanted.spec;
    let Some((work, _)) = found.zip(wanted).filter(is_written) else { return Delivery::UnderWay };
    let of_now = |applied: &&Condition| applied.observed_generation == work.metadata.generation;
    match conditions::find(&work.status.conditions, APPLIED).filter(of_now) {
        None => Delivery::UnderWay,
        Some(applied) if applied.status == ConditionStatus::True => shown(work),
        Some(applied) => {
            Delivery::Refused { why: applied.message.clone(), since: applied.last_transition_time }
        }
    }
}

/// What the status that was collected after the delivery says.
fn shown(work: &Work) -> Delivery {
    let Some(told) = work.status.manifest_statuses.first() else { return Delivery::UnderWay };
    let own = work.status.conditions.iter().filter(|one| one.observed_generation == work.metadata.generation);
    let own = own.map(|one| (one.kind.clone(), one.status));
    let status = told.status.as_ref().map(Text::read);
    let reported = status.iter().flat_map(|status| list(status, &["conditions"])).filter_map(reported);
    let is_replaced = status.as_ref().is_none_or(has_no_older_replicas);
    Delivery::Applied {
        healthy: told.health != Some(Health::Unhealthy) && is_replaced,
        current: !told.outdated,
        conditions: own.chain(reported).collect(),
    }
}

/// Whether every replica is of the newest version: while a Deployment replaces its pods, those of the last version count
/// as available, so that its health says nothing about the new ones.
fn has_no_older_replicas(status: &Value) -> bool {
    let count = |field: &str| integer(status, &[field]);
    count("updatedReplicas").is_none_or(|updated| count("replicas").unwrap_or(0) <= updated)
}

fn reported(condition: &Value) -> Option<(String, ConditionStatus)> {
    let status = serde_json::from_value(condition.get("status")?.clone()).ok()?;
    Some((text(condition, &["type"]).to_owned(), status))
}
