//! How far is the delivery of a template? Lists what is pending until every member has the decided state, or has removed
//! its copy. Reads the status of Works, which the members report.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use api::binding::{LAST_COPY_KEPT, SCHEDULED};
use api::work::{APPLIED, DISPATCHING, Health};
use api::{Binding, Condition, ConditionStatus, Work, names};
use serde::{Deserialize, Serialize};

use crate::conditions;
use crate::readiness::{Unknown, unknown};
use crate::snapshot::{Interpreters, Snapshot};
use crate::template::{Template, TemplateKey};
use crate::works::{Frozen, Sources, Works, brings_secret, works};

/// The delivery progress of one template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The template.
    pub template: TemplateKey,
    /// What is pending; empty when every member has what it should have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Pending>,
    /// Clusters in which dispatching is suspended: nothing is pending there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspended: Vec<String>,
}

/// One thing that is pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum Pending {
    /// The controllers have not acted on the last change.
    Undecided,
    /// It cannot be propagated until a user acts.
    Blocked {
        /// Why.
        why: String,
    },
    /// The member does not have it, or has an older state of it.
    NotApplied {
        /// The member.
        cluster: String,
        /// Why the member refused it; empty if it did not.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// The member has it, and it is not healthy there.
    NotHealthy {
        /// The member.
        cluster: String,
    },
    /// Dispatching is to be suspended, and the execution controller has not noted that yet.
    NotSuspended {
        /// The member.
        cluster: String,
    },
    /// The member keeps what it has until it is its stage.
    Staged {
        /// The member.
        cluster: String,
    },
    /// The member does not answer.
    Unknown {
        /// The member.
        cluster: String,
        /// Since when, and why.
        #[serde(flatten)]
        unknown: Unknown,
    },
    /// The member still has it and should not.
    NotRemoved {
        /// The member.
        cluster: String,
    },
}

impl fmt::Display for Pending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pending::Undecided => formatter.write_str("the controllers have not acted on it yet"),
            Pending::Blocked { why } => formatter.write_str(why.trim_end_matches('.')),
            Pending::NotApplied { cluster, why } if why.is_empty() => {
                write!(formatter, "{cluster}: not yet applied")
            }
            Pending::NotApplied { cluster, why } => write!(formatter, "{cluster}: not applied: {why}"),
            Pending::NotHealthy { cluster } => write!(formatter, "{cluster}: applied, not yet healthy"),
            Pending::NotSuspended { cluster } => write!(formatter, "{cluster}: not yet suspended"),
            Pending::Staged { cluster } => write!(formatter, "{cluster}: waits for its stage"),
            Pending::Unknown { cluster, unknown } => write!(formatter, "{cluster}: {unknown}"),
            Pending::NotRemoved { cluster } => write!(formatter, "{cluster}: not yet removed"),
        }
    }
}

/// The progress of these templates. `works_of` returns the Works of a template's binding, those that are being deleted
/// included.
pub fn progress(
    snapshot: &Snapshot,
    keys: &BTreeSet<Arc<TemplateKey>>,
    interpreters: Interpreters<'_>,
    works_of: impl Fn(&TemplateKey) -> Vec<Work>,
) -> Vec<Progress> {
    let undecided = snapshot.clone().settle(keys, interpreters);
    let one = |key: &Arc<TemplateKey>| {
        let existing = works_of(key);
        let mut progress =
            Progress { template: TemplateKey::clone(key), pending: Vec::new(), suspended: Vec::new() };
        match snapshot.templates.get(key).filter(|template| !template.deleting) {
            None => progress.pending = removal(snapshot, key, &existing),
            Some(template) => match blocked(snapshot, key, interpreters) {
                Some(blocked) => progress.pending.push(blocked),
                None if undecided.contains(key) => progress.pending.push(Pending::Undecided),
                None => delivery(snapshot, template, &existing, &mut progress),
            },
        }
        progress
    };
    keys.iter().map(one).collect()
}

/// What is pending until every member has removed a deleted template.
fn removal(snapshot: &Snapshot, key: &TemplateKey, existing: &[Work]) -> Vec<Pending> {
    let is_there = snapshot.templates.get(key).is_some() || snapshot.bindings.contains_key(&key.binding());
    match existing {
        [] if is_there => vec![Pending::Undecided],
        existing => existing.iter().map(|work| Pending::NotRemoved { cluster: cluster_of(work) }).collect(),
    }
}

/// Why a template cannot be propagated until a user acts.
fn blocked(snapshot: &Snapshot, key: &TemplateKey, interpreters: Interpreters<'_>) -> Option<Pending> {
    let decided = snapshot.look(key, interpreters)?;
    let binding = snapshot.bindings.get(&key.binding()).map(AsRef::as_ref);
    let refused = decided.refusal.as_ref().map(ToString::to_string);
    let rejected = || decided.rejection(binding, &snapshot.gates).map(|rejection| rejection.to_string());
    refused.or_else(rejected).map(|why| Pending::Blocked { why })
}

