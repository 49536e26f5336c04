//! The CustomResourceDefinition of every kind: the schemas with which an API server accepts a policy written for
//! Karmada unchanged, and the descriptions for `kubectl explain`. The tests hold types and schemas together; nothing
//! here acts on a field.

use serde_json::{Value, json};

use crate::kinds::{self, Kind};
use schema::{Described, Schema, string, whole_object};

mod binding;
mod cluster;
mod failover;
mod interpreter;
mod overrides;
mod parts;
mod placement;
mod policy;
mod rebalancer;
mod requirements;
mod rollout;
mod schema;
mod selectors;
mod staged;
mod taints;
mod work;

/// The definitions of [`kinds::ALL`], in that order.
pub fn crds() -> Vec<Value> {
    let bindings = || [binding::v1alpha1(), binding::v1alpha2()];
    vec![
        definition(&kinds::PROPAGATION_POLICY, policy::ABOUT, [policy::propagation()]),
        definition(&kinds::CLUSTER_PROPAGATION_POLICY, policy::ABOUT_CLUSTER_SCOPED, [policy::propagation()]),
        definition(&kinds::OVERRIDE_POLICY, overrides::ABOUT, [overrides::override_policy()]),
        definition(
            &kinds::CLUSTER_OVERRIDE_POLICY,
            overrides::ABOUT_CLUSTER_SCOPED,
            [overrides::override_policy()],
        ),
        definition(&kinds::ROLLOUT_POLICY, rollout::ABOUT, [rollout::rollout()]),
        definition(&kinds::CLUSTER_ROLLOUT_POLICY, rollout::ABOUT_CLUSTER_SCOPED, [rollout::rollout()]),
        definition(&kinds::CLUSTER_TAINT_POLICY, taints::ABOUT, [taints::cluster_taint()]),
        definition(&kinds::RESOURCE_BINDING, binding::ABOUT, bindings()),
        definition(&kinds::CLUSTER_RESOURCE_BINDING, binding::ABOUT_CLUSTER_SCOPED, bindings()),
        definition(&kinds::WORK, work::ABOUT, [work::work()]),
        definition(&kinds::CLUSTER, cluster::ABOUT, [cluster::cluster()]),
        definition(
            &kinds::RESOURCE_INTERPRETER_CUSTOMIZATION,
            interpreter::ABOUT,
            [interpreter::customization()],
        ),
        definition(&kinds::WORKLOAD_REBALANCER, rebalancer::ABOUT, [rebalancer::rebalancer()]),
    ]
}

/// One served or stored version of a kind.
struct Version {
    name: &'static str,
    served: bool,
    stored: bool,
    spec: Described,
    status: Option<Described>,
    columns: Vec<Column>,
}

impl Version {
    /// The version that is served and stored.
    fn stored(name: &'static str, spec: Schema, about: &str) -> Version {
        let spec = spec.required().about(about);
        Version { name, served: true, stored: true, spec, status: None, columns: Vec::new() }
    }

    fn status(mut self, status: Schema, about: &str) -> Version {
        self.status = Some(status.about(about));
        self
    }

    fn columns(mut self, columns: impl IntoIterator<Item = Column>) -> Version {
        self.columns = columns.into_iter().collect();
        self
    }
}

/// A column of `kubectl get`.
struct Column {
    name: &'static str,
    kind: &'static str,
    path: String,
    wide: bool,
}

fn column(name: &'static str, path: &str) -> Column {
    Column { name, kind: "string", path: path.to_owned(), wide: false }
}

fn count(name: &'static str, path: &str) -> Column {
    Column { kind: "integer", ..column(name, path) }
}

fn flag(name: &'static str, path: &str) -> Column {
    Column { kind: "boolean", ..column(name, path) }
}

fn condition(name: &'static str, condition: &str) -> Column {
    column(name, &format!(".status.conditions[?(@.type==\"{condition}\")].status"))
}

fn annotation(name: &'static str, key: &str) -> Column {
    column(name, &format!(".metadata.annotations.{}", key.replace('.', "\\.")))
}

fn wide(column: Column) -> Column {
    Column { wide: true, ..column }
}

fn age() -> Column {
    Column { kind: "date", ..column("AGE", ".metadata.creationTimestamp") }
}

fn definition(kind: &Kind, about: &str, versions: impl IntoIterator<Item = Version>) -> Value {
    let mut names = json!({
        "kind": kind.kind,
        "listKind": format!("{}List", kind.kind),
        "plural": kind.plural,
        "singular": kind.singular(),
    });
    for (key, words) in [("shortNames", kind.short_names), ("categories", kind.categories)] {
        if !words.is_empty() {
            names[key] = json!(words);
        }
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": kind.crd_name() },
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": kind.scope.as_str(),
            "versions": versions.into_iter().map(|one| version(kind, about, one)).collect::<Vec<_>>(),
        },
    })
}

fn version(kind: &Kind, about: &str, version: Version) -> Value {
    let group_version =
        format!("Group and version that the object is written in: {}/{}.", kind.group, version.name);
    let mut fields = vec![
        ("apiVersion", string().about(&group_version)),
        ("kind", string().about(&format!("Kind of the object: {}.", kind.kind))),
        ("spec", version.spec),
    ];
    let mut subresources = json!({});
    if let Some(status) = version.status {
        fields.push(("status", status));
        subresources = json!({ "status": {} });
    }
    let mut answer = json!({
        "name": version.name,
        "served": version.served,
        "storage": version.stored,
        "schema": { "openAPIV3Schema": whole_object(fields).about(about).into_value() },
        "subresources": subresources,
    });
    if !version.columns.is_empty() {
        answer["additionalPrinterColumns"] = version.columns.into_iter().map(printer_column).collect();
    }
    answer
}

fn printer_column(column: Column) -> Value {
    let mut answer = json!({ "name": column.name, "type": column.kind, "jsonPath": column.path });
    if column.wide {
        answer["priority"] = json!(1);
    }
    answer
}
