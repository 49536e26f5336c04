//! Moves create before they delete (M1): a copy in a cluster that is left, and replicas that go elsewhere, stay until
//! the members report that the new ones are applied. Derived from the Works alone, so that a restart changes nothing
//! (R1). What a person deletes is never held.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::work::APPLIED;
use api::{Binding, BindingSpec, Cluster, ConditionStatus, Work};
use serde::Serialize;

use super::{cluster_of, clusters_in_use, goes_directly, targets};
use crate::conditions;
use crate::fields::integer;
use crate::interpret::told_replicas;
use crate::placement::{Strategy, is_workload};

/// Copies and replicas that stay until others are applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Handover {
    /// Clusters that the template has left and whose copies stay.
    pub leaving: BTreeSet<String>,
    /// Replicas that stay in clusters that are to have fewer, by cluster.
    pub keeping: BTreeMap<String, i32>,
    /// Clusters whose new copies are awaited; none where a copy stays for a workload that needs it.
    pub awaits: BTreeSet<String>,
}

impl Handover {
    /// True when nothing stays longer than it is wanted.
    pub fn is_empty(&self) -> bool {
        self.leaving.is_empty() && self.keeping.is_empty()
    }
}

/// One sentence: what stays, and until when.
impl fmt::Display for Handover {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let mut stays: Vec<String> = Vec::new();
        if !self.leaving.is_empty() {
            stays.push(format!("the copies in {} stay", list(&self.leaving)));
        }
        let kept =
            self.keeping.iter().map(|(cluster, replicas)| format!("{cluster} keeps {replicas} replicas"));
        stays.extend(kept);
        write!(formatter, "{} until ", stays.join(" and "))?;
        match self.awaits.is_empty() {
            true => formatter.write_str("the workloads there that need them are gone"),
            false => write!(formatter, "the copies in {} are applied", list(&self.awaits)),
        }
    }
}

/// What is known of the copy in one cluster, counted in copies or in replicas.
#[derive(Debug, Clone, Copy, Default)]
struct Copy {
    /// The member has at least so many.
    least: i64,
    /// The member may have so many.
    most: i64,
    /// The Work says so many.
    said: i64,
}

/// Decides what stays for now. `needed_in` are the clusters in which a binding that needs this one still has a copy.
pub(super) fn handover(
    binding: &Binding,
    existing: &[Work],
    clusters: &[Cluster],
    needed_in: &[String],
) -> Handover {
    if binding.metadata.deletion_timestamp.is_some() {
        return Handover::default();
    }
    let divides = counts_replicas(&binding.spec, existing);
    let copies = copies(existing, clusters, divides);
    let wanted: BTreeMap<String, i64> = targets(&binding.spec)
        .into_iter()
        .map(|target| (target.name, if divides { i64::from(target.replicas) } else { 1 }))
        .collect();
    let left = left(binding, &copies);
    let shrinks = |(cluster, copy): (&&str, &Copy)| {
        let fewer = wanted.get(*cluster).is_some_and(|wanted| copy.said > *wanted);
        fewer.then(|| ((*cluster).to_owned(), i32::try_from(copy.said).unwrap_or(i32::MAX)))
    };
    let keeping: BTreeMap<String, i32> = copies.iter().filter(|_| divides).filter_map(shrinks).collect();
    let needed = left.iter().filter(|cluster| needed_in.contains(*cluster)).cloned().collect();
    if left.is_empty() && keeping.is_empty() {
        return Handover::default();
    }
    let least = |cluster: &str| copies.get(cluster).map_or(0, |copy| copy.least);
    let left_then: i64 = wanted.iter().map(|(cluster, wanted)| least(cluster).min(*wanted)).sum();
    let now: i64 = copies.values().map(|copy| copy.most).sum();
    // Fewer than the smaller of what there is and what is wanted must never be delivered.
    if left_then >= now.min(wanted.values().sum()) {
        return Handover { leaving: needed, ..Handover::default() };
    }
    let awaits = wanted.iter().filter(|(cluster, wanted)| least(cluster) < **wanted);
    Handover { leaving: left, keeping, awaits: awaits.map(|(cluster, _)| cluster.clone()).collect() }
}

