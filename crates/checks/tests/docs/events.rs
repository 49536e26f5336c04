//! The reference of Events: every reason that the controllers write, and no other.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use regex::Regex;

use crate::repository::{Page, expect_page, pages, without_tests};

const PAGE: &str = "docs/reference/events.md";

const HEAD: &str = "\
# Events

Every reason that the controllers write in an Event, what it is about, and when. Reasons are Karmada's where Karmada has
them. The limits per object, beyond which Events are dropped, are in [differences](../differences.md).

Checked against the code, and written anew, by `UPDATE_EXPECT=1 cargo test -p checks --test docs`

| reason | type | on | when |
|---|---|---|---|
";

const BOTH: &str = "binding, template";

/// Every reason: its type, what the Event is on, and when it is written.
const REASONS: &[(&str, &str, &str, &str)] = &[
    ("AggregateStatusFailed", "Warning", BOTH, "the status of members could not be written"),
    ("AggregateStatusSucceed", "Normal", BOTH, "the status of members was written"),
    (
        "ApplyOverridePolicyFailed",
        "Warning",
        "template",
        "an override policy cannot be applied; the copy in that cluster stays as it is",
    ),
    ("ApplyOverridePolicySucceed", "Normal", "template", "an override policy changed a copy"),
    ("ApplyPolicyFailed", "Warning", "template", "the binding could not follow its policy"),
    ("ApplyPolicySucceed", "Normal", "template", "the binding was created or changed by its policy"),
    ("CleanupWorkFailed", "Warning", "binding", "a Work that is no longer needed could not be deleted"),
    ("CreateExecutionSpaceFailed", "Warning", "Cluster", "the execution namespace could not be created"),
    ("CreateExecutionSpaceSucceed", "Normal", "Cluster", "the execution namespace was created"),
    (
        "DependencyOutsideNamespace",
        "Warning",
        "binding",
        "dependencies in another namespace are ignored (M3)",
    ),
    (
        "DependencyPolicyConflict",
        "Warning",
        "binding of a dependency",
        "the policies of the workloads that depend on it disagree",
    ),
    ("EvictWorkloadFromClusterFailed", "Warning", BOTH, "an eviction could not be written"),
    (
        "EvictWorkloadFromClusterSucceed",
        "Normal",
        BOTH,
        "an eviction from a cluster began, or its copy may be deleted now",
    ),
    ("GetDependenciesSucceed", "Normal", "template", "its list of dependencies changed"),
    ("GetReplicasSucceed", "Normal", "template", "its replicas were read while its policy was applied"),
    ("InterpretHealthSucceed", "Normal", "Work", "the health of the member's object changed"),
    ("LastCopyKept", "Warning", BOTH, "a copy should leave, and stays because no other cluster fits (M2)"),
    ("PreemptPolicyFailed", "Warning", "template", "a policy could not preempt the claim of another"),
    ("PreemptPolicySucceed", "Normal", "template", "a policy preempted the claim of another (P5)"),
    (
        "ReconcilePanicked",
        "Warning",
        "object of the reconcile",
        "the reconcile panicked; it is retried with backoff",
    ),
    ("ReflectStatusSucceed", "Normal", "Work", "the status of the member's object changed"),
    ("RemoveExecutionSpaceFailed", "Warning", "Cluster", "the execution namespace could not be deleted"),
    ("RemoveExecutionSpaceSucceed", "Normal", "Cluster", "the execution namespace was deleted"),
    (
        "RenewCredentialsFailed",
        "Warning",
        "Cluster",
        "its credentials could not be renewed before they expire",
    ),
    ("RenewCredentialsSucceed", "Normal", "Cluster", "its credentials were renewed"),
    (
        "ResourceOutsideNamespace",
        "Warning",
        "binding",
        "it names an object outside its namespace and is ignored (M3)",
    ),
    (
        "RolloutClusterFailed",
        "Warning",
        BOTH,
        "a cluster did not pass its gate in time, or refused the object (G6)",
    ),
    (
        "RolloutFailed",
        "Warning",
        BOTH,
        "a rollout in stages was aborted, or ended with too many failures (G6)",
    ),
    ("RolloutPaused", "Warning", BOTH, "a rollout in stages waits for a person or another change (G6)"),
    ("RolloutStagePassed", "Normal", BOTH, "all clusters of a stage are done (G3)"),
    ("RolloutStageStarted", "Normal", BOTH, "a stage began (G3)"),
    ("RolloutStarted", "Normal", BOTH, "a change began to spread in stages (G2)"),
    ("RolloutSucceeded", "Normal", BOTH, "a change has passed all stages"),
    ("RolloutSuperseded", "Normal", BOTH, "a newer change took the place of one in flight (G7)"),
    ("ScheduleBindingFailed", "Warning", BOTH, "it could not be scheduled; the message says why"),
    ("ScheduleBindingSucceed", "Normal", BOTH, "it was scheduled; the message lists the clusters"),
    ("SyncFailed", "Warning", "Work, template", "the object could not be written to a member"),
    ("SyncScheduleResultToDependenciesFailed", "Warning", "binding", "its dependencies could not follow it"),
    ("SyncScheduleResultToDependenciesSucceed", "Normal", "binding", "its dependencies follow it"),
    ("SyncSucceed", "Normal", "Work, template", "the object was written to a member"),
    ("SyncWorkFailed", "Warning", BOTH, "its Works could not be written, or stay as they are"),
    ("SyncWorkSucceed", "Normal", BOTH, "its Works were written"),
    ("TaintClusterFailed", "Warning", "Cluster", "its taints could not be written"),
    ("TaintClusterSucceed", "Normal", "Cluster", "its taints changed"),
    (
        "UpdateBindingRejected",
        "Warning",
        BOTH,
        "admission rejects the change of the binding; copies in members stay as they are",
    ),
    ("WorkDispatching", "Normal", "Work", "it is suspended, or dispatched again (U2)"),
];

