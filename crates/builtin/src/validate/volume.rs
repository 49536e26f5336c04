//! Rules of a Pod's volumes. Must not know who mounts them.

use std::collections::BTreeSet;

use super::container::check_descending;
use super::field::{Errors, Field, has_segment};
use apimachinery::names;
use apimachinery::quantity::Quantity;

/// The order in which Kubernetes looks at sources; the second one found is one too many.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
    "cinder",
];

/// Validates every volume and returns their names.
pub(super) fn check_all<'a>(spec: &Field<'a>, errors: &mut Errors) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let volumes = spec.items("volumes");
    for volume in &volumes {
        check_source(volume, errors);
        let name = volume.at("name");
        if name.is_empty() {
            errors.push(name.required(""));
            continue;
        }
        let before = errors.len();
        name.check_name(names::dns_label, errors);
        if errors.len() == before && !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
    volumes.iter().map(|volume| volume.at("name").text()).collect()
}

fn check_source(volume: &Field<'_>, errors: &mut Errors) {
    let sources = SOURCES.iter().map(|source| volume.at(source)).filter(Field::is_set);
    for (index, source) in sources.enumerate() {
        if index > 0 {
            errors.push(source.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        match source.path.rsplit('.').next() {
            Some("emptyDir") => check_empty_dir(&source, errors),
            Some("hostPath") => check_host_path(&source, errors),
            Some("secret") => check_files(&source, "secretName", errors),
            Some("configMap") => check_files(&source, "name", errors),
            Some("downwardAPI" | "projected") => check_mode(&source, errors),
            Some("persistentVolumeClaim") => source.at("claimName").check_required(errors),
            Some("nfs") => check_nfs(&source, errors),
            _ => {}
        }
    }
}

fn check_empty_dir(source: &Field<'_>, errors: &mut Errors) {
    let limit = source.at("sizeLimit");
    if limit.is_set() && Quantity::from_value(limit.value).is_ok_and(|limit| limit.is_negative()) {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

/// A directory of the node.
pub(super) fn check_host_path(source: &Field<'_>, errors: &mut Errors) {
    let path = source.at("path");
    if path.is_empty() {
        return errors.push(path.required(""));
    }
    if has_segment(path.text(), "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
    let kinds =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    source.at("type").check_one_of(&kinds, errors);
}

/// A file server.
pub(super) fn check_nfs(source: &Field<'_>, errors: &mut Errors) {
    let path = source.at("path");
    source.at("server").check_required(errors);
    path.check_required(errors);
    if !path.text().starts_with('/') {
        errors.push(path.invalid("must be an absolute path"));
    }
}

fn check_files(source: &Field<'_>, name: &str, errors: &mut Errors) {
    source.at(name).check_required(errors);
    check_mode(source, errors);
    for item in source.items("items") {
        item.at("key").check_required(errors);
        let path = item.at("path");
        path.check_required(errors);
        check_descending(&path, errors);
        check_file_mode(&item.at("mode"), errors);
    }
}

fn check_mode(source: &Field<'_>, errors: &mut Errors) {
    check_file_mode(&source.at("defaultMode"), errors);
}

fn check_file_mode(mode: &Field<'_>, errors: &mut Errors) {
    if mode.number().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}
