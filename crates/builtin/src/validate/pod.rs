//! Rules of Pods and Pod templates. Containers, volumes and scheduling have files of their own.

use serde_json::Value;

use super::field::{Errors, Field, check_labels, same};
use super::{container, scheduling, volume};
use apimachinery::names;

/// The largest number of seconds, user or group.
const INT32_MAX: i64 = i32::MAX as i64;

pub(super) fn check(pod: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    check_spec(&pod.at("spec"), &[], errors);
    if let Some(old) = old {
        check_update(&pod.at("spec"), &old["spec"], errors);
    }
}

pub(super) fn check_template(template: &Field<'_>, errors: &mut Errors) {
    check_template_with_volumes(template, &[], errors);
}

/// A template whose Pods also get the volumes named here.
pub(super) fn check_template_with_volumes(template: &Field<'_>, given: &[&str], errors: &mut Errors) {
    let labels = template.at("metadata.labels");
    // Kubernetes names the labels of a template without their metadata.
    check_labels(&Field { value: labels.value, path: template.at("labels").path }, errors);
    check_spec(&template.at("spec"), given, errors);
}

fn check_spec(spec: &Field<'_>, given_volumes: &[&str], errors: &mut Errors) {
    let mut volumes = volume::check_all(spec, errors);
    volumes.extend(given_volumes);
    container::check_all(spec, &volumes, errors);
    container::check_init(spec, &volumes, errors);
    spec.at("restartPolicy").check_one_of(&["Always", "OnFailure", "Never"], errors);
    let dns = spec.at("dnsPolicy");
    dns.check_one_of(&["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    check_labels(&spec.at("nodeSelector"), errors);
    check_security(&spec.at("securityContext"), errors);
    scheduling::check_affinity(&spec.at("affinity"), errors);
    if dns.text() == "None" && !spec.at("dnsConfig").is_set() {
        errors.push(spec.at("dnsConfig").required("must provide `dnsConfig` when `dnsPolicy` is None"));
    }
    scheduling::check_spread(spec, errors);
    spec.at("serviceAccountName").check_optional_name(names::dns_subdomain, errors);
    spec.at("nodeName").check_optional_name(names::dns_subdomain, errors);
    let deadline = spec.at("activeDeadlineSeconds");
    if deadline.number().is_some_and(|seconds| !(1..=INT32_MAX).contains(&seconds)) {
        errors.push(deadline.invalid(format!("must be between 1 and {INT32_MAX}, inclusive")));
    }
    spec.at("hostname").check_optional_name(names::dns_label, errors);
    spec.at("subdomain").check_optional_name(names::dns_label, errors);
    scheduling::check_tolerations(spec, errors);
    for alias in spec.items("hostAliases") {
        check_address(&alias.at("ip"), errors);
        alias.items("hostnames").iter().for_each(|name| name.check_name(names::dns_subdomain, errors));
    }
    spec.at("priorityClassName").check_optional_name(names::dns_subdomain, errors);
    spec.at("runtimeClassName").check_optional_name(names::dns_subdomain, errors);
    spec.at("preemptionPolicy").check_one_of(&["PreemptLowerPriority", "Never"], errors);
}

/// Refuses what is no IP address.
pub(super) fn check_address(address: &Field<'_>, errors: &mut Errors) {
    if address.text().parse::<std::net::IpAddr>().is_err() {
        errors.push(address.invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
    }
}

/// Refuses a user or group that Linux does not have.
pub(super) fn check_account(account: &Field<'_>, errors: &mut Errors) {
    if account.number().is_some_and(|number| !(0..=INT32_MAX).contains(&number)) {
        errors.push(account.invalid(format!("must be between 0 and {INT32_MAX}, inclusive")));
    }
}

fn check_security(context: &Field<'_>, errors: &mut Errors) {
    for account in ["fsGroup", "runAsUser", "runAsGroup"] {
        check_account(&context.at(account), errors);
    }
    context.items("supplementalGroups").iter().for_each(|group| check_account(group, errors));
    for sysctl in context.items("sysctls") {
        let name = sysctl.at("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !is_sysctl(name.text()) {
            errors.push(name.invalid(
                "must have at most 253 characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            ));
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_edge =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_inner =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    name.len() <= 253
        && name
            .split(['.', '/'])
            .map(str::as_bytes)
            .all(|part| is_edge(part.first()) && is_edge(part.last()) && part.iter().all(is_inner))
}

const FROZEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
     tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn check_update(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    for list in ["containers", "initContainers"] {
        let count = |spec: &Value| spec[list].as_array().map_or(0, Vec::len);
        if count(spec.value) != count(old) {
            return errors.push(spec.at(list).forbidden("pod updates may not add or remove containers"));
        }
    }
    let deadline = spec.at("activeDeadlineSeconds");
    let before = old["activeDeadlineSeconds"].as_i64();
    match (deadline.number(), before) {
        (Some(now), _) if !(0..=INT32_MAX).contains(&now) => {
            return errors.push(deadline.invalid(format!("must be between 0 and {INT32_MAX}, inclusive")));
        }
        (Some(now), Some(before)) if before < now => {
            return errors.push(deadline.invalid("must be less than or equal to previous value"));
        }
        (None, Some(_)) => {
            errors.push(deadline.invalid("must not update from a positive integer to nil value"))
        }
        _ => {}
    }
    scheduling::check_tolerations_kept(spec, old, errors);
    if !same(&frozen(spec.value, old), &frozen(old, old)) {
        errors.push(spec.forbidden(FROZEN));
    }
}

/// A spec with everything that may change set to what it was.
fn frozen(spec: &Value, old: &Value) -> Value {
    let mut frozen = spec.clone();
    let Some(fields) = frozen.as_object_mut() else { return frozen };
    let gates_only_removed = old["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    for field in ["activeDeadlineSeconds", "tolerations"] {
        fields.insert(field.to_owned(), old[field].clone());
    }
    // A gated Pod may still be steered to its node.
    if gates_only_removed {
        for field in ["schedulingGates", "nodeSelector", "affinity"] {
            fields.insert(field.to_owned(), old[field].clone());
        }
    }
    let was_negative = old["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0);
    if was_negative && fields.get("terminationGracePeriodSeconds").is_some_and(|seconds| seconds == 1) {
        fields.insert(
            String::from("terminationGracePeriodSeconds"),
            old["terminationGracePeriodSeconds"].clone(),
        );
    }
    for list in ["containers", "initContainers"] {
        let containers = fields.get_mut(list).and_then(Value::as_array_mut);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            if let Some(container) = container.as_object_mut() {
                container.insert(String::from("image"), old[list][index]["image"].clone());
            }
        }
    }
    frozen
}