/// What is pending until the members have what a settled binding says.
fn delivery(snapshot: &Snapshot, template: &Template, existing: &[Work], progress: &mut Progress) {
    let Some(binding) = snapshot.bindings.get(&template.key.binding()) else { return };
    let pending = &mut progress.pending;
    pending.extend(nowhere(binding));
    let overrides = snapshot.overrides_near(&template.key.namespace);
    let wanted = works(
        binding,
        Sources {
            template: Some(template),
            overrides: &overrides,
            clusters: &snapshot.clusters,
            existing,
            needed_in: &[],
        },
    );
    pending.extend(hindered(&wanted));
    let waiting = wanted.staged.iter().flat_map(|staged| &staged.waiting).cloned();
    pending.extend(waiting.map(|cluster| Pending::Staged { cluster }));
    for (cluster, work) in &wanted.works {
        let silent = snapshot.clusters.iter().find(|one| one.metadata.name == *cluster).and_then(unknown);
        pending.extend(copy(cluster, work, existing, silent));
        if is_suspended(work) {
            progress.suspended.push(cluster.clone());
        }
    }
    pending.extend(leaving(binding, &wanted, existing));
}

/// That no cluster fits. If the last copy stays because of that, nothing is pending (M2).
fn nowhere(binding: &Binding) -> Option<Pending> {
    let all = &binding.status.conditions;
    let scheduled = conditions::find(all, SCHEDULED)?;
    let is_nowhere = scheduled.status == ConditionStatus::False && !keeps_last_copy(binding);
    is_nowhere.then(|| Pending::Blocked { why: scheduled.message.clone() })
}

fn keeps_last_copy(binding: &Binding) -> bool {
    conditions::find(&binding.status.conditions, LAST_COPY_KEPT).is_some()
}

/// Why Works cannot be rendered. A lazy policy that waits for a change of the template is not an obstacle.
fn hindered(wanted: &Works) -> Vec<Pending> {
    let frozen = wanted.frozen.as_ref().filter(|frozen| {
        matches!(frozen, Frozen::Outside { .. } | Frozen::NotPinned | Frozen::NotUnderstood { .. })
    });
    let frozen = frozen.map(|frozen| Pending::Blocked { why: frozen.to_string() });
    let failed = wanted.failed.keys().map(|cluster| Pending::NotApplied {
        cluster: cluster.clone(),
        why: "an override policy cannot act on it".to_owned(),
    });
    frozen.into_iter().chain(failed).collect()
}

/// What is pending in one cluster that should have a copy.
fn copy(cluster: &str, wanted: &Work, existing: &[Work], silent: Option<Unknown>) -> Option<Pending> {
    let cluster = cluster.to_owned();
    let place = |work: &&Work| work.metadata.deletion_timestamp.is_none() && cluster_of(work) == cluster;
    let found = existing.iter().find(place);
    let is_written = |found: &&Work| {
        is_suspended(found) == is_suspended(wanted)
            // The values of Secrets are dropped on reading, so they cannot be compared.
            && (found.spec.workload == wanted.spec.workload
                || brings_secret(wanted))
    };
    let Some(found) = found.filter(is_written) else {
        return Some(Pending::NotApplied { cluster, why: String::new() });
    };
    if is_suspended(wanted) {
        let held = conditions::status(&found.status.conditions, DISPATCHING) == Some(ConditionStatus::False);
        return (!held).then_some(Pending::NotSuspended { cluster });
    }
    if let Some(unknown) = silent {
        return Some(Pending::Unknown { cluster, unknown });
    }
    // Karmada does not record which generation of the Work it applied.
    let of_now = |applied: &&Condition| [0, found.metadata.generation].contains(&applied.observed_generation);
    let applied = conditions::find(&found.status.conditions, APPLIED).filter(of_now);
    match applied {
        None => Some(Pending::NotApplied { cluster, why: String::new() }),
        Some(applied) if applied.status != ConditionStatus::True => {
            Some(Pending::NotApplied { cluster, why: applied.message.clone() })
        }
        Some(_) => {
            let health = found.status.manifest_statuses.first().and_then(|manifest| manifest.health);
            (health == Some(Health::Unhealthy)).then_some(Pending::NotHealthy { cluster })
        }
    }
}

/// Copies that are being removed. Those that stay until their successors are applied (M1) are removed after that.
fn leaving(binding: &Binding, wanted: &Works, existing: &[Work]) -> Vec<Pending> {
    let goes = |work: &&Work| {
        work.metadata.deletion_timestamp.is_some() || wanted.orphans.contains_key(&cluster_of(work))
    };
    let mut clusters: BTreeSet<String> = existing.iter().filter(goes).map(cluster_of).collect();
    if !keeps_last_copy(binding) {
        let tasks = binding.spec.graceful_eviction_tasks.iter();
        clusters.extend(tasks.map(|task| task.from_cluster.clone()));
    }
    clusters.into_iter().map(|cluster| Pending::NotRemoved { cluster }).collect()
}

fn is_suspended(work: &Work) -> bool {
    work.spec.suspend_dispatching == Some(true)
}

fn cluster_of(work: &Work) -> String {
    names::cluster_of_execution_namespace(&work.metadata.namespace).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
