//! Validates ObjectMeta on create and on update, in the words and the order of Kubernetes. Must not know what else
//! the object holds.

use serde_json::{Map, Value};

use crate::error::{ApiError, FieldError, FieldErrorKind};
use crate::gotext::quoted;
use crate::names::{self, NameRule};

#[cfg(test)]
mod tests;

const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
const MANAGER_BYTES_MAX: usize = 128;
const SUBRESOURCE_BYTES_MAX: usize = 256;

/// What is wrong with the metadata of a new object, whose name was already generated.
pub fn validate_create(metadata: &Value, namespaced: bool, rule: NameRule, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let generate_name = text(metadata, "generateName");
    let field = format!("{path}.generateName");
    if !generate_name.is_empty() {
        errors.extend(invalids(&field, generate_name, rule.check_prefix(generate_name)));
    }
    match text(metadata, "name") {
        "" => {
            let field = format!("{path}.name");
            errors.push(FieldError::required(field, "name or generateName is required"));
        }
        name => errors.extend(invalids(&format!("{path}.name"), name, rule.check(name))),
    }
    errors.extend(namespace(metadata, namespaced, path));
    let generation = metadata["generation"].as_i64().unwrap_or(0);
    if generation < 0 {
        let field = format!("{path}.generation");
        errors.push(FieldError::invalid(field, generation, "must be greater than or equal to 0"));
    }
    errors.extend(labels(metadata, path));
    errors.extend(annotations(metadata, path));
    errors.extend(owner_references(metadata, path));
    errors.extend(finalizers(metadata, path));
    errors.extend(managed_fields(metadata, path));
    errors
}

/// What is wrong with new metadata in the light of the stored one, each fault once. The name was checked
/// by the rule of its kind when the object was made.
pub fn validate_update(metadata: &Value, old: &Value, namespaced: bool, path: &str) -> Vec<FieldError> {
    let mut errors = validate_create(metadata, namespaced, NameRule::PathSegment, path);
    for error in changes(metadata, old, path) {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    errors
}

fn changes(metadata: &Value, old: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !old["deletionTimestamp"].is_null() {
        errors.extend(new_finalizers(metadata, old, path));
    }
    if text(metadata, "resourceVersion").is_empty() {
        let field = format!("{path}.resourceVersion");
        errors.push(FieldError::invalid(field, "", "must be specified for an update"));
    }
    let generation = |source: &Value| source["generation"].as_i64().unwrap_or(0);
    if generation(metadata) < generation(old) {
        let field = format!("{path}.generation");
        errors.push(FieldError::invalid(field, generation(metadata), "must not be decremented"));
    }
    for key in ["name", "namespace", "uid"] {
        if text(metadata, key) != text(old, key) {
            errors.push(immutable(path, key, text(metadata, key).into()));
        }
    }
    for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata[key] != old[key] {
            errors.push(immutable(path, key, metadata[key].clone()));
        }
    }
    errors
}

/// What most built-in kinds ask of finalizers beyond the rest: a domain, unless Kubernetes knows the name.
/// Custom kinds only get a warning, see `finalizer_warnings`.
pub fn validate_builtin_finalizers(metadata: &Value, path: &str) -> Vec<FieldError> {
    let foreign = |name: &str| !name.contains('/') && !STANDARD_FINALIZERS.contains(&name);
    let all = texts(metadata, "finalizers").enumerate().filter(|(_, name)| foreign(name));
    all.map(|(index, name)| {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        FieldError::invalid(format!("{path}.finalizers[{index}]"), name, detail)
    })
    .collect()
}

/// Takes over from the stored metadata what no update may change or leave out.
pub fn keep_system_fields(metadata: &mut Map<String, Value>, old: &Value) {
    let mut keep = |key: &str| match &old[key] {
        Value::Null => metadata.remove(key),
        value => metadata.insert(key.to_owned(), value.clone()),
    };
    keep("generation");
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if !old[key].is_null() {
            keep(key);
        }
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        let given = metadata.get(key).is_some_and(|value| !value.is_null() && value != "");
        if !given && !old[key].is_null() {
            metadata.insert(key.to_owned(), old[key].clone());
        }
    }
}

/// Lists, maps and texts of metadata that are empty are the same as none, and are not kept; but no owners at all are
/// a wish, which is for those to read who keep them.
pub fn drop_empty(metadata: &mut Map<String, Value>) {
    metadata.retain(|name, value| match value {
        Value::Array(_) if name == "managedFields" => true,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Null => false,
        _ => true,
    });
}

