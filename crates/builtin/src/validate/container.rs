//! Rules of containers: names, images, ports, environment and mounts. Must not know about volumes' sources.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field::{Errors, Field, has_segment};
use super::{pod, probe, resources};
use apimachinery::error::FieldError;
use apimachinery::names;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// The regular containers; there must be one.
pub(super) fn check_all(spec: &Field<'_>, volumes: &[&str], errors: &mut Errors) {
    let containers = spec.items("containers");
    if containers.is_empty() {
        return errors.push(spec.at("containers").required(""));
    }
    let mut names = BTreeSet::new();
    for container in &containers {
        check_common(container, volumes, errors);
        if !names.insert(container.at("name").text()) {
            errors.push(container.at("name").duplicate());
        }
        probe::check_lifecycle(&container.at("lifecycle"), errors);
        probe::check_all(container, errors);
    }
    check_host_ports(&containers, errors);
}

/// The init containers; only those that keep running have probes and a life cycle.
pub(super) fn check_init(spec: &Field<'_>, volumes: &[&str], errors: &mut Errors) {
    let mut names: BTreeSet<&str> =
        spec.items("containers").iter().map(|container| container.at("name").text()).collect();
    for container in spec.items("initContainers") {
        check_common(&container, volumes, errors);
        let name = container.at("name");
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        check_host_ports(std::slice::from_ref(&container), errors);
        if container.at("restartPolicy").text() == "Always" {
            probe::check_lifecycle(&container.at("lifecycle"), errors);
            probe::check_all(&container, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            let set = container.at(field);
            if set.is_set() {
                errors.push(set.forbidden("may not be set for init containers without restartPolicy=Always"));
            }
        }
    }
}

fn check_common(container: &Field<'_>, volumes: &[&str], errors: &mut Errors) {
    let name = container.at("name");
    match name.is_empty() {
        true => errors.push(name.required("")),
        false => name.check_name(names::dns_label, errors),
    }
    let image = container.at("image");
    match image.text() {
        "" => errors.push(image.required("")),
        text if text.trim() != text => {
            errors.push(image.invalid("must not have leading or trailing whitespace"))
        }
        _ => {}
    }
    container.at("terminationMessagePolicy").check_one_of(&["File", "FallbackToLogsOnError"], errors);
    check_ports(container, errors);
    container.items("env").iter().for_each(|variable| check_variable(variable, errors));
    check_variable_sources(container, errors);
    check_mounts(container, volumes, errors);
    container.at("imagePullPolicy").check_one_of(&["Always", "IfNotPresent", "Never"], errors);
    resources::check_requirements(&container.at("resources"), errors);
    check_security(&container.at("securityContext"), errors);
}

fn check_ports(container: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in container.items("ports") {
        let name = port.at("name");
        if !name.is_empty() {
            let wrong = names::port_name(name.text());
            if wrong.is_empty() && !seen.insert(name.text()) {
                errors.push(name.duplicate());
            }
            errors.extend(wrong.into_iter().map(|why| name.invalid(why)));
        }
        let number = port.at("containerPort");
        match number.number().unwrap_or(0) {
            0 => errors.push(number.required("")),
            port => errors.extend(names::port_number(port).map(|why| number.invalid(why))),
        }
        let host = port.at("hostPort");
        let used = host.number().filter(|port| *port != 0);
        errors.extend(used.and_then(names::port_number).map(|why| host.invalid(why)));
        port.at("protocol").check_one_of(&PROTOCOLS, errors);
    }
}

fn check_host_ports(containers: &[Field<'_>], errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in containers.iter().flat_map(|container| container.items("ports")) {
        let host = port.at("hostPort");
        let Some(number) = host.number().filter(|number| *number != 0) else { continue };
        let key = format!("{}/{}/{number}", port.at("protocol").text(), port.at("hostIP").text());
        if !seen.insert(key.clone()) {
            errors.push(FieldError::duplicate(host.path, key));
        }
    }
}

fn check_variable(variable: &Field<'_>, errors: &mut Errors) {
    let (name, from) = (variable.at("name"), variable.at("valueFrom"));
    match name.is_empty() {
        true => errors.push(name.required("")),
        false => name.check_name(names::environment_name, errors),
    }
    if !from.is_set() {
        return;
    }
    check_field_reference(&from.at("fieldRef"), errors);
    check_key_reference(&from.at("configMapKeyRef"), errors);
    check_key_reference(&from.at("secretKeyRef"), errors);
    let sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let refuse = |detail: &str| FieldError::invalid(from.path.clone(), "", detail);
    match sources.into_iter().filter(|source| from.at(source).is_set()).count() {
        0 => errors.push(refuse(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        )),
        _ if !variable.at("value").is_empty() => {
            errors.push(refuse("may not be specified when `value` is not empty"));
        }
        1 => {}
        _ => errors.push(refuse("may not have more than one field specified at a time")),
    }
}

fn check_field_reference(reference: &Field<'_>, errors: &mut Errors) {
    if !reference.is_set() {
        return;
    }
    let path = reference.at("fieldPath");
    let known = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let is_entry =
        ["metadata.labels['", "metadata.annotations['"].iter().any(|map| path.text().starts_with(map));
    if path.is_empty() {
        errors.push(path.required(""));
    } else if !known.contains(&path.text()) && !is_entry {
        let why = format!("error converting fieldPath: field label not supported: {}", path.text());
        errors.push(path.invalid(why));
    }
}

fn check_key_reference(reference: &Field<'_>, errors: &mut Errors) {
    if !reference.is_set() {
        return;
    }
    let key = reference.at("key");
    reference.at("name").check_name(names::dns_subdomain, errors);
    match key.is_empty() {
        true => errors.push(key.required("")),
        false => key.check_name(names::config_key, errors),
    }
}

fn check_variable_sources(container: &Field<'_>, errors: &mut Errors) {
    // Kubernetes reports the list, not the element, if an element has no source, or two.
    let refuse = |detail: &str| FieldError::invalid(container.at("envFrom").path, "", detail);
    for source in container.items("envFrom") {
        source.at("prefix").check_optional_name(names::environment_name, errors);
        let references = ["configMapRef", "secretRef"].map(|reference| source.at(reference));
        let set: Vec<&Field<'_>> = references.iter().filter(|reference| reference.is_set()).collect();
        for reference in &set {
            let name = reference.at("name");
            match name.is_empty() {
                true => errors.push(name.required("")),
                false => name.check_name(names::dns_subdomain, errors),
            }
        }
        match set.len() {
            0 => errors.push(refuse("must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(refuse("may not have more than one field specified at a time")),
        }
    }
}

fn check_mounts(container: &Field<'_>, volumes: &[&str], errors: &mut Errors) {
    let mut paths = BTreeSet::new();
    for mount in container.items("volumeMounts") {
        let (name, path, below) = (mount.at("name"), mount.at("mountPath"), mount.at("subPath"));
        name.check_required(errors);
        if !volumes.contains(&name.text()) {
            errors.push(name.not_found());
        }
        path.check_required(errors);
        if !paths.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        let listed = Field { value: below.value, path: container.at("volumeMounts.subPath").path };
        check_descending(&listed, errors);
    }
}

/// Refuses a path that is absolute or climbs.
pub(super) fn check_descending(path: &Field<'_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    if has_segment(path.text(), "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

fn check_security(context: &Field<'_>, errors: &mut Errors) {
    pod::check_account(&context.at("runAsUser"), errors);
    pod::check_account(&context.at("runAsGroup"), errors);
    let is = |field: &str, wanted: bool| context.at(field).value == &Value::Bool(wanted);
    if is("allowPrivilegeEscalation", false) && is("privileged", true) {
        errors
            .push(context.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    }
}
