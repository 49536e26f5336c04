//! Rollouts in stages: which cluster may have which revision now, what to record, and when to look again (G1 to G13).
//! A function of strategy, record, what clusters show and the time; everything that must outlive a moment is in the
//! record. Knows nothing of Works and renders nothing.

mod news;
mod permit;
mod request;
mod revision;
mod stages;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::{BindingRollout, ConditionStatus, RolloutProgress, Time};
use jiff::Timestamp;

pub use news::{Happened, News, condition, news};
pub(crate) use permit::stays;
pub use permit::{Permit, is_in_flight, permit};
pub use request::{Action, Request};
pub(crate) use revision::content;
pub use revision::revision;
pub use stages::{LAST_STAGE, Stage, Stages, seconds};
pub use step::step;

/// Everything that a step depends on.
#[derive(Debug, Clone)]
pub struct Situation<'s> {
    /// The strategy.
    pub stages: &'s Stages,
    /// What clusters are to have, by its digest.
    pub revision: &'s str,
    /// What the binding's spec records.
    pub recorded: Option<&'s BindingRollout>,
    /// What the binding's status records.
    pub progress: Option<&'s RolloutProgress>,
    /// What a person asks for; empty if nothing.
    pub request: &'s str,
    /// The clusters that are to have it.
    pub clusters: BTreeMap<String, Seen>,
    /// Clusters that have a copy which is no longer wanted there.
    pub unwanted: BTreeSet<String>,
    /// Whether the clusters are the scheduler's answer to the binding as it is now.
    pub placed: bool,
    /// Whether the template is leaving clusters that fail.
    pub fails_over: bool,
    /// Now.
    pub now: Timestamp,
}

/// What is known of one cluster.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Its stage, counted from 0.
    pub stage: usize,
    /// A user suspended it there (G10).
    pub held: bool,
    /// It has what it is to have already, whether or not it was its turn.
    pub same: bool,
    /// What it shows of the revision.
    pub delivery: Delivery,
}

/// What a cluster shows of a revision that it may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Delivery {
    /// It is on its way.
    #[default]
    UnderWay,
    /// The cluster does not answer.
    Unreachable,
    /// The cluster does not take it.
    Refused {
        /// Why.
        why: String,
        /// Since when.
        since: Option<Time>,
    },
    /// The cluster has it.
    Applied {
        /// Whether it is healthy.
        healthy: bool,
        /// Whether what it reports is about this revision.
        current: bool,
        /// What else it reports.
        conditions: Vec<(String, ConditionStatus)>,
    },
}

/// What is to be recorded, and when to look again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// For the binding's spec; none once every cluster may have the revision.
    pub rollout: Option<BindingRollout>,
    /// For the binding's status.
    pub progress: RolloutProgress,
    /// After this time something may be due although nothing changed.
    pub look_again: Option<Duration>,
}

#[cfg(test)]
mod tests;
