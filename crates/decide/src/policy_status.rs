//! The status of a policy: counts from the records on templates and bindings, what one template adds, the sum, and the
//! conditions. Visits only what the policy claims.

use api::propagation::{DISPATCHING, IN_EFFECT, RolloutCounts, TemplateCounts};
use api::records::StrategyRecord;
use api::rollout_progress::ROLLED_OUT;
use api::{Binding, Condition, ConditionStatus, RolloutPhase};

use crate::binding::follows;
use crate::conditions::condition;
use crate::gates::Gates;
use crate::policy::Policy;
use crate::snapshot::Snapshot;
use crate::template::Template;

/// Counts of the templates a policy claims, and of those taken from it.
pub fn template_counts(policy: &Policy, snapshot: &Snapshot) -> TemplateCounts {
    let mut counts = TemplateCounts::default();
    for template in snapshot.templates.claimed(policy.id()).filter_map(|key| snapshot.templates.get(key)) {
        let binding = snapshot.bindings.get(&template.key.binding()).map(AsRef::as_ref);
        let one = standing(template, binding, policy);
        counts.claimed += one.claimed;
        counts.up_to_date += one.up_to_date;
        counts.pending_activation += one.pending_activation;
        counts.suspended += one.suspended;
        counts.preempted_from += one.preempted_from;
    }
    counts.preempted_by =
        i32::try_from(snapshot.templates.taken_from(&policy.uid).count()).unwrap_or(i32::MAX);
    counts
}

/// What one template adds to the counts of the policy that claims it; each is none or one.
pub fn standing(template: &Template, binding: Option<&Binding>, policy: &Policy) -> TemplateCounts {
    let up_to_date = binding.is_some_and(|binding| follows(binding, policy));
    let suspension = binding.and_then(|binding| binding.spec.suspension.as_ref());
    let suspended = suspension.is_some_and(|suspension| {
        suspension.dispatching == Some(true)
            || suspension.dispatching_on_clusters.as_ref().is_some_and(|on| !on.cluster_names.is_empty())
    });
    let taken = template.claim_record().is_some_and(|record| !record.taken_from.is_empty());
    TemplateCounts {
        claimed: 1,
        up_to_date: up_to_date.into(),
        pending_activation: (!up_to_date).into(),
        suspended: suspended.into(),
        preempted_from: taken.into(),
        preempted_by: 0,
    }
}

/// What the rollout of one template adds to the counts of the policy that claims it; nothing where its changes go
/// everywhere at once.
pub fn rollout_standing(binding: Option<&Binding>) -> RolloutCounts {
    let staged = binding.filter(|binding| StrategyRecord::read(&binding.metadata).is_some());
    let Some(binding) = staged else { return RolloutCounts::default() };
    let phase = binding.status.rollout.as_ref().map(|progress| progress.phase).unwrap_or_default();
    let is = |one: bool| i32::from(one);
    RolloutCounts {
        templates: 1,
        in_progress: is(matches!(phase, RolloutPhase::Pending | RolloutPhase::Progressing)),
        paused: is(phase == RolloutPhase::Paused),
        failed: is(phase == RolloutPhase::Failed),
    }
}

/// Whether the last change of every template has reached its clusters; none where no change spreads in stages.
pub fn rolled_out(counts: &RolloutCounts) -> Option<Condition> {
    let RolloutCounts { templates, in_progress, paused, failed } = *counts;
    let (status, reason, message) = match (templates, in_progress + paused + failed) {
        (0, _) => return None,
        (_, 0) => {
            let message = format!("The last change of {templates} templates has reached all their clusters.");
            (ConditionStatus::True, "AllStagesPassed", message)
        }
        _ => {
            let reason = if failed + paused > 0 { "Stopped" } else { "StageInProgress" };
            let message = format!(
                "Of {templates} templates {in_progress} are on their way through the stages, {paused} are paused \
                 and {failed} have failed."
            );
            (ConditionStatus::False, reason, message)
        }
    };
    Some(condition(ROLLED_OUT, status, reason, &message))
}

