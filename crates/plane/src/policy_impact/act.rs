//! Which writes are subject to a budget, and the changes that each of them makes: policies of every kind, bindings that
//! users edit, Clusters, and deletions that cascade. Judges nothing.

use std::sync::Arc;

use api::{kinds, names, records};
use apiserver::admission::{Attributes, Operation};
use decide::Snapshot;
use decide::snapshot::Change;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::annotation;

/// What a write does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// It changes these objects; more than one where a definition takes its objects along.
    Changes(Vec<Change>),
    /// It removes a binding, and with it every copy of the template until the binding is made again.
    Unbind,
    /// It asks for propagation now, with this value.
    Reconcile(Change, String),
}

/// What a write does; none if it is about something else, or says nothing new.
pub(super) fn act(attributes: &Attributes<'_>, object: &Value, now: Timestamp) -> Option<Act> {
    let deletes = attributes.operation == Operation::Delete;
    let one = |change: Change| Some(Act::Changes(vec![change]));
    match (attributes.group, attributes.kind) {
        (kinds::POLICY_GROUP, "PropagationPolicy" | "ClusterPropagationPolicy") if !deletes => {
            one(policy(attributes, object, now)?)
        }
        (
            kinds::POLICY_GROUP,
            "OverridePolicy"
            | "ClusterOverridePolicy"
            | "RolloutPolicy"
            | "ClusterRolloutPolicy"
            | "ClusterTaintPolicy",
        )
        | (kinds::APPS_GROUP, "WorkloadRebalancer")
            if !deletes =>
        {
            differs(attributes, object, &["spec"]).then(|| Act::Changes(vec![put(object)]))
        }
        (kinds::POLICY_GROUP, _) if deletes => one(deletion(attributes, object)),
        // A cluster that joins takes nothing away.
        (kinds::CLUSTER_GROUP, "Cluster") if attributes.operation == Operation::Create => None,
        (kinds::CLUSTER_GROUP, "Cluster") if deletes => one(deletion(attributes, object)),
        (kinds::CLUSTER_GROUP, "Cluster") => {
            let differs =
                differs(attributes, object, &["spec"]) || labels(attributes.old) != labels(Some(object));
            differs.then(|| Act::Changes(vec![put(object)]))
        }
        (kinds::WORK_GROUP, "ResourceBinding" | "ClusterResourceBinding") => match attributes.operation {
            Operation::Delete => Some(Act::Unbind),
            Operation::Update if differs(attributes, object, &["spec"]) => one(put(object)),
            Operation::Create | Operation::Update => None,
        },
        ("", "Namespace") if deletes => one(namespace(attributes, object)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") if deletes => one(deletion(attributes, object)),
        (group, _) if group.ends_with(".karmada.io") => None,
        _ => reconcile(attributes, object),
    }
}

/// What a definition of our own takes along: its objects are no templates, and everything hangs on them.
pub(super) fn taken_along(
    attributes: &Attributes<'_>,
    object: &Value,
    snapshot: &Snapshot,
) -> Option<Vec<Change>> {
    let is_definition = attributes.kind == "CustomResourceDefinition";
    let name = object["metadata"]["name"].as_str().filter(|_| is_definition)?;
    let kind = kinds::ALL.iter().find(|kind| name == format!("{}.{}", kind.plural, kind.group))?;
    let delete = |kind: &api::Kind, namespace: &str, name: &str| Change::Delete {
        api_version: kind.api_version(),
        kind: kind.kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Some(match (kind.group, kind.kind) {
        (kinds::POLICY_GROUP, "PropagationPolicy" | "ClusterPropagationPolicy") => {
            let is_own = kind.scope;
            let policies = snapshot.policies.iter().filter(|policy| policy.scope() == is_own);
            policies.map(|policy| delete(kind, &policy.key.namespace, &policy.key.name)).collect()
        }
        // Without Clusters, bindings or Works nothing stays in any member.
        (kinds::CLUSTER_GROUP | kinds::WORK_GROUP, _) => {
            let clusters = snapshot.clusters.iter();
            clusters.map(|cluster| delete(&kinds::CLUSTER, "", &cluster.metadata.name)).collect()
        }
        _ => Vec::new(),
    })
}

/// The namespace of a member's Works is what is in that member.
fn namespace(attributes: &Attributes<'_>, object: &Value) -> Change {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match names::cluster_of_execution_namespace(name) {
        Some(cluster) => Change::Delete {
            api_version: kinds::CLUSTER.api_version(),
            kind: kinds::CLUSTER.kind.to_owned(),
            namespace: String::new(),
            name: cluster.to_owned(),
        },
        None => deletion(attributes, object),
    }
}

/// A template that is asked to follow its policy now.
fn reconcile(attributes: &Attributes<'_>, object: &Value) -> Option<Act> {
    let value = annotation(object, records::RECONCILE).filter(|value| !value.is_empty())?;
    let is_new = attributes.operation != Operation::Delete
        && attributes.old.and_then(|old| annotation(old, records::RECONCILE)) != Some(value);
    is_new.then(|| Act::Reconcile(put(object), value.to_owned()))
}

/// The change of a policy, as it will be once it is written; none if it says nothing new.
fn policy(attributes: &Attributes<'_>, object: &Value, now: Timestamp) -> Option<Change> {
    let mut next = object.clone();
    if let Some(old) = attributes.old {
        if old["spec"] == object["spec"] {
            return None;
        }
        next["metadata"]["generation"] = (old["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
        if let Some(owners) = next["metadata"].get_mut("managedFields").and_then(Value::as_array_mut)
            && old["spec"]["resourceSelectors"] != object["spec"]["resourceSelectors"]
        {
            // Who owns what is settled later; by when selectors were edited it is judged who came first (R3).
            let second = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            owners.push(json!({ "time": second, "fieldsV1": { "f:spec": { "f:resourceSelectors": {} } } }));
        }
    }
    // Whatever is there already was there before it.
    next["metadata"]["resourceVersion"] = u64::MAX.to_string().into();
    Some(Change::Put(Arc::new(next)))
}

fn put(object: &Value) -> Change {
    Change::Put(Arc::new(object.clone()))
}

fn deletion(attributes: &Attributes<'_>, object: &Value) -> Change {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let api_version = match attributes.group {
        "" => attributes.version.to_owned(),
        group => format!("{group}/{}", attributes.version),
    };
    let (namespace, name) = (text("namespace"), text("name"));
    Change::Delete { api_version, kind: attributes.kind.to_owned(), namespace, name }
}

fn differs(attributes: &Attributes<'_>, object: &Value, fields: &[&str]) -> bool {
    let old = attributes.old.unwrap_or(&Value::Null);
    fields.iter().any(|field| old[field] != object[field])
}

fn labels(object: Option<&Value>) -> Option<&Value> {
    object?.pointer("/metadata/labels")
}
