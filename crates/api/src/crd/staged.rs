//! Schemas of rollouts in stages: the strategy in policies, and what is recorded on bindings.

use super::parts::{cluster_affinity, label_selector};
use super::schema::{
    Described, Field, Schema, boolean, date_time, int_or_string, int32, list_of, object, one_of, string,
    strings,
};

/// Stages of one strategy.
const STAGES_MAX: usize = 100;
/// Conditions of one gate.
const CONDITIONS_MAX: usize = 32;

const DURATION: &str = "for example `90s`, `30m` or `1h30m`";

pub(super) fn rollout_strategy() -> Described {
    let kind = one_of(&["AllAtOnce", "Staged"]).default("AllAtOnce").about(
        "`AllAtOnce` (default): every cluster gets a change at once. `Staged`: it goes through the stages in \
         `staged`.",
    );
    object([("type", kind), ("staged", staged())]).about(
        "How a change of what clusters receive (template, policy, overrides) spreads over the clusters. A \
         change of replicas alone, suspension, failover and deletion never wait. Absent: all at once.",
    )
}

fn staged() -> Described {
    let timeout = format!(
        "How long a cluster may take to pass the gate, from the moment the change may go there, {DURATION}. \
         Absent: as long as it needs."
    );
    let stages = list_of(stage()).keyed_by("name").at_most(STAGES_MAX).about(
        "Stages in order. A cluster that several select belongs to the first; clusters that none selects are \
         a last stage of their own. Empty: one cluster at a time, by name.",
    );
    object([
        (
            "gate",
            object(gate_fields()).about("What each cluster must show before the next one gets the change."),
        ),
        ("maxFailures", int32().about("How many clusters may fail before onFailure acts. Default 0.")),
        ("onFailure", object([("action", action())]).about("What happens when more clusters fail.")),
        ("stages", stages),
        ("templates", templates()),
        ("timeout", string().about(&timeout)),
    ])
    .about("The stages and the gate between them. Only with type Staged.")
}

fn action() -> Described {
    one_of(&["Pause", "Continue", "Rollback"]).required().about(
        "`Pause` (default): clusters that have not started keep what they have until a person resumes the \
         rollout or there is another change. `Continue`: it goes on, with a warning. `Rollback`: not supported \
         yet, and refused.",
    )
}

fn stage() -> Schema {
    object([
        (
            "clusterAffinity",
            cluster_affinity().about(
                "Clusters of the stage: those that match every part that is set. Absent: all that no earlier \
                 stage selects.",
            ),
        ),
        (
            "gate",
            object(gate_fields()).about("What clusters of this stage must show besides the strategy's gate."),
        ),
        (
            "maxConcurrency",
            share().about(
                "How many clusters of the stage may be between delivery and gate: a number, or a percentage of \
                 the stage such as `50%`, at least one. Default 1.",
            ),
        ),
        ("name", string().length(1, 63).required().about("Name of the stage, unique in the strategy.")),
    ])
}

fn share() -> Schema {
    // Numbers out of range are refused with the reason by admission.
    int_or_string()
}

fn gate_fields() -> [Field; 4] {
    let condition = object([
        (
            "status",
            one_of(&["True", "False", "Unknown"])
                .required()
                .about("Status that it must have: `True`, `False` or `Unknown`."),
        ),
        ("type", string().length(1, 316).required().about("Type of the condition.")),
    ]);
    let time = format!(
        "How long the whole gate must hold without interruption, {DURATION}. Absent: a moment is enough."
    );
    [
        (
            "approval",
            boolean().about(
                "True: the end of a stage waits until a person approves it with `longshore rollout approve`. \
                 Default false.",
            ),
        ),
        ("minSuccessTime", string().about(&time)),
        (
            "requireHealthy",
            boolean().about("Whether the object must be healthy in the cluster. Default true."),
        ),
        (
            "requiredConditions",
            list_of(condition).at_most(CONDITIONS_MAX).about(
                "Conditions that must be there, in the status that is collected of the object or on its Work, \
                 where another program may write them with the generation of the Work that it looked at.",
            ),
        ),
    ]
}

