//! What became of a template in one member, as its Work tells. Knows no values, only conditions and health.

use std::collections::BTreeMap;
use std::fmt;

use api::work::{APPLIED, DISPATCHING, Health};
use api::{ConditionStatus, Work, names};
use serde::Serialize;

/// What one member has of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Whether the member has what the Work says; none if nobody has tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<bool>,
    /// Why it has not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub problem: String,
    /// Nothing is written to it now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Whether it is healthy there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// It is on its way out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
}

/// What became of it in each member, by cluster.
pub fn deliveries(works: &[Work]) -> BTreeMap<String, Delivery> {
    let cluster =
        |work: &Work| names::cluster_of_execution_namespace(&work.metadata.namespace).map(str::to_owned);
    works.iter().filter_map(|work| Some((cluster(work)?, delivery(work)))).collect()
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
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let applied = match self.applied {
            Some(true) => "applied",
            Some(false) => "not applied",
            None => "not yet applied",
        };
        formatter.write_str(if self.leaving { "being removed" } else { applied })?;
        if !self.problem.is_empty() {
            write!(formatter, " ({})", self.problem)?;
        }
        match self.health {
            Some(Health::Healthy) => write!(formatter, ", healthy"),
            Some(Health::Unhealthy) => write!(formatter, ", unhealthy"),
            Some(Health::Unknown) | None => Ok(()),
        }
    }
}
