//! The desired Works: one per cluster, rendered from the template the binding is pinned to and from nothing newer (R2),
//! and the Works to delete.

mod dispatch;
mod drift;
mod foreign;
mod kept;
mod manifest;
mod moves;
mod namespaces;
mod prune;
mod render;
mod staged;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::binding::TargetCluster;
use api::failover::PurgeMode;
use api::records::Pin;
use api::{Binding, BindingSpec, Cluster, OverridePolicy, Work, names};
use serde::{Deserialize, Serialize};

pub use dispatch::{Conflict, Dispatch, Withdraw, dispatch, withdraw};
pub use drift::{Delivered, was_delivered};
pub use foreign::{Foreign, foreign};
pub use manifest::Manifest;
pub use moves::Handover;
pub use namespaces::{is_synced, namespace_works};
pub use prune::prune;
pub use staged::{Staged, advance, complete};

use crate::binding::{Trespass, is_held, trespass};
use crate::interpret;
use crate::overrides::Failed;
use crate::template::Template;

/// What the Works of a binding should be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Works {
    /// Works as they should be, by cluster. Those that exist and are not here are left alone.
    pub works: BTreeMap<String, Work>,
    /// Works that go, by cluster; suspension does not hold them (U4).
    pub orphans: BTreeMap<String, Orphan>,
    /// What stays until other copies are applied (M1).
    pub handover: Handover,
    /// What waits for its stage; none where changes go everywhere at once.
    pub staged: Option<Staged>,
    /// Clusters that get nothing new, because an override policy could not act.
    pub failed: BTreeMap<String, Failed>,
    /// Why no Work was rendered.
    pub frozen: Option<Frozen>,
}

/// One sentence: which clusters receive the current version, and why others do not.
impl fmt::Display for Works {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.frozen {
            Some(frozen) => write!(formatter, "No Work is rendered, because {frozen}")?,
            None if self.works.is_empty() => formatter.write_str("No cluster receives a Work")?,
            None => {
                let held =
                    |work: &Work| if work.spec.suspend_dispatching == Some(true) { " (held)" } else { "" };
                let names = self.works.iter().map(|(cluster, work)| format!("{cluster}{}", held(work)));
                write!(formatter, "Works for {}", names.collect::<Vec<_>>().join(", "))?;
            }
        }
        for (cluster, orphan) in &self.orphans {
            write!(formatter, "; the one in {cluster} is deleted, because {orphan}")?;
        }
        if !self.handover.is_empty() {
            write!(formatter, "; {}", self.handover)?;
        }
        if let Some(staged) = self.staged.as_ref().filter(|staged| !staged.is_empty()) {
            write!(formatter, "; {staged}")?;
        }
        for (cluster, failed) in &self.failed {
            write!(formatter, "; {cluster} gets nothing new: {failed}")?;
        }
        formatter.write_str(".")
    }
}

/// Why a Work goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Orphan {
    /// The binding is being deleted.
    BindingDeleted,
    /// The cluster is no longer among the binding's clusters.
    NotChosen,
}

impl fmt::Display for Orphan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Orphan::BindingDeleted => "its binding is being deleted",
            Orphan::NotChosen => "its binding no longer names the cluster",
        })
    }
}

/// Why no Work is rendered: what the members have stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Frozen {
    /// The binding is being deleted.
    Deleting,
    /// Works have to go first, because their clusters are left directly.
    Purging {
        /// Those clusters.
        clusters: Vec<String>,
    },
    /// The binding is about something outside its namespace (M3).
    Outside {
        /// What it is about.
        trespass: Trespass,
    },
    /// The template is gone.
    NoTemplate,
    /// The binding does not say which template it means.
    NotPinned,
    /// The template was changed, and no policy has taken the change over (R2).
    OtherTemplate {
        /// Digest the binding is pinned to.
        pinned: String,
        /// Digest of the template now.
        found: String,
    },
    /// Its replicas are divided, and only a script of Karmada's knows where an object of this kind says how many it
    /// has (C7).
    NotUnderstood {
        /// The kind.
        kind: String,
    },
}

