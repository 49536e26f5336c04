//! The delivery of a template to one member, from its Work or its binding. Reads only conditions and health.

use std::collections::BTreeMap;
use std::fmt;

use api::work::{APPLIED, DISPATCHING, Health};
use api::{Binding, Cluster, ConditionStatus, Work, names};
use decide::binding::is_held;
use decide::readiness::{Unknown, unknown};
use serde::{Deserialize, Serialize};

/// What one member has of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Whether the member has what the Work says; `None` if no write was attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<bool>,
    /// Why it has not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// Nothing is written to it now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Whether it is healthy there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// It is on its way out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// The member does not answer; what it reported before that is in `last_known`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Unknown>,
    /// What the member reported last, if its state is unknown now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_known: Option<LastKnown>,
}

/// What a member reported before it stopped answering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastKnown {
    /// Whether it had what the Work says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<bool>,
    /// Whether it was healthy there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

/// What became of it in each member, by cluster.
pub fn deliveries(works: &[Work], clusters: &[Cluster]) -> BTreeMap<String, Delivery> {
    let reported = works.iter().filter_map(|work| {
        let name = names::cluster_of_execution_namespace(&work.metadata.namespace)?;
        let cluster = clusters.iter().find(|cluster| cluster.metadata.name == name);
        Some((name.to_owned(), delivery(work).now(cluster.and_then(unknown))))
    });
    reported.collect()
}

/// The same from the binding, for readers who may not read Works.
pub fn reported(binding: &Binding, clusters: &[Cluster]) -> BTreeMap<String, Delivery> {
    let items = binding.status.aggregated_status.iter().map(|item| {
        let cluster = clusters.iter().find(|cluster| cluster.metadata.name == item.cluster_name);
        let has = item.applied || !item.applied_message.is_empty();
        let delivery = Delivery {
            applied: has.then_some(item.applied),
            problem: item.applied_message.clone(),
            suspended: is_held(binding, &item.cluster_name),
            health: item.health,
            leaving: false,
            unknown: None,
            last_known: None,
        };
        (item.cluster_name.clone(), delivery.now(cluster.and_then(unknown)))
    });
    items.collect()
}

fn delivery(work: &Work) -> Delivery {
    let condition = |name: &str| work.status.conditions.iter().find(|condition| condition.kind == name);
    let applied = condition(APPLIED);
    let has = applied.map(|condition| condition.status == ConditionStatus::True);
    let held = condition(DISPATCHING).is_some_and(|condition| condition.status == ConditionStatus::False);
    Delivery {
        applied: has,
        problem: applied.filter(|_| has == Some(false)).map(|one| one.message.clone()).unwrap_or_default(),
        suspended: held || work.spec.suspend_dispatching == Some(true),
        health: work.status.manifest_statuses.first().and_then(|manifest| manifest.health),
        leaving: work.metadata.deletion_timestamp.is_some(),
        unknown: None,
        last_known: None,
    }
}

impl Delivery {
    /// What can be said of it now: of a member that does not answer, only what it reported last.
    fn now(self, unknown: Option<Unknown>) -> Self {
        if unknown.is_none() {
            return self;
        }
        let last_known = Some(LastKnown { applied: self.applied, health: self.health });
        Self { applied: None, health: Some(Health::Unknown), unknown, last_known, ..self }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (applied, health) = match (&self.unknown, &self.last_known) {
            (Some(unknown), Some(last)) => {
                write!(formatter, "{unknown}; last reported: ")?;
                (last.applied, last.health)
            }
            _ => (self.applied, self.health),
        };
        let applied = match applied {
            Some(true) => "applied",
            Some(false) => "not applied",
            None => "not yet applied",
        };
        formatter.write_str(if self.leaving { "being removed" } else { applied })?;
        if !self.problem.is_empty() {
            write!(formatter, " ({})", self.problem)?;
        }
        match health {
            Some(Health::Healthy) => write!(formatter, ", healthy"),
            Some(Health::Unhealthy) => write!(formatter, ", unhealthy"),
            Some(Health::Unknown) | None => Ok(()),
        }
    }
}
