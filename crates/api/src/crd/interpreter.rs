//! Schema of ResourceInterpreterCustomization.

use super::schema::{Field, object, string};
use super::{Version, age, column};

pub(super) const ABOUT: &str = "Explains a kind by Lua scripts: its replicas, health, status and \
                                dependencies. Longshore stores the scripts and does not run them; a control \
                                plane of Karmada does.";

/// The scripts: the field, what the script returns, and its function.
const SCRIPTS: [(&str, &str, &str); 8] = [
    (
        "componentResource",
        "Tells the components of a workload and what a replica of each needs",
        "GetComponents(object)",
    ),
    ("dependencyInterpretation", "Tells which other objects the object needs", "GetDependencies(object)"),
    ("healthInterpretation", "Tells whether the object is healthy", "InterpretHealth(object)"),
    (
        "replicaResource",
        "Tells how many replicas the object has and what each of them needs",
        "GetReplicas(object)",
    ),
    (
        "replicaRevision",
        "Writes another number of replicas into the object",
        "ReviseReplica(object, replicas)",
    ),
    (
        "retention",
        "Tells what of the object in the cluster stays as it is there",
        "Retain(desired, observed)",
    ),
    (
        "statusAggregation",
        "Makes one status of those that the clusters report",
        "AggregateStatus(object, items)",
    ),
    ("statusReflection", "Tells which part of the object's status is collected", "ReflectStatus(object)"),
];

pub(super) fn customization() -> Version {
    let target = object([
        (
            "apiVersion",
            string().required().about("Group and version of the kind, for example `batch.example.com/v1`."),
        ),
        ("kind", string().required().about("Name of the kind.")),
    ]);
    let customizations = object(SCRIPTS.map(script)).required();
    let spec = object([
        (
            "customizations",
            customizations
                .about("The scripts. What has none is answered by what the control plane knows itself."),
        ),
        ("target", target.required().about("Kind that the scripts explain.")),
    ]);
    Version::stored("v1alpha1", spec, "Which kind is explained, and how.").columns([
        column("TARGET-API-VERSION", ".spec.target.apiVersion"),
        column("TARGET-KIND", ".spec.target.kind"),
        age(),
    ])
}

fn script((field, tells, function): (&'static str, &str, &str)) -> Field {
    let source = string().required().about(&format!("Lua source with the function {function}."));
    (field, object([("luaScript", source)]).about(&format!("{tells}.")))
}
