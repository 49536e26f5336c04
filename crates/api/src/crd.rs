//! The CustomResourceDefinition of every kind: what an API server must know to accept a policy written
//! for Karmada unchanged. The tests hold types and schemas together; nothing here knows what a field does.

use serde_json::{Value, json};

use crate::kinds::{self, Kind};
use schema::{Schema, object, string};

mod binding;
mod cluster;
mod config;
mod overrides;
mod parts;
mod placement;
mod policy;
mod schema;
mod work;

/// The definitions of [`kinds::ALL`], in that order.
pub fn crds() -> Vec<Value> {
    vec![
        definition(&kinds::PROPAGATION_POLICY, [policy::propagation()]),
        definition(&kinds::CLUSTER_PROPAGATION_POLICY, [policy::propagation()]),
        definition(&kinds::OVERRIDE_POLICY, [overrides::override_policy()]),
        definition(&kinds::CLUSTER_OVERRIDE_POLICY, [overrides::override_policy()]),
        definition(&kinds::ROLLOUT_POLICY, [policy::rollout()]),
        definition(&kinds::CLUSTER_ROLLOUT_POLICY, [policy::rollout()]),
        definition(&kinds::CLUSTER_TAINT_POLICY, [policy::cluster_taint()]),
        definition(&kinds::RESOURCE_BINDING, [binding::v1alpha1(), binding::v1alpha2()]),
        definition(&kinds::CLUSTER_RESOURCE_BINDING, [binding::v1alpha1(), binding::v1alpha2()]),
        definition(&kinds::WORK, [work::work()]),
        definition(&kinds::CLUSTER, [cluster::cluster()]),
        definition(&kinds::RESOURCE_INTERPRETER_CUSTOMIZATION, [config::interpreter()]),
        definition(&kinds::WORKLOAD_REBALANCER, [config::rebalancer()]),
    ]
}

/// One served or stored version of a kind.
struct Version {
    name: &'static str,
    served: bool,
    stored: bool,
    spec: Schema,
    status: Option<Schema>,
    columns: Vec<Column>,
}

impl Version {
    /// The version that is served and stored.
    fn stored(name: &'static str, spec: Schema) -> Version {
        Version { name, served: true, stored: true, spec, status: None, columns: Vec::new() }
    }

    fn status(mut self, status: Schema) -> Version {
        self.status = Some(status);
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

fn definition(kind: &Kind, versions: impl IntoIterator<Item = Version>) -> Value {
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
            "versions": versions.into_iter().map(version).collect::<Vec<_>>(),
        },
    })
}

fn version(version: Version) -> Value {
    let mut fields = vec![
        ("apiVersion", string()),
        ("kind", string()),
        ("metadata", object([])),
        ("spec", version.spec.required()),
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
        "schema": { "openAPIV3Schema": object(fields).into_value() },
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
