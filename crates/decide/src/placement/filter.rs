//! The filter step: which clusters may run the workload. Every refusal has its reason. The order of the checks is
//! fixed, so that the same cluster is always refused for the same reason (in Karmada it is random).

use std::fmt;

use api::placement::{ClusterAffinityTerm, SpreadField};
use api::taint::{NO_EXECUTE, NO_SCHEDULE};
use api::{BindingSpec, Cluster, Placement, Taint};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::strategy::Strategy;
use super::trigger::is_workload;
use crate::affinity::{borne, cluster_matches, zones};

/// Why a cluster may not run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum Refusal {
    /// The cluster is going away.
    Deleting,
    /// The placement does not mean it.
    ClusterAffinity,
    /// The workload was just evicted from it.
    ClusterEviction,
    /// It does not know the kind.
    ApiEnablement,
    /// Something keeps workloads away that the placement does not bear.
    TaintToleration {
        /// The taint.
        taint: Taint,
    },
    /// A constraint spreads by a property it does not have.
    SpreadConstraint {
        /// The property.
        field: SpreadField,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Refusal::Deleting => "cluster(s) is being deleted",
            Refusal::ClusterAffinity => "cluster(s) did not match the placement cluster affinity constraint",
            Refusal::ClusterEviction => "cluster(s) is in the process of eviction",
            Refusal::ApiEnablement => "cluster(s) did not have the API resource",
            Refusal::TaintToleration { taint } => {
                let Taint { key, value, effect, .. } = taint;
                let pair = if value.is_empty() { key.clone() } else { format!("{key}={value}") };
                return write!(formatter, "cluster(s) had untolerated taint {{{pair}:{effect}}}");
            }
            Refusal::SpreadConstraint { field: SpreadField::Provider } => {
                "cluster(s) did not have provider property"
            }
            Refusal::SpreadConstraint { field: SpreadField::Region } => {
                "cluster(s) did not have region property"
            }
            Refusal::SpreadConstraint { .. } => "cluster(s) did not have zones property",
        };
        formatter.write_str(text)
    }
}

/// The group of an affinity a cluster is in: 0 for the affinity itself, then its overflow groups.
pub(super) type Tier = usize;

/// The tier of a cluster that may run it, or why it may not.
pub(super) fn filter(
    spec: &BindingSpec,
    placement: &Placement,
    term: Option<&ClusterAffinityTerm>,
    cluster: &Cluster,
    now: Timestamp,
) -> Result<Tier, Refusal> {
    let name = &cluster.metadata.name;
    if cluster.metadata.deletion_timestamp.is_some() {
        return Err(Refusal::Deleting);
    }
    let tier = tier(spec, placement, term, cluster).ok_or(Refusal::ClusterAffinity)?;
    if spec.graceful_eviction_tasks.iter().any(|task| task.from_cluster == *name) {
        return Err(Refusal::ClusterEviction);
    }
    // What runs already is not driven out by a taint or by a list of APIs that is just being collected.
    if !spec.clusters.iter().any(|target| target.name == *name) {
        if !has_api(cluster, &spec.resource.api_version, &spec.resource.kind) {
            return Err(Refusal::ApiEnablement);
        }
        if let Some(taint) = untolerated(cluster, placement, now) {
            return Err(Refusal::TaintToleration { taint: taint.clone() });
        }
    }
    match placement.spread_constraints.iter().filter_map(|c| c.spread_by_field).find(|f| lacks(cluster, *f)) {
        Some(field) => Err(Refusal::SpreadConstraint { field }),
        None => Ok(tier),
    }
}

fn tier(
    spec: &BindingSpec,
    placement: &Placement,
    term: Option<&ClusterAffinityTerm>,
    cluster: &Cluster,
) -> Option<Tier> {
    let Some(term) = term else {
        let matches =
            placement.cluster_affinity.as_ref().is_none_or(|affinity| cluster_matches(affinity, cluster));
        return matches.then_some(0);
    };
    if cluster_matches(&term.affinity, cluster) {
        return Some(0);
    }
    if !is_workload(spec) || !Strategy::of(placement).follows_capacity() {
        return None;
    }
    let overflow =
        term.overflow_affinities.iter().position(|overflow| cluster_matches(&overflow.affinity, cluster));
    overflow.map(|position| position + 1)
}

fn has_api(cluster: &Cluster, api_version: &str, kind: &str) -> bool {
    let enablements = cluster.status.api_enablements.iter().filter(|api| api.group_version == api_version);
    enablements.flat_map(|api| &api.resources).any(|resource| resource.kind == kind)
}

/// A taint that is borne no longer is not borne: what had to leave because of it must not come back to it.
fn untolerated<'a>(cluster: &'a Cluster, placement: &Placement, now: Timestamp) -> Option<&'a Taint> {
    let mut hard =
        cluster.spec.taints.iter().filter(|taint| matches!(taint.effect.as_str(), NO_SCHEDULE | NO_EXECUTE));
    hard.find(|taint| !borne(taint, &placement.cluster_tolerations).is_borne(now))
}

fn lacks(cluster: &Cluster, field: SpreadField) -> bool {
    match field {
        SpreadField::Cluster => false,
        SpreadField::Region => cluster.spec.region.is_empty(),
        SpreadField::Zone => zones(cluster).is_empty(),
        SpreadField::Provider => cluster.spec.provider.is_empty(),
    }
}
