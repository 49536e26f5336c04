//! The estimator: how many replicas still fit into a cluster, from the resources it last reported.

use std::collections::BTreeMap;

use api::binding::ReplicaRequirements;
use api::cluster::{ResourceModel, ResourceSummary};
use api::quantity::ResourceList;
use api::{BindingSpec, Cluster};

use crate::quantity::Amount;

const CPU: &str = "cpu";
const PODS: &str = "pods";
/// Pods on one node, Kubernetes' recommended bound; a class of nodes says nothing about it.
const PODS_PER_NODE: i64 = 110;

/// What a workload needs, read once for all clusters.
pub(super) enum Need<'a> {
    /// Nothing: it is no workload.
    Nothing,
    /// Pods, and so much of each resource for one of them.
    Replicas { replicas: i32, request: Option<Request<'a>> },
}

/// So much of each resource.
type Request<'a> = Vec<(&'a str, Amount)>;

impl<'a> Need<'a> {
    pub fn of(spec: &'a BindingSpec) -> Need<'a> {
        match spec.replicas <= 0 && spec.components.is_empty() {
            true => Need::Nothing,
            false => Need::Replicas {
                replicas: spec.replicas,
                request: spec.replica_requirements.as_ref().map(request),
            },
        }
    }

    /// Room for that many more replicas. What is no workload finds room everywhere.
    pub fn allocatable(&self, cluster: &Cluster) -> i64 {
        match self {
            Need::Nothing => i64::from(i32::MAX),
            Need::Replicas { replicas, request } => {
                let room = room(cluster, request.as_deref());
                if room >= i64::from(i32::MAX) { i64::from(*replicas) } else { room }
            }
        }
    }
}

fn room(cluster: &Cluster, request: Option<&[(&str, Amount)]>) -> i64 {
    let Some(summary) = &cluster.status.resource_summary else { return 0 };
    let pods = free(summary, PODS).map_or(0, Amount::units).max(0);
    let Some(request) = request else { return pods };
    // A cluster that counts its nodes by class is judged node by node: room on two nodes is no room
    // for a replica that needs both.
    let by_resources = match by_node_classes(&cluster.spec.resource_models, summary, request) {
        Some(replicas) => replicas,
        None => by_summary(summary, request),
    };
    by_resources.min(pods)
}

/// What one replica asks for, without what it asks nothing of.
fn request(requirements: &ReplicaRequirements) -> Request<'_> {
    let list = requirements.resource_request.iter();
    let amounts = list.map(|(name, quantity)| (name.as_str(), Amount::of(quantity).unwrap_or_default()));
    amounts.filter(|(_, amount)| amount.units() > 0).collect()
}

fn by_summary(summary: &ResourceSummary, request: &[(&str, Amount)]) -> i64 {
    let times =
        |(name, amount): &(&str, Amount)| fits(name, free(summary, name).unwrap_or_default(), *amount);
    request.iter().map(times).min().unwrap_or(i64::MAX)
}

/// None when nothing is known about classes of nodes.
fn by_node_classes(
    models: &[ResourceModel],
    summary: &ResourceSummary,
    request: &[(&str, Amount)],
) -> Option<i64> {
    let counted = &summary.allocatable_modelings;
    if counted.is_empty() || models.is_empty() || counted.iter().any(|class| class.count < 0) {
        return None;
    }
    let least: BTreeMap<u64, &ResourceModel> = models.iter().map(|model| (model.grade, model)).collect();
    let replicas = counted
        .iter()
        .filter_map(|class| Some(on_one_node(least.get(&class.grade)?, request).saturating_mul(class.count)));
    Some(replicas.fold(0, i64::saturating_add))
}

/// Replicas on a node that has the least its class can have.
fn on_one_node(model: &ResourceModel, request: &[(&str, Amount)]) -> i64 {
    let least = |name: &str| {
        let range = model.ranges.iter().find(|range| range.name == name)?;
        Amount::of(&range.min)
    };
    let times = request.iter().map(|(name, amount)| fits(name, least(name).unwrap_or_default(), *amount));
    times.min().unwrap_or(PODS_PER_NODE).min(PODS_PER_NODE)
}

