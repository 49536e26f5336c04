//! Defaults of Pods, of the Pod templates in other kinds, and of the volume claims that Pods bring.
//! Must not know the kinds that hold templates.

use serde_json::{Value, json};

use super::super::fill::Fill::{EmptyText, Flag, Number, Object, Positive, Text};
use super::super::fill::{Rule, canonical, canonical_map, each, fill, is_unset, object, set};

const SPEC: &[Rule] = &[
    ("dnsPolicy", Text("ClusterFirst")),
    ("restartPolicy", Text("Always")),
    ("securityContext", Object),
    ("terminationGracePeriodSeconds", Number(30)),
    ("schedulerName", Text("default-scheduler")),
];

const CONTAINER: &[Rule] = &[
    ("terminationMessagePath", Text("/dev/termination-log")),
    ("terminationMessagePolicy", Text("File")),
    ("resources", Object),
    ("ports[].protocol", Text("TCP")),
    ("env[].valueFrom.fieldRef.apiVersion", Text("v1")),
    ("env[].valueFrom.resourceFieldRef.divisor", Text("0")),
    ("lifecycle.postStart.httpGet.path", Text("/")),
    ("lifecycle.postStart.httpGet.scheme", Text("HTTP")),
    ("lifecycle.preStop.httpGet.path", Text("/")),
    ("lifecycle.preStop.httpGet.scheme", Text("HTTP")),
];

const PROBE: &[Rule] = &[
    ("timeoutSeconds", Positive(1)),
    ("periodSeconds", Positive(10)),
    ("successThreshold", Positive(1)),
    ("failureThreshold", Positive(3)),
    ("httpGet.path", Text("/")),
    ("httpGet.scheme", Text("HTTP")),
    ("grpc.service", EmptyText),
];

/// Defaults of volume sources, for Pods' volumes and PersistentVolumes alike.
pub(super) const VOLUME_SOURCES: &[Rule] = &[
    ("secret.defaultMode", Number(420)),
    ("configMap.defaultMode", Number(420)),
    ("downwardAPI.defaultMode", Number(420)),
    ("downwardAPI.items[].fieldRef.apiVersion", Text("v1")),
    ("downwardAPI.items[].resourceFieldRef.divisor", Text("0")),
    ("projected.defaultMode", Number(420)),
    ("projected.sources[].serviceAccountToken.expirationSeconds", Number(3600)),
    ("projected.sources[].downwardAPI.items[].fieldRef.apiVersion", Text("v1")),
    ("projected.sources[].downwardAPI.items[].resourceFieldRef.divisor", Text("0")),
    ("hostPath.type", EmptyText),
    ("iscsi.iscsiInterface", Text("default")),
    ("rbd.pool", Text("rbd")),
    ("rbd.user", Text("admin")),
    ("rbd.keyring", Text("/etc/ceph/keyring")),
    ("azureDisk.cachingMode", Text("ReadWrite")),
    ("azureDisk.fsType", Text("ext4")),
    ("azureDisk.kind", Text("Shared")),
    ("azureDisk.readOnly", Flag(false)),
    ("scaleIO.fsType", Text("xfs")),
    ("scaleIO.storageMode", Text("ThinProvisioned")),
    ("ephemeral.volumeClaimTemplate.metadata", Object),
];

/// A Pod; what it alone gets, and templates do not.
pub(super) fn pod(value: &mut Value) {
    fill(value, &[("spec", Object)]);
    each(value, "spec", &mut |spec| {
        pod_spec(spec);
        fill(spec, &[("enableServiceLinks", Flag(true))]);
        let on_host = spec["hostNetwork"] == true;
        for list in ["containers[]", "initContainers[]"] {
            each(spec, list, &mut |container| {
                requests_from_limits(container);
                if on_host {
                    each(container, "ports[]", &mut host_port);
                }
            });
        }
    });
}