/// The counts as conditions, for the writer of the policy's status; without times.
pub fn conditions(policy: &Policy, counts: &TemplateCounts, gates: &Gates) -> [Condition; 2] {
    [in_effect(policy, counts, gates), dispatching(counts)]
}

fn in_effect(policy: &Policy, counts: &TemplateCounts, gates: &Gates) -> Condition {
    let TemplateCounts { claimed, pending_activation: pending, .. } = *counts;
    let generation = policy.generation;
    let (status, reason, message) = match (claimed, pending) {
        (0, _) => (ConditionStatus::True, "NothingClaimed", "It claims no template.".to_owned()),
        (_, 0) => {
            let message =
                format!("All templates that it claims, {claimed}, follow its generation {generation}.");
            (ConditionStatus::True, "EverythingFollows", message)
        }
        _ => {
            let (reason, why) = match (policy.spec.is_lazy(), gates.static_policy) {
                (true, _) => ("Lazy", "until they change, because it is lazy"),
                (false, true) => ("StaticPolicy", "until they change, because policies are static"),
                (false, false) => ("Pending", "for now"),
            };
            let message =
                format!("{pending} of {claimed} templates do not follow its generation {generation} {why}.");
            (ConditionStatus::False, reason, message)
        }
    };
    condition(IN_EFFECT, status, reason, &message)
}

/// As of a Work, so that one word means one thing.
fn dispatching(counts: &TemplateCounts) -> Condition {
    let TemplateCounts { claimed, suspended, .. } = *counts;
    match suspended {
        0 => condition(
            DISPATCHING,
            ConditionStatus::True,
            "Dispatching",
            "Its templates are written to members.",
        ),
        _ => {
            let message =
                format!("{suspended} of {claimed} templates are suspended, in all or in some clusters.");
            condition(DISPATCHING, ConditionStatus::False, "SuspendDispatching", &message)
        }
    }
}

#[cfg(test)]
mod tests {
    use api::PropagationPolicy;

    use super::*;

    #[test]
    fn what_the_counts_mean() {
        let check = |lazy: bool, fixed: bool, counts: [i32; 3], expected: [&str; 2]| {
            let spec = serde_json::json!({ "activationPreference": lazy.then_some("Lazy") });
            let object = serde_json::json!({ "metadata": { "generation": 3 }, "spec": spec });
            let object: PropagationPolicy = serde_json::from_value(object).expect("a policy");
            let policy = Policy::from(&object);
            let [claimed, pending_activation, suspended] = counts;
            let counts =
                TemplateCounts { claimed, pending_activation, suspended, ..TemplateCounts::default() };
            let gates = Gates { static_policy: fixed, ..Gates::default() };
            let said = conditions(&policy, &counts, &gates)
                .map(|one| format!("{:?} {}: {}", one.status, one.reason, one.message));
            assert_eq!(said, expected);
        };
        let goes = "True Dispatching: Its templates are written to members.";
        check(true, false, [0, 0, 0], ["True NothingClaimed: It claims no template.", goes]);
        let follow = "True EverythingFollows: All templates that it claims, 2, follow its generation 3.";
        let held = "False SuspendDispatching: 1 of 2 templates are suspended, in all or in some clusters.";
        check(false, true, [2, 0, 1], [follow, held]);
        let lazy = "False Lazy: 1 of 2 templates do not follow its generation 3 until they change, because it is lazy.";
        check(true, true, [2, 1, 0], [lazy, goes]);
        let fixed = "False StaticPolicy: 1 of 2 templates do not follow its generation 3 until they change, \
                     because policies are static.";
        check(false, true, [2, 1, 0], [fixed, goes]);
        check(
            false,
            false,
            [2, 1, 0],
            ["False Pending: 1 of 2 templates do not follow its generation 3 for now.", goes],
        );
    }
}