/// What is left of a resource; none if the cluster does not have it.
fn free(summary: &ResourceSummary, name: &str) -> Option<Amount> {
    let amount = |list: &ResourceList| list.get(name).and_then(Amount::of);
    let taken =
        amount(&summary.allocated).unwrap_or_default() + amount(&summary.allocating).unwrap_or_default();
    Some(amount(&summary.allocatable)? - taken)
}

/// How often a request fits; CPU is counted in thousandths, everything else in whole units.
fn fits(name: &str, free: Amount, request: Amount) -> i64 {
    let (free, request) = match name {
        CPU => (free.milli_units(), request.milli_units()),
        _ => (free.units(), request.units()),
    };
    if free <= 0 || request <= 0 { 0 } else { free / request }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(spec: Value, summary: Value, request: Option<Value>, expected: i64) {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "", "kind": "", "spec": spec, "status": {"resourceSummary": summary},
        }))
        .expect("a cluster");
        let requirements: Option<ReplicaRequirements> = request
            .as_ref()
            .map(|request| serde_json::from_value(json!({"resourceRequest": request})).expect("a request"));
        let needed = requirements.as_ref().map(super::request);
        assert_eq!(room(&cluster, needed.as_deref()), expected, "{summary} {request:?}");
    }

    fn by_summary(summary: Value, request: Option<Value>, expected: i64) {
        check(json!({"syncMode": "Push"}), summary, request, expected);
    }

    #[test]
    fn a_summary_gives_the_scarcest_resource() {
        let summary = json!({
            "allocatable": {"cpu": "10", "memory": "8Gi", "pods": "100"},
            "allocated": {"cpu": "3500m", "memory": "4Gi", "pods": "20"},
            "allocating": {"cpu": "500m", "pods": "5"},
        });
        by_summary(Value::Null, None, 0);
        by_summary(summary.clone(), None, 75);
        by_summary(summary.clone(), Some(json!({})), 75);
        by_summary(summary.clone(), Some(json!({"cpu": "250m"})), 24);
        by_summary(summary.clone(), Some(json!({"cpu": "250m", "memory": "1Gi"})), 4);
        by_summary(summary.clone(), Some(json!({"cpu": "1m"})), 75);
        by_summary(summary.clone(), Some(json!({"nvidia.com/gpu": "1"})), 0);
        by_summary(summary, Some(json!({"nvidia.com/gpu": "0"})), 75);
        by_summary(json!({"allocatable": {"pods": "3"}, "allocated": {"pods": "9"}}), None, 0);
    }

    #[test]
    fn classes_of_nodes_are_judged_node_by_node() {
        let spec = json!({"syncMode": "Push", "resourceModels": [
            {"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "1"}]},
            {"grade": 1, "ranges": [{"name": "cpu", "min": "1", "max": "4"}]},
            {"grade": 2, "ranges": [{"name": "cpu", "min": "4", "max": "64"}]},
        ]});
        let summary = json!({
            "allocatable": {"cpu": "100", "pods": "500"},
            "allocatableModelings": [{"grade": 0, "count": 9}, {"grade": 1, "count": 3}, {"grade": 2, "count": 2}],
        });
        check(spec.clone(), summary.clone(), Some(json!({"cpu": "1"})), 3 + 2 * 4);
        check(spec.clone(), summary.clone(), Some(json!({"cpu": "3"})), 2);
        check(spec.clone(), summary.clone(), Some(json!({"cpu": "1m"})), 500);
        check(spec.clone(), summary.clone(), Some(json!({"memory": "1"})), 0);
        check(json!({"syncMode": "Push"}), summary, Some(json!({"cpu": "1"})), 100);
    }

    #[test]
    fn what_is_no_workload_fits_everywhere() {
        let mut spec = BindingSpec::default();
        assert_eq!(Need::of(&spec).allocatable(&Cluster::default()), i64::from(i32::MAX));
        spec.replicas = 3;
        assert_eq!(Need::of(&spec).allocatable(&Cluster::default()), 0);
    }
}
