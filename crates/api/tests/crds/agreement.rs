//! Every field of a schema is a field of the Rust type, and the other way round.

use std::cell::RefCell;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Error, Value, json};

use super::probe::Probe;
use super::sample::sample;
use super::schemas;

/// At least as many as the longest enum has words.
const ROUNDS: usize = 5;

/// Reads the value into the kind's type and writes it again.
pub fn through_type(kind: &str, value: Value) -> Result<Value, Error> {
    probed(kind, value, &RefCell::default())
}

fn probed(kind: &str, value: Value, unknown: &RefCell<Vec<String>>) -> Result<Value, Error> {
    let probe = Probe { value, path: String::new(), missing: unknown };
    match kind {
        "PropagationPolicy" | "ClusterPropagationPolicy" => round_trip::<api::PropagationPolicy>(probe),
        "OverridePolicy" | "ClusterOverridePolicy" => round_trip::<api::OverridePolicy>(probe),
        "RolloutPolicy" | "ClusterRolloutPolicy" => round_trip::<api::RolloutPolicy>(probe),
        "ClusterTaintPolicy" => round_trip::<api::ClusterTaintPolicy>(probe),
        "ResourceBinding" | "ClusterResourceBinding" => round_trip::<api::Binding>(probe),
        "Work" => round_trip::<api::Work>(probe),
        "Cluster" => round_trip::<api::Cluster>(probe),
        "ResourceInterpreterCustomization" => round_trip::<api::ResourceInterpreterCustomization>(probe),
        "WorkloadRebalancer" => round_trip::<api::WorkloadRebalancer>(probe),
        other => panic!("{other} has a schema but no type"),
    }
}

fn round_trip<T: DeserializeOwned + Serialize>(probe: Probe) -> Result<Value, Error> {
    serde_json::to_value(T::deserialize(probe)?)
}

/// A component's requirements say nothing about a namespace in Karmada's schema; the type is shared
/// with the whole workload's, which do. Kinds without status share one type with an empty one. Who owns which field
/// is carried along unread.
fn is_known_gap(path: &str) -> bool {
    [".spec.components.[].replicaRequirements.namespace", ".status", ".metadata.managedFields"]
        .contains(&path)
}

#[test]
fn types_and_schemas_have_the_same_fields() {
    for (kind, version, schema) in schemas(&api::crd::crds()) {
        if kind.ends_with("ResourceBinding") && version == "v1alpha1" {
            continue; // Not served, so it has no type.
        }
        for round in 0..ROUNDS {
            let mut filled = sample(&schema, round);
            filled["metadata"] = metadata();
            let unknown = RefCell::default();
            let back =
                probed(&kind, filled.clone(), &unknown).expect("the type accepts what the schema allows");
            assert_eq!(back, filled, "{kind}: the type loses or changes a field of the schema");
            let unknown: Vec<_> =
                unknown.into_inner().into_iter().filter(|path| !is_known_gap(path)).collect();
            assert_eq!(unknown, Vec::<String>::new(), "{kind}: the type has fields the schema forgot");
        }
    }
}

/// Every field an object's metadata can have; schemas leave it to the API server.
fn metadata() -> Value {
    json!({
        "name": "a",
        "generateName": "a-",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 7_000_000_000_i64,
        "creationTimestamp": "2024-07-01T08:33:28Z",
        "deletionTimestamp": "2024-07-01T08:33:29Z",
        "deletionGracePeriodSeconds": 30,
        "labels": { "l": "1" },
        "annotations": { "a": "1" },
        "finalizers": ["f"],
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "o", "uid": "ou",
            "controller": true, "blockOwnerDeletion": true,
        }],
    })
}

/// Who owns which field is carried along unread, which no probe can see through.
#[test]
fn owners_of_fields_pass_through_as_they_are() {
    let object = json!({
        "metadata": { "managedFields": [{ "manager": "m", "fieldsV1": { "f:spec": {}, ".": 1.50 } }] },
        "spec": { "resourceSelectors": [] },
    });
    let read: api::PropagationPolicy = serde_json::from_value(object.clone()).expect("a policy");
    let again: api::PropagationPolicy = serde_json::from_str(&object.to_string()).expect("a policy");
    assert_eq!(read.metadata.managed_fields, again.metadata.managed_fields);
    assert_eq!(
        read.metadata.managed_fields[0].read::<Value>().expect("JSON"),
        object["metadata"]["managedFields"][0]
    );
    let written = serde_json::to_value(&read).expect("it can be written");
    assert_eq!(written["metadata"], object["metadata"]);
}

#[test]
fn zero_values_are_left_out_where_go_leaves_them_out() {
    let empty = json!({ "apiVersion": "a", "kind": "k" });
    let back = through_type("PropagationPolicy", empty.clone()).expect("a policy");
    let mut expected = empty.clone();
    expected["metadata"] = json!({});
    expected["spec"] = json!({ "resourceSelectors": [] });
    assert_eq!(back, expected);
    expected["spec"] = json!({ "resource": { "apiVersion": "", "kind": "", "name": "" } });
    assert_eq!(through_type("ResourceBinding", empty).expect("a binding"), expected);
}