fn templates() -> Described {
    let first = object([(
        "labelSelector",
        label_selector().about("Labels of these templates. Absent: no template goes first."),
    )]);
    object([
        ("first", first.about("Templates that go before the others.")),
        ("maxFailures", int32().about("How many templates may fail. Default 0.")),
        ("maxInProgress", share().about("How many templates may be in a rollout at once.")),
    ])
    .about("Waves over the templates of the policy. Not supported yet, and refused.")
}

/// What the spec of a binding says.
pub(super) fn suspended_by_rollout() -> Described {
    object([
        ("currentClusters", strings().about("Clusters that may have the revision.")),
        (
            "leavingClusters",
            strings().about(
                "Clusters that the revision does not want and that keep their copy until it is complete.",
            ),
        ),
        ("revision", string().about("Revision that is rolled out.")),
        ("suspendedClusters", strings().about("Clusters that keep what they have until it is their turn.")),
    ])
    .about(
        "Which clusters may have a change that spreads in stages. The controllers write it; a cluster that is \
         not among currentClusters keeps the revision that it has.",
    )
}

/// What the status of a binding says.
pub(super) fn rollout_progress() -> Described {
    object(standing().into_iter().chain(lists())).about(
        "How far the last change is on its way through the stages. Absent where changes do not spread in \
         stages.",
    )
}

fn standing() -> [Field; 8] {
    let phases = ["Pending", "Progressing", "Paused", "Succeeded", "Failed"];
    [
        ("answered", string().about("Last request of a person that was answered.")),
        ("message", string().about("Why the rollout stands where it stands, for people.")),
        (
            "phase",
            one_of(&phases).about(
                "`Pending`: no cluster has started. `Progressing`: clusters get the change. `Paused`: no \
                 further cluster starts until a person acts or there is another change. `Succeeded`: every \
                 cluster may have it. `Failed`: it was aborted, or too many clusters failed.",
            ),
        ),
        ("reason", string().about("Why the rollout stands where it stands, for programs.")),
        ("revision", string().about("Digest of all that decides what clusters receive.")),
        ("stage", string().about("Stage that the rollout is in.")),
        ("startedAt", date_time().about("When the rollout began.")),
        ("supersedes", string().about("Revision in flight that this one took the place of.")),
    ]
}

fn lists() -> [Field; 5] {
    let cluster = object([
        ("gateSatisfiedSince", date_time().about("Since when the gate holds there without interruption.")),
        ("name", string().about("Name of the cluster.")),
        (
            "startedAt",
            date_time().about("When the change could go there. Absent while the cluster is suspended."),
        ),
        ("waitsFor", string().about("What the cluster still has to show.")),
    ]);
    let failure = object([
        ("message", string().about("Why the cluster failed.")),
        ("name", string().about("Name of the cluster.")),
    ]);
    [
        ("approvedStages", strings().about("Stages whose end a person has approved.")),
        ("clusters", list_of(cluster).about("Clusters between delivery and gate.")),
        ("completedClusters", strings().about("Clusters that have passed the gate.")),
        ("failedClusters", list_of(failure).about("Clusters that have failed.")),
        ("skippedClusters", strings().about("Clusters that a person decided not to wait for.")),
    ]
}

/// What the status of a policy says.
pub(super) fn rollout_counts() -> Described {
    object([
        ("failed", int32().required().about("Templates whose last rollout ended without success.")),
        ("inProgress", int32().required().about("Templates that are on their way through the stages.")),
        ("paused", int32().required().about("Templates whose rollout waits for a person or another change.")),
        ("templates", int32().required().about("Claimed templates whose changes spread in stages.")),
    ])
    .about("How the rollouts of the claimed templates fare. Absent where changes do not spread in stages.")
}
