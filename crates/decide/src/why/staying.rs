//! Copies that stay although they are no longer wanted, and what they wait for (M1). Derived from the binding: its
//! clusters, and its members' last reports. Decides nothing.

use std::fmt;

use api::binding::AggregatedStatusItem;
use api::cluster::READY;
use api::{Binding, Cluster, ConditionStatus};
use serde::{Deserialize, Serialize};

use crate::binding::is_held;
use crate::conditions;
use crate::fields::integer;
use crate::placement::Strategy;
use crate::works::{clusters_in_use, targets};

/// Copies that stay until others have taken their place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Staying {
    /// Clusters that are left and still have their copies, and clusters that are to have fewer replicas than they have.
    pub clusters: Vec<String>,
    /// Clusters whose copies are awaited; none where a copy stays for a workload that needs it.
    pub awaits: Vec<Awaited>,
}

/// A cluster that does not have its copy yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Awaited {
    /// The cluster.
    pub cluster: String,
    /// Why not.
    pub because: NotApplied,
}

/// Why a cluster does not have its copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum NotApplied {
    /// Nothing is written there while it is suspended.
    Suspended,
    /// The cluster is not ready.
    Unreachable,
    /// The member refused it.
    Refused {
        /// What it said.
        message: String,
    },
    /// It has not answered yet.
    Unanswered,
}

/// What stays, and what it waits for; none if nothing stays.
pub fn staying(binding: &Binding, clusters: &[Cluster]) -> Option<Staying> {
    let in_use = clusters_in_use(&binding.spec);
    let targets = targets(&binding.spec);
    let wants = |name: &str| targets.iter().find(|target| target.name == name).map(|target| target.replicas);
    let placement = binding.spec.placement.as_ref();
    let divided = placement.is_some_and(|placement| Strategy::of(placement) != Strategy::Duplicated);
    let items = &binding.status.aggregated_status;
    let is_left = |item: &&AggregatedStatusItem| !in_use.contains_key(item.cluster_name.as_str());
    let has_more = |item: &&AggregatedStatusItem| {
        divided && wants(&item.cluster_name).zip(replicas(item)).is_some_and(|(wants, has)| has > wants)
    };
    let awaits: Vec<Awaited> =
        targets.iter().filter_map(|target| awaited(binding, clusters, &target.name)).collect();
    let stays = items.iter().filter(|item| is_left(item) || (has_more(item) && !awaits.is_empty()));
    let names: Vec<String> = stays.map(|item| item.cluster_name.clone()).collect();
    (!names.is_empty()).then_some(Staying { clusters: names, awaits })
}

fn replicas(item: &AggregatedStatusItem) -> Option<i32> {
    let told = integer(&item.status.as_ref()?.read(), &["replicas"])?;
    i32::try_from(told).ok()
}

/// Why a target does not have its copy; none if it has.
fn awaited(binding: &Binding, clusters: &[Cluster], name: &str) -> Option<Awaited> {
    let item = binding.status.aggregated_status.iter().find(|item| item.cluster_name == name);
    let cluster = clusters.iter().find(|cluster| cluster.metadata.name == name);
    let ready = cluster.and_then(|cluster| conditions::status(&cluster.status.conditions, READY));
    let message = item.map(|item| item.applied_message.as_str()).unwrap_or_default();
    if item.is_some_and(|item| item.applied) && !is_held(binding, name) {
        return None;
    }
    let because = if is_held(binding, name) {
        NotApplied::Suspended
    } else if ready != Some(ConditionStatus::True) {
        NotApplied::Unreachable
    } else if message.is_empty() {
        NotApplied::Unanswered
    } else {
        NotApplied::Refused { message: message.to_owned() }
    };
    Some(Awaited { cluster: name.to_owned(), because })
}

impl fmt::Display for Staying {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "The copies in {} stay until ", self.clusters.join(", "))?;
        let awaited: Vec<String> = self.awaits.iter().map(ToString::to_string).collect();
        match awaited.is_empty() {
            true => formatter.write_str("no copy of a workload that needs it is left there"),
            false => write!(formatter, "it is applied in {}", awaited.join(", ")),
        }
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} (", self.cluster)?;
        match &self.because {
            NotApplied::Suspended => formatter.write_str("suspended")?,
            NotApplied::Unreachable => formatter.write_str("the cluster is not ready")?,
            NotApplied::Refused { message } => write!(formatter, "refused: {message}")?,
            NotApplied::Unanswered => formatter.write_str("no answer yet")?,
        }
        formatter.write_str(")")
    }
}
