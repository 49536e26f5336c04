//! PersistentVolumeClaims: every claim is bound to a volume of its own, which is deleted with it.

use serde_json::{Value, json};

use super::{Round, is_deleting, uid};
use crate::facts::Facts;
use crate::key::{Key, Kind};
use crate::plan::{Part, Plan, Write, annotate, pin, status};

/// What is to be done about a PersistentVolumeClaim.
pub fn reconcile(round: &Round<'_>, key: &Key, object: &Value) -> Plan {
    if is_deleting(object) {
        return Plan::nothing();
    }
    let given = object["spec"]["volumeName"].as_str().unwrap_or_default();
    let name = if given.is_empty() { format!("pvc-{}", uid(object)) } else { given.to_owned() };
    let is_there = round.cache.facts(&Key::new(Kind::Volume, "", &name)).is_some();
    match (is_there, given.is_empty()) {
        (false, true) => Plan::one(Write::Create { kind: Kind::Volume, object: volume(object, &name) }),
        // The claim names a volume that does not exist yet.
        (false, false) => Plan::nothing(),
        (true, true) => Plan::one(bind(key, object, &name)),
        (true, false) => {
            let bound = json!({
                "phase": "Bound",
                "accessModes": object["spec"]["accessModes"],
                "capacity": object["spec"]["resources"]["requests"],
            });
            status(key, object, bound).map_or_else(Plan::nothing, Plan::one)
        }
    }
}

fn bind(key: &Key, object: &Value, volume: &str) -> Write {
    let patch = json!([
        pin(object),
        annotate(&object["metadata"], "pv.kubernetes.io/bind-completed", "yes"),
        { "op": "add", "path": "/spec/volumeName", "value": volume },
    ]);
    Write::Patch { key: key.clone(), part: Part::Whole, patch, last: false }
}

fn volume(claim: &Value, name: &str) -> Value {
    let mut spec = json!({
        "accessModes": claim["spec"]["accessModes"],
        "capacity": { "storage": claim["spec"]["resources"]["requests"]["storage"] },
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "name": claim["metadata"]["name"],
            "namespace": claim["metadata"]["namespace"],
            "uid": claim["metadata"]["uid"],
        },
        "hostPath": { "path": format!("/var/lib/member/{name}") },
        "persistentVolumeReclaimPolicy": "Delete",
    });
    for field in ["storageClassName", "volumeMode"] {
        if !claim["spec"][field].is_null() {
            spec[field] = claim["spec"][field].clone();
        }
    }
    json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name }, "spec": spec })
}

/// What is to be done about a PersistentVolume.
pub fn reconcile_volume(round: &Round<'_>, key: &Key, object: &Value) -> Plan {
    let Some(volume) = round.cache.facts(key).filter(|facts| !facts.deleting).and_then(Facts::volume) else {
        return Plan::nothing();
    };
    let phase = match &volume.claim {
        None => "Available",
        Some(claim) => {
            let owner = round.cache.facts(&claim.key);
            match owner.is_some_and(|owner| owner.uid == claim.uid || claim.uid.is_empty()) {
                true => "Bound",
                false if claim.uid.is_empty() => "Available",
                false if volume.goes_with_claim => {
                    return Plan::one(Write::Delete { key: key.clone(), uid: uid(object).to_owned() });
                }
                false => "Released",
            }
        }
    };
    let mut next = object["status"].clone();
    next["phase"] = phase.into();
    status(key, object, next).map_or_else(Plan::nothing, Plan::one)
}