/// Gives the object the namespace of the request, which is empty for cluster-wide kinds.
pub fn match_namespace(metadata: &mut Map<String, Value>, request_namespace: &str) -> Result<(), ApiError> {
    let own = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    match (own, request_namespace) {
        (own, request) if own == request => Ok(()),
        (_, "") => {
            metadata.remove("namespace");
            Ok(())
        }
        ("", request) => {
            metadata.insert(String::from("namespace"), request.into());
            Ok(())
        }
        _ => Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Warnings about finalizers that a custom object gains and that carry no domain.
pub fn finalizer_warnings(metadata: &Value, old: &Value) -> Vec<String> {
    let before: Vec<&str> = texts(old, "finalizers").collect();
    let mut added: Vec<&str> = texts(metadata, "finalizers").filter(|name| !before.contains(name)).collect();
    added.sort_unstable();
    added.dedup();
    added.into_iter().flat_map(finalizer_warning).collect()
}

fn finalizer_warning(name: &str) -> Vec<String> {
    let line = |advice: &str| format!("metadata.finalizers: {}: {advice}", quoted(name));
    let mut warnings: Vec<String> = names::label_key(name).iter().map(|fault| line(fault)).collect();
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let what = match name.contains('.') {
            true => "finalizer name including a path (/)",
            false => "finalizer name",
        };
        warnings.push(line(&format!(
            "prefer a domain-qualified {what} to avoid accidental conflicts with other finalizer writers"
        )));
    }
    warnings
}

fn namespace(metadata: &Value, namespaced: bool, path: &str) -> Vec<FieldError> {
    let field = format!("{path}.namespace");
    match (namespaced, text(metadata, "namespace")) {
        (true, "") => vec![FieldError::required(field, "")],
        (true, name) => invalids(&field, name, names::dns_label(name)),
        (false, "") => Vec::new(),
        (false, _) => vec![FieldError::forbidden(field, "not allowed on this type")],
    }
}

/// What is wrong with the labels of metadata.
pub fn labels(metadata: &Value, path: &str) -> Vec<FieldError> {
    let field = format!("{path}.labels");
    let one = |(key, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        let mut errors = invalids(&field, key, names::label_key(key));
        errors.extend(invalids(&field, value, names::label_value(value)));
        errors
    };
    metadata["labels"].as_object().into_iter().flatten().flat_map(one).collect()
}

/// What is wrong with the annotations of metadata.
pub fn annotations(metadata: &Value, path: &str) -> Vec<FieldError> {
    let field = format!("{path}.annotations");
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        errors.extend(invalids(&field, key, names::label_key(&key.to_lowercase())));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(field, ANNOTATIONS_BYTES_MAX));
    }
    errors
}

fn owner_references(metadata: &Value, path: &str) -> Vec<FieldError> {
    let field = format!("{path}.ownerReferences");
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for reference in list(metadata, "ownerReferences") {
        errors.extend(owner_reference(reference, &field));
        if reference["controller"] != true {
            continue;
        }
        let current = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        match &controller {
            None => controller = Some(current),
            Some(first) => errors.push(FieldError::invalid(
                field.as_str(),
                metadata["ownerReferences"].clone(),
                format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for \
                     {first} and {current}"
                ),
            )),
        }
    }
    errors
}

fn owner_reference(reference: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let api_version = text(reference, "apiVersion");
    let version = match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [version] | [_, version] => version,
        _ => "",
    };
    if version.is_empty() {
        let field = format!("{field}.apiVersion");
        errors.push(FieldError::invalid(field, api_version, "version must not be empty"));
    }
    for key in ["kind", "name", "uid"] {
        if text(reference, key).is_empty() {
            errors.push(FieldError::invalid(format!("{field}.{key}"), "", "must not be empty"));
        }
    }
    if api_version == "v1" && reference["kind"] == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(field, reference.clone(), detail));
    }
    errors
}

fn finalizers(metadata: &Value, path: &str) -> Vec<FieldError> {
    let field = format!("{path}.finalizers");
    let all: Vec<&str> = texts(metadata, "finalizers").collect();
    let mut errors: Vec<FieldError> =
        all.iter().flat_map(|name| invalids(&field, name, names::label_key(name))).collect();
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(field, metadata["finalizers"].clone(), detail));
    }
    errors
}

fn new_finalizers(metadata: &Value, old: &Value, path: &str) -> Vec<FieldError> {
    let before: Vec<&str> = texts(old, "finalizers").collect();
    let mut extra: Vec<&str> = texts(metadata, "finalizers").filter(|name| !before.contains(name)).collect();
    extra.sort_unstable();
    extra.dedup();
    if extra.is_empty() {
        return Vec::new();
    }
    let list: Vec<String> = extra.iter().map(|name| quoted(name)).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        list.join(", ")
    );
    vec![FieldError::forbidden(format!("{path}.finalizers"), detail)]
}

fn managed_fields(metadata: &Value, path: &str) -> Vec<FieldError> {
    let entries = list(metadata, "managedFields").iter().enumerate();
    entries
        .flat_map(|(index, entry)| managed_entry(entry, &format!("{path}.managedFields[{index}]")))
        .collect()
}

/// Whether the field owners that a client sent can be read at all.
pub fn has_readable_owners(metadata: &Value) -> bool {
    managed_fields(metadata, "").is_empty()
}

fn managed_entry(entry: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let operation = text(entry, "operation");
    if !["Apply", "Update"].contains(&operation) {
        let field = format!("{path}.operation");
        errors.push(FieldError::invalid(field, operation, "must be `Apply` or `Update`"));
    }
    let fields_type = text(entry, "fieldsType");
    if !["", "FieldsV1"].contains(&fields_type) {
        let field = format!("{path}.fieldsType");
        errors.push(FieldError::invalid(field, fields_type, "must be `FieldsV1`"));
    }
    for (key, limit) in [("manager", MANAGER_BYTES_MAX), ("subresource", SUBRESOURCE_BYTES_MAX)] {
        if text(entry, key).len() > limit {
            errors.push(FieldError::too_long(format!("{path}.{key}"), limit));
        }
    }
    errors
}

fn immutable(path: &str, key: &str, value: Value) -> FieldError {
    FieldError::new(FieldErrorKind::Invalid, format!("{path}.{key}"), value, "field is immutable")
}

fn invalids(field: &str, value: &str, faults: Vec<String>) -> Vec<FieldError> {
    faults.into_iter().map(|fault| FieldError::invalid(field, value, fault)).collect()
}

fn text<'a>(source: &'a Value, key: &str) -> &'a str {
    source[key].as_str().unwrap_or_default()
}

fn list<'a>(source: &'a Value, key: &str) -> &'a [Value] {
    source[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts<'a>(source: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    list(source, key).iter().filter_map(Value::as_str)
}
