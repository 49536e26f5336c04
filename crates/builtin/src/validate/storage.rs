//! Rules of volumes, claims and storage classes. Must not know who provisions them.

use serde_json::Value;

use super::field::{Errors, Field, check_selector, same};
use super::{resources, volume};
use apimachinery::error::FieldError;
use apimachinery::names;
use apimachinery::quantity::Quantity;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

pub(super) fn check_claim(object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.at("spec");
    if spec.at("accessModes").is_empty() {
        errors.push(spec.at("accessModes").required("at least 1 access mode is required"));
    }
    check_selector(&spec.at("selector"), errors);
    check_access_modes(&spec, errors);
    let storage = spec.at("resources.requests.storage");
    let place = Field { value: storage.value, path: format!("{}[storage]", spec.at("resources").path) };
    match storage.is_set() {
        true => resources::check_positive(&place, errors),
        false => errors.push(place.required("")),
    }
    spec.at("storageClassName").check_optional_name(names::dns_subdomain, errors);
    spec.at("volumeMode").check_one_of(&VOLUME_MODES, errors);
    if let Some(old) = old {
        check_claim_update(object, old, errors);
    }
}

fn check_claim_update(claim: &Field<'_>, old: &Value, errors: &mut Errors) {
    let spec = claim.at("spec");
    let is_bound = claim.at("status.phase").text() == "Bound";
    if !same(&frozen(spec.value, &old["spec"], is_bound), &frozen(&old["spec"], &old["spec"], is_bound)) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                   bound claims";
        errors.push(spec.forbidden(why));
    }
    let size =
        |object: &Value| Quantity::from_value(&object["spec"]["resources"]["requests"]["storage"]).ok();
    let held = Quantity::from_value(&old["status"]["capacity"]["storage"]).unwrap_or(Quantity::whole(0));
    if let (Some(now), Some(before)) = (size(claim.value), size(old))
        && now < before
        && now <= held
    {
        let why = "field can not be less than status.capacity";
        errors.push(spec.at("resources.requests.storage").forbidden(why));
    }
    if !same(spec.at("volumeMode").value, &old["spec"]["volumeMode"]) {
        errors.push(FieldError::invalid(
            "volumeMode",
            spec.at("volumeMode").value.clone(),
            "field is immutable",
        ));
    }
}

/// A claim's spec with what may change set to what it was: the size and class of a bound one, and a class
/// or volume where there was none.
fn frozen(spec: &Value, old: &Value, is_bound: bool) -> Value {
    let mut frozen = spec.clone();
    let Some(fields) = frozen.as_object_mut() else { return frozen };
    for field in ["storageClassName", "volumeName"] {
        if old[field].is_null() {
            fields.remove(field);
        }
    }
    if is_bound {
        fields.remove("volumeAttributesClassName");
        let requests = fields.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
        if let Some(requests) = requests.and_then(Value::as_object_mut) {
            requests.insert(String::from("storage"), old["resources"]["requests"]["storage"].clone());
        }
    }
    frozen
}

pub(super) fn check_volume(object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.at("spec");
    let capacity = spec.at("capacity");
    spec.at("accessModes").check_required(errors);
    check_access_modes(&spec, errors);
    capacity.check_required(errors);
    let is_storage_only =
        capacity.value.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("storage"));
    if !is_storage_only {
        errors.push(capacity.not_supported(&["storage"]));
    }
    spec.entries("capacity").iter().for_each(|(_, amount)| resources::check_positive(amount, errors));
    spec.at("persistentVolumeReclaimPolicy").check_one_of(&["Delete", "Recycle", "Retain"], errors);
    check_volume_source(&spec, errors);
    spec.at("storageClassName").check_optional_name(names::dns_subdomain, errors);
    spec.at("volumeMode").check_one_of(&VOLUME_MODES, errors);
    let Some(old) = old else { return };
    let changed = SOURCES.iter().any(|source| !same(spec.at(source).value, &old["spec"][source]));
    if changed {
        let place = spec.at("persistentvolumesource");
        let why = format!("{} is immutable after creation", place.path);
        errors.push(place.forbidden(why));
    }
    if !same(spec.at("volumeMode").value, &old["spec"]["volumeMode"]) {
        errors.push(FieldError::invalid(
            "volumeMode",
            spec.at("volumeMode").value.clone(),
            "field is immutable",
        ));
    }
}

fn check_volume_source(spec: &Field<'_>, errors: &mut Errors) {
    let sources: Vec<Field<'_>> =
        SOURCES.iter().map(|source| spec.at(source)).filter(Field::is_set).collect();
    match sources.as_slice() {
        [] => errors.push(spec.required("must specify a volume type")),
        [first, more @ ..] => {
            match first.path.rsplit('.').next() {
                Some("hostPath") => volume::check_host_path(first, errors),
                Some("nfs") => volume::check_nfs(first, errors),
                _ => {}
            }
            for source in more {
                errors.push(source.forbidden("may not specify more than 1 volume type"));
            }
        }
    }
}

fn check_access_modes(spec: &Field<'_>, errors: &mut Errors) {
    let list = spec.at("accessModes");
    let modes = spec.items("accessModes");
    let unknown = modes.iter().filter(|mode| !ACCESS_MODES.contains(&mode.text()));
    let refuse = |mode: &Field<'_>| FieldError::not_supported(list.path.clone(), mode.text(), &ACCESS_MODES);
    errors.extend(unknown.map(refuse));
    let alone = modes.iter().any(|mode| mode.text() == "ReadWriteOncePod");
    let beside =
        modes.iter().any(|mode| mode.text() != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode.text()));
    if alone && beside {
        errors.push(list.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

/// Storage classes: what a provisioner reads never changes.
pub(super) fn check_class(kind: &str, class: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    if kind != "StorageClass" {
        return;
    }
    class.at("provisioner").check_required(errors);
    class.at("reclaimPolicy").check_one_of(&["Delete", "Retain"], errors);
    class.at("volumeBindingMode").check_one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    let Some(old) = old else { return };
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if !same(class.at(field).value, &old[field]) {
            errors.push(class.at(field).forbidden(format!("updates to {field} are forbidden.")));
        }
    }
    class.at("volumeBindingMode").check_immutable(&old["volumeBindingMode"], errors);
}