impl fmt::Display for Frozen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frozen::Deleting => formatter.write_str("the binding is being deleted"),
            Frozen::Purging { clusters } => {
                write!(
                    formatter,
                    "the copies in {} have to be deleted before new ones are created",
                    clusters.join(", ")
                )
            }
            Frozen::Outside { trespass } => trespass.fmt(formatter),
            Frozen::NoTemplate => formatter.write_str("the template is gone"),
            Frozen::NotPinned => formatter.write_str("the binding is not yet pinned to a template"),
            Frozen::OtherTemplate { .. } => {
                formatter.write_str("the template was changed and no policy has taken the change over")
            }
            Frozen::NotUnderstood { kind } => write!(
                formatter,
                "its replicas are divided, and no interpreter knows the replica field of a {kind}; a policy \
                 that duplicates it works"
            ),
        }
    }
}

/// Everything a rendering needs besides the binding.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The template as it is now; none if it is gone.
    pub template: Option<&'a Template>,
    /// Override policies of the cluster scope and of the template's namespace.
    pub overrides: &'a [OverridePolicy],
    /// The clusters, for the policies that select them.
    pub clusters: &'a [Cluster],
    /// Works of this binding that exist.
    pub existing: &'a [Work],
    /// Clusters in which a binding that needs this one has a copy.
    pub needed_in: &'a [String],
}

/// Decides what each member receives.
pub fn works(binding: &Binding, sources: Sources<'_>) -> Works {
    let Sources { existing, clusters, needed_in, .. } = sources;
    let source = source(binding, sources);
    let staged = source.as_ref().ok().and_then(|template| Staged::of(binding, template, sources.overrides));
    let handover = moves::handover(binding, existing, clusters, needed_in);
    let orphans = orphans(binding, existing, &handover);
    let mut answer = Works { orphans, handover, staged, ..Works::default() };
    let left = staged::keep(binding, &mut answer);
    match source {
        Ok(template) => {
            render::render(binding, template, sources, &mut answer);
            let stays = |cluster: &str| left.contains(cluster) || answer.handover.leaving.contains(cluster);
            let held: Vec<&Work> = existing.iter().filter(|work| stays(cluster_of(work))).collect();
            answer.works.extend(held.into_iter().filter_map(|work| stopped(binding, work)));
        }
        Err(frozen) => {
            // Suspension acts also on what is frozen; nothing else of a Work changes.
            answer.works = braked(binding, existing, &answer.orphans);
            answer.frozen = Some(frozen);
        }
    }
    answer
}

/// The clusters a binding names, with their replicas: its own first, then those of the bindings that need it.
pub fn targets(spec: &BindingSpec) -> Vec<TargetCluster> {
    let mut seen = BTreeSet::new();
    let needed = spec.required_by.iter().flat_map(|snapshot| &snapshot.clusters);
    spec.clusters.iter().chain(needed).filter(|target| seen.insert(target.name.as_str())).cloned().collect()
}

/// The clusters in which a binding may have a Work, with their replicas: its targets and those it is leaving
/// gracefully.
pub fn clusters_in_use(spec: &BindingSpec) -> BTreeMap<&str, i32> {
    let mut clusters = BTreeMap::new();
    let needed = spec.required_by.iter().flat_map(|snapshot| &snapshot.clusters);
    for target in spec.clusters.iter().chain(needed) {
        clusters.entry(target.name.as_str()).or_insert(target.replicas);
    }
    let leaving = spec.graceful_eviction_tasks.iter().filter(|task| !goes_directly(task.purge_mode));
    for task in leaving {
        clusters.entry(task.from_cluster.as_str()).or_insert(0);
    }
    clusters
}

pub(crate) fn goes_directly(purge_mode: Option<PurgeMode>) -> bool {
    purge_mode.is_some_and(PurgeMode::is_direct)
}