/// The clusters that are no longer wanted and may have a copy. What a policy wants purged directly is not held.
fn left(binding: &Binding, copies: &BTreeMap<&str, Copy>) -> BTreeSet<String> {
    let in_use = clusters_in_use(&binding.spec);
    let tasks = binding.spec.graceful_eviction_tasks.iter();
    let purged = tasks.filter(|task| goes_directly(task.purge_mode));
    let purged: BTreeSet<&str> = purged.map(|task| task.from_cluster.as_str()).collect();
    let is_left = |cluster: &str| !in_use.contains_key(cluster) && !purged.contains(cluster);
    let there = copies.iter().filter(|(_, copy)| copy.most > 0).map(|(cluster, _)| *cluster);
    there.filter(|cluster| is_left(cluster)).map(str::to_owned).collect()
}

/// Whether replicas count, and not copies. The replicas of a Job are how many of its pods run at once, which says
/// nothing about what it has still to do.
fn counts_replicas(spec: &BindingSpec, existing: &[Work]) -> bool {
    let divided = spec.placement.as_ref().is_some_and(|rules| Strategy::of(rules) != Strategy::Duplicated);
    let told = existing
        .iter()
        .filter_map(|work| work.spec.workload.manifests.first())
        .any(|manifest| told_replicas(manifest).is_some());
    divided && told && is_workload(spec) && spec.resource.kind != "Job"
}

/// What is known of each cluster that is there to stay. A Work that is going brings nothing, and a cluster that is
/// going takes everything along.
fn copies<'w>(existing: &'w [Work], clusters: &[Cluster], divides: bool) -> BTreeMap<&'w str, Copy> {
    let stays = |name: &str| {
        let mut of_name = clusters.iter().filter(|cluster| cluster.metadata.name == name);
        of_name.any(|cluster| cluster.metadata.deletion_timestamp.is_none())
    };
    let living = existing.iter().filter(|work| work.metadata.deletion_timestamp.is_none());
    let known = living.filter(|work| stays(cluster_of(work)));
    known.map(|work| (cluster_of(work), if divides { replicas(work) } else { whole(work) })).collect()
}

fn whole(work: &Work) -> Copy {
    Copy { least: i64::from(has_copy(work)), most: i64::from(may_have_copy(work)), said: 1 }
}

fn replicas(work: &Work) -> Copy {
    let said = work.spec.workload.manifests.first().and_then(told_replicas).map_or(0, i64::from);
    if is_current(work) {
        return Copy { least: said, most: said, said };
    }
    // The member has what an earlier generation of the Work said; its status says how many replicas that is, if nothing
    // newer is on its way there.
    let told = work.status.manifest_statuses.first().and_then(|told| told.status.as_ref());
    let told = told.and_then(|status| integer(&status.read(), &["replicas"])).unwrap_or(0);
    let least = if has_copy(work) && !is_under_way(work) { told.min(said) } else { 0 };
    Copy { least, most: if may_have_copy(work) { told.max(said) } else { 0 }, said }
}

/// Whether the member is about to get what the Work says now: nothing holds it, and the last state was not refused.
fn is_under_way(work: &Work) -> bool {
    let applied = conditions::find(&work.status.conditions, APPLIED);
    let was_applied = applied
        .is_some_and(|applied| applied.status == ConditionStatus::True && applied.observed_generation != 0);
    was_applied && work.spec.suspend_dispatching != Some(true)
}

/// Whether the member has the Work as it is now. Karmada does not note which state it applied, and is believed where
/// there was but one.
fn is_current(work: &Work) -> bool {
    conditions::find(&work.status.conditions, APPLIED).is_some_and(|applied| {
        let of_now = applied.observed_generation == work.metadata.generation
            || (applied.observed_generation == 0 && work.metadata.generation <= 1);
        applied.status == ConditionStatus::True && of_now
    })
}

/// Whether the member has the object, in this state of the Work or an earlier one.
fn has_copy(work: &Work) -> bool {
    conditions::status(&work.status.conditions, APPLIED) == Some(ConditionStatus::True)
        || !work.status.manifest_statuses.is_empty()
}

/// Whether the member may have it: it has, or nothing was said about it yet although nothing holds it.
fn may_have_copy(work: &Work) -> bool {
    let silent = conditions::find(&work.status.conditions, APPLIED).is_none();
    has_copy(work) || (silent && work.spec.suspend_dispatching != Some(true))
}

#[cfg(test)]
mod tests;
