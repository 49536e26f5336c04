//! The replica scheduling strategy of a placement, with defaults filled in.

use std::fmt;

use api::Placement;
use api::placement::{ReplicaDivisionPreference, ReplicaSchedulingType};
use serde::{Deserialize, Serialize};

/// The rule in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Each cluster gets all replicas.
    Duplicated,
    /// Shares by fixed weights.
    StaticWeight,
    /// Shares by free capacity.
    DynamicWeight,
    /// Shares in as few clusters as possible.
    Aggregated,
}

impl Strategy {
    /// The rule of a placement: nothing said means duplicated, divided without more means equal weights.
    pub fn of(placement: &Placement) -> Strategy {
        let Some(scheduling) = &placement.replica_scheduling else { return Strategy::Duplicated };
        if scheduling.replica_scheduling_type == Some(ReplicaSchedulingType::Duplicated) {
            return Strategy::Duplicated;
        }
        let dynamic =
            scheduling.weight_preference.as_ref().is_some_and(|weights| weights.dynamic_weight.is_some());
        match scheduling.replica_division_preference.unwrap_or_default() {
            ReplicaDivisionPreference::Aggregated => Strategy::Aggregated,
            ReplicaDivisionPreference::Weighted if dynamic => Strategy::DynamicWeight,
            ReplicaDivisionPreference::Weighted => Strategy::StaticWeight,
        }
    }

    /// True when the capacity of clusters counts, and what was decided before is kept where possible.
    pub fn follows_capacity(self) -> bool {
        matches!(self, Strategy::DynamicWeight | Strategy::Aggregated)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Strategy::Duplicated => "in full to each cluster",
            Strategy::StaticWeight => "by fixed weights",
            Strategy::DynamicWeight => "by free capacity",
            Strategy::Aggregated => "into as few clusters as possible",
        })
    }
}
