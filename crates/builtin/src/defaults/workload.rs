//! Defaults of the kinds that hold a Pod template. Must not know what stands in the template.

use serde_json::Value;

use super::super::fill::Fill::{EmptyText, Flag, Number, Object, Text};
use super::super::fill::{Rule, each, fill, is_unset, set};
use super::pod;

const DEPLOYMENT: &[Rule] = &[
    ("spec.replicas", Number(1)),
    ("spec.strategy", Object),
    ("spec.strategy.type", Text("RollingUpdate")),
    ("spec.revisionHistoryLimit", Number(10)),
    ("spec.progressDeadlineSeconds", Number(600)),
];
const DEPLOYMENT_ROLLING: &[Rule] = &[
    ("rollingUpdate", Object),
    ("rollingUpdate.maxUnavailable", Text("25%")),
    ("rollingUpdate.maxSurge", Text("25%")),
];
const DAEMON_SET: &[Rule] = &[
    ("spec.updateStrategy", Object),
    ("spec.updateStrategy.type", Text("RollingUpdate")),
    ("spec.revisionHistoryLimit", Number(10)),
];
const DAEMON_SET_ROLLING: &[Rule] = &[
    ("rollingUpdate", Object),
    ("rollingUpdate.maxUnavailable", Number(1)),
    ("rollingUpdate.maxSurge", Number(0)),
];
const STATEFUL_SET: &[Rule] = &[
    ("spec.podManagementPolicy", Text("OrderedReady")),
    ("spec.serviceName", EmptyText),
    ("spec.persistentVolumeClaimRetentionPolicy", Object),
    ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Text("Retain")),
    ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", Text("Retain")),
    ("spec.replicas", Number(1)),
    ("spec.revisionHistoryLimit", Number(10)),
];
const CLAIM_TEMPLATE: &[Rule] = &[
    ("apiVersion", Text("v1")),
    ("kind", Text("PersistentVolumeClaim")),
    ("metadata", Object),
    ("status", Object),
    ("status.phase", Text("Pending")),
];
const CRON_JOB_SHAPE: &[Rule] = &[
    ("spec", Object),
    ("spec.jobTemplate", Object),
    ("spec.jobTemplate.metadata", Object),
    ("spec.jobTemplate.spec", Object),
    ("spec.jobTemplate.spec.template", Object),
];
const CRON_JOB: &[Rule] = &[
    ("spec.concurrencyPolicy", Text("Allow")),
    ("spec.suspend", Flag(false)),
    ("spec.successfulJobsHistoryLimit", Number(3)),
    ("spec.failedJobsHistoryLimit", Number(1)),
    ("spec.jobTemplate.spec.podFailurePolicy.rules[].onPodConditions[].status", Text("True")),
];

pub(super) fn apply(kind: &str, value: &mut Value) {
    match kind {
        "CronJob" => fill(value, CRON_JOB_SHAPE),
        "ControllerRevision" => return,
        _ => fill(value, &[("spec", Object), ("spec.template", Object)]),
    }
    match kind {
        "Deployment" => {
            fill(value, DEPLOYMENT);
            rolling(value, "spec.strategy", DEPLOYMENT_ROLLING);
        }
        "DaemonSet" => {
            fill(value, DAEMON_SET);
            rolling(value, "spec.updateStrategy", DAEMON_SET_ROLLING);
        }
        "StatefulSet" => stateful_set(value),
        "ReplicaSet" => fill(value, &[("spec.replicas", Number(1))]),
        "Job" => job(value),
        "CronJob" => {
            fill(value, CRON_JOB);
            pod::template(value, "spec.jobTemplate.spec.template");
        }
        _ => {}
    }
    pod::template(value, "spec.template");
}

/// A controller without selector or labels takes those of its template.
pub(super) fn replication_controller(value: &mut Value) {
    fill(value, &[("spec", Object), ("spec.replicas", Number(1))]);
    pod::template(value, "spec.template");
    let labels = value["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_null() {
        return;
    }
    for (parent, field) in [("spec", "selector"), ("metadata", "labels")] {
        each(value, parent, &mut |parent| {
            if is_unset(parent, field) {
                set(parent, field, labels.clone());
            }
        });
    }
}

fn rolling(value: &mut Value, path: &str, rules: &[Rule]) {
    each(value, path, &mut |strategy| {
        if strategy["type"] == "RollingUpdate" {
            fill(strategy, rules);
        }
    });
}

/// Unlike other kinds, a StatefulSet with a type and no `rollingUpdate` is left without.
fn stateful_set(value: &mut Value) {
    fill(value, STATEFUL_SET);
    fill(value, &[("spec.updateStrategy", Object)]);
    each(value, "spec.updateStrategy", &mut |strategy| {
        if is_unset(strategy, "type") {
            fill(strategy, &[("type", Text("RollingUpdate")), ("rollingUpdate", Object)]);
        }
        if strategy["type"] == "RollingUpdate" {
            fill(strategy, &[("rollingUpdate.partition", Number(0))]);
        }
    });
    each(value, "spec.volumeClaimTemplates[]", &mut |claim| {
        fill(claim, CLAIM_TEMPLATE);
        pod::claim_spec(claim, "spec");
    });
}

fn job(value: &mut Value) {
    each(value, "spec", &mut |spec| {
        if spec["completions"].is_null() && spec["parallelism"].is_null() {
            set(spec, "completions", 1);
        }
        let backoff = if spec["backoffLimitPerIndex"].is_null() { 6 } else { i64::from(i32::MAX) };
        let replacement = if spec["podFailurePolicy"].is_null() { "TerminatingOrFailed" } else { "Failed" };
        fill(
            spec,
            &[
                ("parallelism", Number(1)),
                ("backoffLimit", Number(backoff)),
                ("completionMode", Text("NonIndexed")),
                ("suspend", Flag(false)),
                ("podReplacementPolicy", Text(replacement)),
                ("manualSelector", Flag(false)),
                ("podFailurePolicy.rules[].onPodConditions[].status", Text("True")),
            ],
        );
    });
    let labels = value["spec"]["template"]["metadata"]["labels"].clone();
    each(value, "metadata", &mut |metadata| {
        if is_unset(metadata, "labels") && !labels.is_null() {
            set(metadata, "labels", labels.clone());
        }
    });
}
