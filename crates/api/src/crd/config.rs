//! Schemas of the interpreter's scripts and of the rebalancer.

use super::parts::reference_fields;
use super::schema::{date_time, int32, int64, list_of, object, string};
use super::{Version, age, column};

pub(super) fn interpreter() -> Version {
    let rules = [
        "componentResource",
        "dependencyInterpretation",
        "healthInterpretation",
        "replicaResource",
        "replicaRevision",
        "retention",
        "statusAggregation",
        "statusReflection",
    ];
    let script = object([("luaScript", string().required())]);
    let target = object([("apiVersion", string().required()), ("kind", string().required())]);
    let spec = object([
        ("customizations", object(rules.map(|rule| (rule, script.clone()))).required()),
        ("target", target.required()),
    ]);
    Version::stored("v1alpha1", spec).columns([
        column("TARGET-API-VERSION", ".spec.target.apiVersion"),
        column("TARGET-KIND", ".spec.target.kind"),
        age(),
    ])
}

pub(super) fn rebalancer() -> Version {
    let spec = object([
        ("ttlSecondsAfterFinished", int32()),
        ("workloads", list_of(object(reference_fields())).not_empty().required()),
    ]);
    let observed = object([
        ("reason", string()),
        ("result", string()),
        ("workload", object(reference_fields()).required()),
    ]);
    let status = object([
        ("finishTime", date_time()),
        ("observedGeneration", int64()),
        ("observedWorkloads", list_of(observed)),
    ]);
    Version::stored("v1alpha1", spec).status(status)
}
