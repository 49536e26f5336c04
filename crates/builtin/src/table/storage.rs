//! Rows of volumes, claims and storage classes. Must not know who provisions them.

use serde_json::Value;

use super::object::{NONE, Object, joined, or, text};

const UNSET: &str = "<unset>";

pub(super) fn persistent_volume(object: &Object<'_>) -> Vec<Value> {
    let claim = match object.at("spec.claimRef") {
        Value::Null => String::new(),
        claim => format!("{}/{}", text(claim, "namespace"), text(claim, "name")),
    };
    vec![
        object.name().into(),
        object.quantity("spec.capacity.storage").into(),
        access_modes(object.list("spec.accessModes")).into(),
        object.text("spec.persistentVolumeReclaimPolicy").into(),
        phase(object).into(),
        claim.into(),
        class(object).into(),
        object.at("spec.volumeAttributesClassName").as_str().unwrap_or(UNSET).into(),
        object.text("status.reason").into(),
        object.age().into(),
        object.at("spec.volumeMode").as_str().unwrap_or(UNSET).into(),
    ]
}

pub(super) fn persistent_volume_claim(object: &Object<'_>) -> Vec<Value> {
    let volume = object.text("spec.volumeName");
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (object.quantity("status.capacity.storage"), access_modes(object.list("status.accessModes"))),
    };
    vec![
        object.name().into(),
        phase(object).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class(object).into(),
        object.at("spec.volumeAttributesClassName").as_str().unwrap_or(UNSET).into(),
        object.age().into(),
        object.at("spec.volumeMode").as_str().unwrap_or(UNSET).into(),
    ]
}

fn phase<'a>(object: &Object<'a>) -> &'a str {
    if object.is_being_deleted() { "Terminating" } else { object.text("status.phase") }
}

/// The class annotation of old clients beats the field. Its key has dots, so no path leads to it.
fn class<'a>(object: &Object<'a>) -> &'a str {
    let annotated = object.at("metadata.annotations")["volume.beta.kubernetes.io/storage-class"].as_str();
    annotated.unwrap_or(object.text("spec.storageClassName"))
}

fn access_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let present = short.into_iter().filter(|(long, _)| modes.iter().any(|mode| mode == long));
    joined(present.map(|(_, short)| short), ",")
}

pub(super) fn storage_class(object: &Object<'_>) -> Vec<Value> {
    let keys =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let annotations = object.at("metadata.annotations");
    let name = match keys.into_iter().any(|key| annotations[key] == "true") {
        true => format!("{} (default)", object.name()),
        false => object.name().to_owned(),
    };
    vec![
        name.into(),
        object.text("provisioner").into(),
        or(object.text("reclaimPolicy"), "Delete").into(),
        or(object.text("volumeBindingMode"), "Immediate").into(),
        object.at("allowVolumeExpansion").as_bool().unwrap_or(false).into(),
        object.age().into(),
    ]
}

pub(super) fn volume_attributes_class(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), object.text("driverName").into(), object.age().into()]
}

pub(super) fn volume_attachment(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name().into(),
        object.text("spec.attacher").into(),
        object.text("spec.source.persistentVolumeName").into(),
        object.text("spec.nodeName").into(),
        object.at("status.attached").as_bool().unwrap_or(false).into(),
        object.age().into(),
    ]
}

pub(super) fn csi_node(object: &Object<'_>) -> Vec<Value> {
    vec![object.name().into(), object.list("spec.drivers").len().into(), object.age().into()]
}

pub(super) fn csi_driver(object: &Object<'_>) -> Vec<Value> {
    let flag = |path: &str, otherwise: bool| Value::Bool(object.at(path).as_bool().unwrap_or(otherwise));
    let audiences = object
        .at("spec.tokenRequests")
        .as_array()
        .map(|requests| joined(requests.iter().map(|request| text(request, "audience")), ","));
    let modes = joined(object.list("spec.volumeLifecycleModes").iter().filter_map(Value::as_str), ",");
    vec![
        object.name().into(),
        flag("spec.attachRequired", true),
        flag("spec.podInfoOnMount", false),
        flag("spec.storageCapacity", false),
        audiences.unwrap_or_else(|| UNSET.to_owned()).into(),
        flag("spec.requiresRepublish", false),
        or(&modes, NONE).into(),
        object.age().into(),
    ]
}
