//! A strategy with its numbers read: which stage a cluster belongs to, how many of a stage may be under way, and what
//! its gate asks for (G3, G4).

use std::time::Duration;

use api::rollout_strategy::{FailureAction, IntOrPercent, RequiredCondition, RolloutGate, RolloutStage};
use api::{Cluster, StagedRollout};

use crate::affinity::cluster_matches;

/// Name of the stage of clusters that no other stage selects.
pub const LAST_STAGE: &str = "others";

/// A strategy with its numbers read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stages {
    /// The stages in order; the last one takes every cluster.
    pub stages: Vec<Stage>,
    /// How long a cluster may take.
    pub timeout: Option<Duration>,
    /// How many clusters may fail.
    pub max_failures: usize,
    /// What happens when more do.
    pub on_failure: FailureAction,
}

/// One stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Clusters that may be under way; none means one.
    concurrency: Option<IntOrPercent>,
    /// Its clusters; none of them means all.
    clusters: Option<api::ClusterAffinity>,
    /// Whether health is asked for.
    pub require_healthy: bool,
    /// Conditions that are asked for.
    pub conditions: Vec<RequiredCondition>,
    /// How long the gate must hold.
    pub min_success: Duration,
    /// Whether a person has to approve its end.
    pub approval: bool,
}

impl Stages {
    /// Reads a strategy. What admission refuses is read as its default.
    pub fn of(strategy: &StagedRollout) -> Stages {
        let mut stages: Vec<Stage> =
            strategy.stages.iter().map(|stage| Stage::of(stage, &strategy.gate)).collect();
        let open = stages.last().is_some_and(|stage| stage.clusters.is_none());
        if !open {
            let last = RolloutStage { name: LAST_STAGE.to_owned(), ..RolloutStage::default() };
            stages.push(Stage::of(&last, &strategy.gate));
        }
        Stages {
            stages,
            timeout: seconds(&strategy.timeout),
            max_failures: usize::try_from(strategy.max_failures).unwrap_or(0),
            on_failure: strategy.on_failure.as_ref().map(|rule| rule.action).unwrap_or_default(),
        }
    }

    /// The stage of a cluster, counted from 0: the first that selects it.
    pub fn stage_of(&self, cluster: &Cluster) -> usize {
        let selects =
            |stage: &Stage| stage.clusters.as_ref().is_none_or(|affinity| cluster_matches(affinity, cluster));
        self.stages.iter().position(selects).unwrap_or(self.stages.len() - 1)
    }
}

impl Stage {
    fn of(stage: &RolloutStage, gate: &RolloutGate) -> Stage {
        let both = [gate, &stage.gate];
        // A stage adds to the gate: it can ask for more, not for less.
        let healthy = both.map(|gate| gate.require_healthy);
        let min_success = both.iter().filter_map(|gate| seconds(&gate.min_success_time)).max();
        Stage {
            name: stage.name.clone(),
            concurrency: stage.max_concurrency.clone(),
            clusters: stage.cluster_affinity.clone(),
            require_healthy: healthy.contains(&Some(true)) || !healthy.contains(&Some(false)),
            conditions: both.iter().flat_map(|gate| gate.required_conditions.iter().cloned()).collect(),
            min_success: min_success.unwrap_or_default(),
            approval: both.iter().any(|gate| gate.approval == Some(true)),
        }
    }

    /// How many of so many clusters may be under way; at least one, or nothing would ever happen.
    pub fn concurrency(&self, clusters: usize) -> usize {
        let most = match &self.concurrency {
            None => 1,
            Some(IntOrPercent::Int(number)) => usize::try_from(*number).unwrap_or(1),
            Some(share) => clusters * share.percent().unwrap_or(0) as usize / 100,
        };
        most.max(1)
    }
}

/// Reads a duration as Go writes it: `90s`, `1h30m`, `1.5h`; none for what is empty or makes no sense.
pub fn seconds(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail.find(|letter: char| letter.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(total).ok()).flatten()
}
