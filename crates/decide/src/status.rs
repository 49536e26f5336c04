//! Status aggregation: from members' reports to the status of Works, of the binding, and of the template.

use std::collections::BTreeSet;

use api::binding::{AggregatedStatusItem, FULLY_APPLIED};
use api::work::{APPLIED, DISPATCHING, Health, ManifestStatus, ResourceIdentifier};
use api::{Binding, Condition, ConditionStatus, Text, Work, names};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::conditions;
use crate::fields::{integer, text};
use crate::interpret;
use crate::template::{Template, group};
use crate::works::clusters_in_use;

/// How a binding fares in its clusters.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Status per cluster, sorted by name.
    pub items: Vec<AggregatedStatusItem>,
    /// True when exactly the binding's clusters have the manifest.
    pub fully_applied: bool,
}

/// The status of a binding from its Works.
pub fn status(binding: &Binding, works: &[Work]) -> Status {
    let living = works.iter().filter(|work| work.metadata.deletion_timestamp.is_none());
    let mut items: Vec<AggregatedStatusItem> = living.filter_map(|work| item(binding, work)).collect();
    items.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
    let wanted = clusters_in_use(&binding.spec);
    let applied: BTreeSet<&str> =
        items.iter().filter(|item| item.applied).map(|item| item.cluster_name.as_str()).collect();
    let fully_applied = !wanted.is_empty() && applied.iter().eq(wanted.keys()) && items.len() == wanted.len();
    Status { items, fully_applied }
}

impl Status {
    /// Writes the status into a binding; the same status twice is no change (C6).
    pub fn write(&self, binding: &mut Binding, now: Timestamp) {
        binding.status.aggregated_status.clone_from(&self.items);
        let (reason, message) = match self.fully_applied {
            true => ("FullyAppliedSuccess", "All works have been successfully applied"),
            false => {
                ("FullyAppliedFailed", "Failed to apply all works, see status.aggregatedStatus for details")
            }
        };
        let condition = conditions::condition(FULLY_APPLIED, self.fully_applied.into(), reason, message);
        conditions::set(&mut binding.status.conditions, condition, now);
    }

    /// Whether more is to be expected: a cluster of the binding has not answered yet, what it has is on its way to be
    /// healthy, or not, or a copy is about to go. What it refused is final.
    pub fn is_unfinished(&self, binding: &Binding) -> bool {
        let answered = |name: &str| self.items.iter().find(|item| item.cluster_name == name);
        let is_settled = |item: &AggregatedStatusItem| match item.applied {
            true => item.health != Some(Health::Unhealthy),
            false => !item.applied_message.is_empty(),
        };
        let in_use = clusters_in_use(&binding.spec);
        // A copy that is being left goes as soon as its successors are there.
        let is_left = self.items.iter().any(|item| !in_use.contains_key(item.cluster_name.as_str()));
        is_left || !in_use.keys().all(|name| answered(name).is_some_and(is_settled))
    }

    /// Whether no cluster has said anything yet, and the binding does not say otherwise.
    pub fn is_silent(&self, binding: &Binding) -> bool {
        let is_silent = |item: &AggregatedStatusItem| !item.applied && item.applied_message.is_empty();
        self.items.iter().chain(&binding.status.aggregated_status).all(is_silent)
    }

    /// The template's new status; none if it stays as it is.
    pub fn of_template(&self, template: &Template, now: Timestamp) -> Option<Value> {
        interpret::aggregate(&template.object(), &self.items, now)
    }
}

/// What a Work should say about its manifest, given the member's object as it is now.
pub fn manifest_status(object: &Value) -> ManifestStatus {
    let api_version = text(object, &["apiVersion"]);
    ManifestStatus {
        identifier: identifier(
            api_version,
            text(object, &["kind"]),
            text(object, &["metadata", "namespace"]),
            text(object, &["metadata", "name"]),
        ),
        status: interpret::reflect(object).map(Text::from),
        health: Some(interpret::health(object)),
        outdated: is_outdated(object),
    }
}

/// Whether a status says itself that it is about an older generation of the object. The health of built-in kinds
/// considers that already.
fn is_outdated(object: &Value) -> bool {
    let known = interpret::has_health(text(object, &["apiVersion"]), text(object, &["kind"]));
    let observed = integer(object, &["status", "observedGeneration"]).filter(|_| !known);
    observed.is_some_and(|observed| integer(object, &["metadata", "generation"]) != Some(observed))
}

/// The `Dispatching` condition of a Work (U2).
pub fn dispatching(work: &Work) -> Condition {
    match work.spec.suspend_dispatching {
        Some(true) => conditions::condition(
            DISPATCHING,
            ConditionStatus::False,
            "SuspendDispatching",
            "Work dispatching is in a suspended state.",
        ),
        _ => conditions::condition(
            DISPATCHING,
            ConditionStatus::True,
            "Dispatching",
            "Work is being dispatched to member clusters.",
        ),
    }
}

/// The status that one Work reports: nothing is assumed about a manifest the member does not have.
fn item(binding: &Binding, work: &Work) -> Option<AggregatedStatusItem> {
    let cluster_name = names::cluster_of_execution_namespace(&work.metadata.namespace)?.to_owned();
    let condition = conditions::find(&work.status.conditions, APPLIED);
    let applied = condition.is_some_and(|condition| condition.status == ConditionStatus::True);
    let unknown =
        AggregatedStatusItem { cluster_name, applied, health: Some(Health::Unknown), ..Default::default() };
    if !applied {
        let applied_message = condition.map(|condition| condition.message.clone()).unwrap_or_default();
        return Some(AggregatedStatusItem { applied_message, ..unknown });
    }
    let resource = &binding.spec.resource;
    let wanted = identifier(&resource.api_version, &resource.kind, &resource.namespace, &resource.name);
    let told = work.status.manifest_statuses.iter().find(|told| told.identifier == wanted);
    Some(match told {
        Some(told) => AggregatedStatusItem { status: told.status.clone(), health: told.health, ..unknown },
        None => unknown,
    })
}

fn identifier(api_version: &str, kind: &str, namespace: &str, name: &str) -> ResourceIdentifier {
    let group = group(api_version);
    let version = api_version.rsplit('/').next().unwrap_or_default();
    ResourceIdentifier {
        ordinal: 0,
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        resource: String::new(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