/// Whether a Work brings a Secret, whose values are dropped where Works are read to be compared.
pub(crate) fn brings_secret(work: &Work) -> bool {
    let is = |manifest: &serde_json::Value| manifest["apiVersion"] == "v1" && manifest["kind"] == "Secret";
    work.spec.workload.manifests.iter().any(is)
}

fn cluster_of(work: &Work) -> &str {
    names::cluster_of_execution_namespace(&work.metadata.namespace).unwrap_or_default()
}

fn orphans(binding: &Binding, existing: &[Work], handover: &Handover) -> BTreeMap<String, Orphan> {
    let in_use = clusters_in_use(&binding.spec);
    let stays = |cluster: &str| in_use.contains_key(cluster) || handover.leaving.contains(cluster);
    let reason = |cluster: &str| match binding.metadata.deletion_timestamp {
        Some(_) => Some(Orphan::BindingDeleted),
        None => (!stays(cluster)).then_some(Orphan::NotChosen),
    };
    let living = existing.iter().filter(|work| work.metadata.deletion_timestamp.is_none());
    living.filter_map(|work| Some((cluster_of(work).to_owned(), reason(cluster_of(work))?))).collect()
}

/// The template to render from, or why there is none.
fn source<'a>(binding: &Binding, sources: Sources<'a>) -> Result<&'a Template, Frozen> {
    if binding.metadata.deletion_timestamp.is_some() {
        return Err(Frozen::Deleting);
    }
    if let Some(trespass) = trespass(binding) {
        return Err(Frozen::Outside { trespass });
    }
    let tasks = binding.spec.graceful_eviction_tasks.iter().filter(|task| goes_directly(task.purge_mode));
    let purged: BTreeSet<&str> = tasks.map(|task| task.from_cluster.as_str()).collect();
    let left = sources.existing.iter().map(cluster_of).filter(|cluster| purged.contains(cluster));
    let clusters: BTreeSet<String> = left.map(str::to_owned).collect();
    if !clusters.is_empty() {
        return Err(Frozen::Purging { clusters: clusters.into_iter().collect() });
    }
    let template = sources.template.ok_or(Frozen::NoTemplate)?;
    let pinned = Pin::read(&binding.metadata).ok_or(Frozen::NotPinned)?.template;
    if pinned != template.digest {
        return Err(Frozen::OtherTemplate { pinned, found: template.digest.clone() });
    }
    let understood = interpret::is_understood(&template.key.api_version, &template.key.kind);
    match understood || !is_divided(&binding.spec) {
        true => Ok(template),
        false => Err(Frozen::NotUnderstood { kind: template.key.kind.clone() }),
    }
}

/// Whether its clusters do not all have as many replicas as it has altogether.
fn is_divided(spec: &BindingSpec) -> bool {
    spec.replicas > 0 && spec.clusters.iter().any(|target| target.replicas != spec.replicas)
}

/// A copy that is being left stays as it is. It can become suspended (U3), but is not resumed: what it missed meanwhile
/// is not worth a write to a copy that will be deleted.
fn stopped(binding: &Binding, work: &Work) -> Option<(String, Work)> {
    let cluster = cluster_of(work);
    let stops = is_held(binding, cluster) && work.spec.suspend_dispatching != Some(true);
    stops.then(|| {
        let mut work = work.clone();
        work.spec.suspend_dispatching = Some(true);
        (cluster.to_owned(), work)
    })
}

/// The existing Works with the current suspension.
fn braked(
    binding: &Binding,
    existing: &[Work],
    orphans: &BTreeMap<String, Orphan>,
) -> BTreeMap<String, Work> {
    let kept = existing.iter().filter(|work| !orphans.contains_key(cluster_of(work)));
    let braked = kept.map(|work| {
        let mut work = work.clone();
        let before = work.spec.suspend_dispatching.replace(is_held(binding, cluster_of(&work)));
        kept::keep_flag(&mut work.spec.suspend_dispatching, before);
        (cluster_of(&work).to_owned(), work)
    });
    braked.collect()
}

#[cfg(test)]
mod tests;