/// The Pod template at a path.
pub(super) fn template(value: &mut Value, path: &str) {
    each(value, path, &mut |template| {
        fill(template, &[("metadata", Object), ("spec", Object)]);
        each(template, "spec", &mut pod_spec);
    });
}

/// The spec of a PersistentVolumeClaim at a path.
pub(super) fn claim_spec(value: &mut Value, path: &str) {
    each(value, path, &mut |spec| {
        fill(spec, &[("volumeMode", Text("Filesystem")), ("resources", Object)]);
        canonical_map(spec, "resources.requests");
        canonical_map(spec, "resources.limits");
    });
}

fn pod_spec(spec: &mut Value) {
    fill(spec, SPEC);
    service_account(spec);
    for path in ["resources.limits", "resources.requests", "overhead"] {
        canonical_map(spec, path);
    }
    for list in ["containers[]", "initContainers[]", "ephemeralContainers[]"] {
        each(spec, list, &mut container);
    }
    each(spec, "volumes[]", &mut volume);
}

/// The name has a deprecated twin that old clients still read.
fn service_account(spec: &mut Value) {
    let fields = ["serviceAccountName", "serviceAccount"];
    let Some(given) = fields.into_iter().find(|field| !is_unset(spec, field)) else { return };
    let name = spec[given].clone();
    fields.into_iter().for_each(|field| set(spec, field, name.clone()));
}

fn container(container: &mut Value) {
    if is_unset(container, "imagePullPolicy") {
        let policy = pull_policy(container["image"].as_str().unwrap_or_default());
        set(container, "imagePullPolicy", policy);
    }
    fill(container, CONTAINER);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        each(container, probe, &mut |probe| fill(probe, PROBE));
    }
    canonical_map(container, "resources.limits");
    canonical_map(container, "resources.requests");
    canonical(container, "env[].valueFrom.resourceFieldRef", "divisor");
}

fn volume(volume: &mut Value) {
    let has_source = volume
        .as_object()
        .is_some_and(|fields| fields.iter().any(|(field, source)| field != "name" && !source.is_null()));
    if !has_source {
        set(volume, "emptyDir", json!({}));
    }
    fill(volume, VOLUME_SOURCES);
    canonical(volume, "emptyDir", "sizeLimit");
    claim_spec(volume, "ephemeral.volumeClaimTemplate.spec");
    each(volume, "image", &mut |image| {
        if is_unset(image, "pullPolicy") {
            let policy = pull_policy(image["reference"].as_str().unwrap_or_default());
            set(image, "pullPolicy", policy);
        }
    });
}

/// `latest`, spoken or not, is pulled always. A digest alone names no tag.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').unwrap_or((image, ""));
    let (repository, tag) = match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (name, if digest.is_empty() { "latest" } else { "" }),
    };
    let path = repository.split_once('/').map_or(repository, |(_, path)| path);
    let is_readable = !repository.is_empty() && !path.bytes().any(|byte| byte.is_ascii_uppercase());
    if tag == "latest" && is_readable { "Always" } else { "IfNotPresent" }
}

fn requests_from_limits(container: &mut Value) {
    let Some(limits) = container["resources"]["limits"].as_object().cloned() else { return };
    let Some(requests) = container.get_mut("resources").and_then(|resources| object(resources, "requests"))
    else {
        return;
    };
    for (resource, limit) in limits {
        requests.entry(resource).or_insert(limit);
    }
}

fn host_port(port: &mut Value) {
    let unset = port["hostPort"].as_i64().unwrap_or(0) == 0;
    if let (true, Some(number)) = (unset, port["containerPort"].as_i64()) {
        set(port, "hostPort", number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_decides_how_images_are_pulled() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.29", "IfNotPresent"),
            ("localhost:5000/nginx", "Always"),
            ("localhost:5000/nginx:v1", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
            ("nginx:latest@sha256:abc", "Always"),
            ("Library/Nginx", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
