//! Validation of rollout strategies.

use std::collections::BTreeSet;

use api::RolloutStrategy;
use api::rollout_strategy::{
    FailureAction, IntOrPercent, RolloutGate, RolloutStage, RolloutStrategyType, StagedRollout,
};

use super::Findings;
use crate::rollout::{LAST_STAGE, seconds};

const PATH: &str = "spec.rolloutStrategy";

/// Which kind of policy has the strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A propagation policy, and whether it takes dependencies along.
    Propagation { propagate_deps: bool },
    /// A rollout policy.
    Rollout,
}

/// The strategy of a policy.
pub(super) fn check(strategy: Option<&RolloutStrategy>, of: Of, findings: &mut Findings) {
    let Some(strategy) = strategy else { return };
    if strategy.kind == RolloutStrategyType::AllAtOnce {
        if strategy.staged.is_some() {
            findings.warn(format!("{PATH}.staged does nothing while type is AllAtOnce; write type: Staged"));
        }
        return;
    }
    let staged = strategy.staged().unwrap_or_default();
    if of == (Of::Propagation { propagate_deps: true }) {
        findings.refuse(
            PATH,
            "type Staged together with propagateDeps: true is not supported yet, because dependencies would not \
             wait for their stage; leave one of them out",
        );
    }
    stages(&staged, findings);
    gate(&format!("{PATH}.staged.gate"), &staged.gate, findings);
    duration(&format!("{PATH}.staged.timeout"), &staged.timeout, findings);
    if staged.max_failures < 0 {
        findings.refuse(format!("{PATH}.staged.maxFailures"), "must not be negative; 0 is the default");
    }
    if staged.on_failure.is_some_and(|rule| rule.action == FailureAction::Rollback) {
        findings.refuse(
            format!("{PATH}.staged.onFailure.action"),
            "Rollback is not supported yet; write Pause or Continue",
        );
    }
    if staged.templates.is_some() {
        let message = match of {
            Of::Rollout => "belongs into a propagation policy, which has the templates that go in waves",
            Of::Propagation { .. } => "is not supported yet; leave it out",
        };
        findings.refuse(format!("{PATH}.staged.templates"), message);
    }
}

fn stages(staged: &StagedRollout, findings: &mut Findings) {
    if staged.stages.is_empty() {
        findings.warn(format!(
            "{PATH}.staged.stages is empty, so that one cluster after the other gets a change, by name"
        ));
    }
    let mut names = BTreeSet::new();
    let mut open: Option<&str> = None;
    for (index, stage) in staged.stages.iter().enumerate() {
        let path = format!("{PATH}.staged.stages[{index}]");
        match stage.name.as_str() {
            "" => findings.refuse(format!("{path}.name"), "must not be empty"),
            LAST_STAGE => findings.refuse(
                format!("{path}.name"),
                format!("{LAST_STAGE:?} is the stage of clusters that no stage selects; choose another name"),
            ),
            name if !names.insert(name) => {
                findings.refuse(format!("{path}.name"), format!("{name:?} is used twice"));
            }
            _ => {}
        }
        concurrency(&path, stage, findings);
        gate(&format!("{path}.gate"), &stage.gate, findings);
        if let Some(earlier) = open {
            let name = &stage.name;
            findings.warn(format!("stage {name} selects no cluster, because stage {earlier} takes all"));
        }
        if selects_none(stage) {
            findings.warn(format!("stage {} selects no cluster", stage.name));
        }
        if stage.cluster_affinity.is_none() {
            open = open.or(Some(&stage.name));
        }
    }
}

/// Whether no cluster can ever match.
fn selects_none(stage: &RolloutStage) -> bool {
    let Some(affinity) = &stage.cluster_affinity else { return false };
    let names = &affinity.cluster_names;
    let fields = affinity.field_selector.iter().flat_map(|selector| &selector.match_expressions);
    let excluded = !names.is_empty() && names.iter().all(|name| affinity.exclude_clusters.contains(name));
    excluded
        || fields.into_iter().any(|one| one.operator == api::selector::Operator::In && one.values.is_empty())
}

fn concurrency(path: &str, stage: &RolloutStage, findings: &mut Findings) {
    let fits = match &stage.max_concurrency {
        None => true,
        Some(IntOrPercent::Int(number)) => *number >= 1,
        Some(share) => share.percent().is_some_and(|percent| (1..=100).contains(&percent)),
    };
    if !fits {
        findings.refuse(
            format!("{path}.maxConcurrency"),
            "must be a number from 1 on or a percentage from 1% to 100%, for example 50%",
        );
    }
}

fn gate(path: &str, gate: &RolloutGate, findings: &mut Findings) {
    duration(&format!("{path}.minSuccessTime"), &gate.min_success_time, findings);
    for (index, condition) in gate.required_conditions.iter().enumerate() {
        if condition.kind.is_empty() {
            findings.refuse(format!("{path}.requiredConditions[{index}].type"), "must not be empty");
        }
    }
}

fn duration(path: &str, text: &str, findings: &mut Findings) {
    if !text.is_empty() && seconds(text).is_none() {
        findings.refuse(path, format!("{text:?} is no duration; write for example 90s, 30m or 1h30m"));
    }
}