/// Words of the same shape, in files that write Events, that are no reasons of Events.
const NO_REASONS: [&str; 9] = [
    "AppliedFailed",
    "AppliedSuccessful",
    "AssignReplicas",
    "ClusterResourceBinding",
    "ReCreateFailed",
    "ReCreateSuccessful",
    "ResourceBinding",
    "ScheduleAttemptFailure",
    "TokenRequest",
];

/// The reasons in the sources of the controllers.
fn found(pages: &[Page]) -> BTreeSet<String> {
    let expression = |pattern: &str| Regex::new(pattern).expect("the pattern is one");
    let word = expression(r#""([A-Z][a-z]+(?:[A-Z][a-z]*)+)""#);
    let named = expression(r"EventType::[A-Za-z]+,\s*([A-Z][A-Z_]+),");
    let constant = expression(r#"const ([A-Z_]+): &str = "([A-Z][A-Za-z]+)";"#);
    let mut reasons = BTreeSet::new();
    for page in pages.iter().filter(|page| page.path.starts_with("crates/controllers/src/")) {
        let source = without_tests(&page.text);
        if !source.contains("EventType::") || page.path.contains("/tests") {
            continue;
        }
        reasons.extend(word.captures_iter(source).map(|captures| captures[1].to_owned()));
        for captures in named.captures_iter(source) {
            let is_meant = |found: &regex::Captures<'_>| found[1] == captures[1];
            let near = pages
                .iter()
                .filter(|other| other.path == page.path || other.path.starts_with("crates/api/src/"));
            let values = near.flat_map(|other| constant.captures_iter(&other.text)).filter(is_meant);
            reasons.extend(values.map(|value| value[2].to_owned()));
        }
    }
    reasons.into_iter().filter(|reason| !NO_REASONS.contains(&reason.as_str())).collect()
}

#[test]
fn every_reason_is_in_the_reference() {
    let known: BTreeSet<String> = REASONS.iter().map(|(reason, ..)| (*reason).to_owned()).collect();
    let found = found(&pages());
    let missing: Vec<&String> = found.difference(&known).collect();
    assert!(missing.is_empty(), "say in REASONS (or NO_REASONS) what {missing:?} are");
    let stale: Vec<&String> = known.difference(&found).collect();
    assert!(stale.is_empty(), "no controller writes {stale:?}");
    let mut text = HEAD.to_owned();
    for (reason, kind, on, when) in REASONS {
        let _ = writeln!(text, "| `{reason}` | {kind} | {on} | {when} |");
    }
    expect_page(PAGE, &text);
}

#[test]
fn a_reason_that_is_new_is_found() {
    let page = |path: &str, text: &str| Page { path: path.to_owned(), text: text.to_owned() };
    let pages = [
        page(
            "crates/controllers/src/a.rs",
            "ctx.record_event(x, C, EventType::Warning, \"NewReason\", y); \"one\"; \"Word\"",
        ),
        page("crates/controllers/src/b.rs", "ctx.record_event(x, C, EventType::Normal, KEPT, y)"),
        page("crates/controllers/src/c.rs", "\"NotAnEvent\""),
        page("crates/api/src/binding.rs", "pub const KEPT: &str = \"CopyKept\";"),
    ];
    assert_eq!(found(&pages).into_iter().collect::<Vec<_>>(), ["CopyKept", "NewReason"]);
}
