//! Writes what was collected from a member (version, kinds, resource summary) into its Cluster's status.

use std::collections::BTreeMap;

use api::ConditionStatus::{False, True};
use api::cluster::{ApiEnablement, ApiResource, COMPLETE_API_ENABLEMENTS, NodeSummary, ResourceSummary};
use api::{Cluster, Quantity};
use decide::conditions;
use decide::quantity::Amount;
use serde_json::Value;

use super::pods::Pods;
use crate::discovery::{Found, TemplateKind};

/// What was collected from a member; missing parts keep their last value.
#[derive(Default)]
pub struct Facts {
    /// Its version.
    pub version: Option<Value>,
    /// Its kinds; none of them if they could not be found out.
    pub kinds: Option<Found>,
    /// Its nodes.
    pub nodes: Option<Value>,
    /// What its pods need.
    pub pods: Option<Pods>,
}

impl Facts {
    /// Writes them into the Cluster's status.
    pub fn write(self, cluster: &mut Cluster, now: jiff::Timestamp) {
        let status = &mut cluster.status;
        if let Some(version) = self.version {
            status.kubernetes_version = version["gitVersion"].as_str().unwrap_or_default().to_owned();
        }
        if let Some(Found { kinds, unanswered }) = self.kinds {
            let partial =
                || format!("might collect partial APIEnablements({}) from the cluster", kinds.len());
            let (holds, reason, message) = match (kinds.is_empty(), unanswered.is_empty()) {
                (true, _) => (False, "Empty", "collected empty APIEnablements from the cluster".to_owned()),
                (false, false) => (False, "Partial", partial()),
                (false, true) => {
                    (True, "Complete", "collected complete APIEnablements from the cluster".to_owned())
                }
            };
            if !kinds.is_empty() {
                // Missing parts keep their last value.
                let before = status.api_enablements.iter();
                let kept = before.filter(|one| unanswered.contains(&one.group_version)).cloned();
                let mut all: Vec<ApiEnablement> = enablements(&kinds).into_iter().chain(kept).collect();
                all.sort_by(|left, right| left.group_version.cmp(&right.group_version));
                status.api_enablements = all;
            }
            let complete = conditions::condition(COMPLETE_API_ENABLEMENTS, holds, reason, &message);
            conditions::set(&mut status.conditions, complete, now);
        }
        if let (Some(nodes), Some(pods)) = (self.nodes, self.pods) {
            let (nodes, resources) = summaries(items(&nodes), &pods);
            status.node_summary = Some(nodes);
            // Grades are modelled elsewhere; what is there stays.
            let modelled = status.resource_summary.take().unwrap_or_default();
            status.resource_summary =
                Some(ResourceSummary { allocatable_modelings: modelled.allocatable_modelings, ..resources });
        }
    }
}

fn summaries(nodes: &[Value], pods: &Pods) -> (NodeSummary, ResourceSummary) {
    let ready = nodes.iter().filter(|node| is_ready(node)).count();
    let mut resources = pods.summary();
    for node in nodes {
        add(&mut resources.allocatable, &node["status"]["allocatable"]);
    }
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    (NodeSummary { total_num: count(nodes.len()), ready_num: count(ready) }, resources)
}

fn enablements(kinds: &[TemplateKind]) -> Vec<ApiEnablement> {
    let mut groups: BTreeMap<&str, Vec<ApiResource>> = BTreeMap::new();
    for kind in kinds {
        let resource = ApiResource { name: kind.plural.clone(), kind: kind.kind.clone() };
        groups.entry(&kind.api_version).or_default().push(resource);
    }
    let sorted = groups.into_iter().map(|(version, mut resources)| {
        resources.sort();
        ApiEnablement { group_version: version.to_owned(), resources }
    });
    sorted.collect()
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

fn add(sum: &mut api::quantity::ResourceList, amounts: &Value) {
    for (name, amount) in amounts.as_object().into_iter().flatten() {
        let Some(amount) = amount.as_str().and_then(|text| text.parse::<Amount>().ok()) else { continue };
        add_amount(sum, name, amount);
    }
}

fn add_amount(sum: &mut api::quantity::ResourceList, name: &str, amount: Amount) {
    let before = sum.get(name).and_then(Amount::of).unwrap_or(Amount::whole(0));
    let total: Quantity = (before + amount).quantity();
    sum.insert(name.to_owned(), total);
}
