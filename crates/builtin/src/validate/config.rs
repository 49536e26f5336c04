//! Rules of ConfigMaps, Secrets, Events, Leases and PriorityClasses. Must not know who reads them.

use base64::Engine;
use serde_json::Value;

use super::field::{Errors, Field, same};
use apimachinery::error::FieldError;
use apimachinery::names;

/// Most bytes of data in one ConfigMap or Secret.
const DATA_BYTES_MAX: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) fn check_config_map(object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        check_frozen(object, old, &["data", "binaryData"], errors);
    }
    let mut total = 0;
    for (key, value) in object.entries("data") {
        check_key(key, &value, errors);
        if object.at("binaryData").value.get(key).is_some() {
            let why = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(value.path.clone(), key, why));
        }
        total += value.text().len();
    }
    for (key, value) in object.entries("binaryData") {
        check_key(key, &value, errors);
        total += decoded_bytes(value.text());
    }
    if total > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("[]", DATA_BYTES_MAX));
    }
}

pub(super) fn check_secret(object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        object.at("type").check_immutable(&old["type"], errors);
        check_frozen(object, old, &["data"], errors);
    }
    let mut total = 0;
    for (key, value) in object.entries("data") {
        check_key(key, &value, errors);
        total += decoded_bytes(value.text());
    }
    if total > DATA_BYTES_MAX {
        errors.push(FieldError::too_long("data", DATA_BYTES_MAX));
    }
    check_secret_type(object, errors);
}

fn check_secret_type(secret: &Field<'_>, errors: &mut Errors) {
    let has = |key: &str| secret.at("data").value.get(key).is_some();
    let mut require = |keys: &[&str]| {
        let missing = keys.iter().filter(|key| !has(key));
        errors.extend(missing.map(|key| FieldError::required(format!("data[{key}]"), "")));
    };
    match secret.at("type").text() {
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"]),
        "kubernetes.io/ssh-auth" => require(&["ssh-privatekey"]),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require(&["username", "password"])
        }
        "kubernetes.io/dockercfg" => {
            require(&[".dockercfg"]);
            check_json(secret, ".dockercfg", errors);
        }
        "kubernetes.io/dockerconfigjson" => {
            require(&[".dockerconfigjson"]);
            check_json(secret, ".dockerconfigjson", errors);
        }
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let account = &secret.at("metadata.annotations").value[key];
            if account.as_str().is_none_or(str::is_empty) {
                errors.push(FieldError::required(format!("metadata.annotations[{key}]"), ""));
            }
        }
        _ => {}
    }
}

/// A Docker configuration is JSON; the contents of a secret are never repeated.
fn check_json(secret: &Field<'_>, key: &str, errors: &mut Errors) {
    let Some(encoded) = secret.at("data").value.get(key).and_then(Value::as_str) else { return };
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
    if serde_json::from_slice::<Value>(&bytes).is_ok() {
        return;
    }
    let why = match String::from_utf8_lossy(&bytes).trim_start().chars().next() {
        Some(first) if !"{[\"-0123456789tfn".contains(first) => {
            format!("invalid character '{first}' looking for beginning of value")
        }
        _ => String::from("unexpected end of JSON input"),
    };
    errors.push(FieldError::invalid(format!("data[{key}]"), "<secret contents redacted>", why));
}

fn check_frozen(object: &Field<'_>, old: &Value, contents: &[&str], errors: &mut Errors) {
    if old["immutable"] != true {
        return;
    }
    if object.at("immutable").value != &Value::Bool(true) {
        errors.push(object.at("immutable").forbidden(FROZEN));
    }
    for field in contents {
        if !same(object.at(field).value, &old[field]) {
            errors.push(object.at(field).forbidden(FROZEN));
        }
    }
}

fn check_key(key: &str, place: &Field<'_>, errors: &mut Errors) {
    let wrong = names::config_key(key).into_iter();
    errors.extend(wrong.map(|why| FieldError::invalid(place.path.clone(), key, why)));
}

fn decoded_bytes(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(padding)
}

pub(super) fn check_event(object: &Field<'_>, errors: &mut Errors) {
    let (own, involved) = (object.at("metadata.namespace"), object.at("involvedObject.namespace"));
    let is_misplaced = match involved.is_empty() {
        true => own.text() != "default" && !own.is_empty(),
        false => own.text() != involved.text(),
    };
    if is_misplaced {
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid(involved.path.clone(), involved.text(), why));
    }
}

/// PriorityClasses and Leases.
pub(super) fn check_rank(kind: &str, object: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    match (kind, old) {
        ("PriorityClass", None) => check_priority(object, errors),
        ("PriorityClass", Some(old)) => {
            if object.at("value").value != &old["value"] {
                errors.push(object.at("value").forbidden("may not be changed in an update."));
            }
            object.at("preemptionPolicy").check_immutable(&old["preemptionPolicy"], errors);
        }
        ("Lease", _) => {
            let duration = object.at("spec.leaseDurationSeconds");
            if duration.number().is_some_and(|seconds| seconds <= 0) {
                errors.push(duration.invalid("must be greater than 0"));
            }
            object.at("spec.leaseTransitions").check_non_negative(errors);
        }
        _ => {}
    }
}

fn check_priority(class: &Field<'_>, errors: &mut Errors) {
    let name = class.at("metadata.name");
    if name.text().starts_with("system-") {
        if !matches!(name.text(), "system-node-critical" | "system-cluster-critical") {
            errors.push(name.forbidden(format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {} is not a \
                 known system priority class",
                name.text()
            )));
        }
    } else if class.at("value").number().is_some_and(|value| value > 1_000_000_000) {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(class.at("value").forbidden(why));
    }
    class.at("preemptionPolicy").check_one_of(&["PreemptLowerPriority", "Never"], errors);
}
