//! CustomResourceDefinitions: validation, name acceptance, and compilation into a kind. Pure functions; must not know
//! how definitions and objects are stored or served.

use serde_json::{Map, Value, json};

mod columns;
mod conversion;
mod defaults;
mod kind;
mod nodes;
mod object;
mod rules;
mod scale;
mod spec;
mod status;
mod structural;
#[cfg(test)]
mod tests;

pub use kind::{CompileError, CustomKind, CustomVersion, compile};
pub use rules::Verdict;
pub use scale::{ScalePaths, read_scale, write_scale};
pub use spec::validate_crd;
pub use status::{accept_names, establish, unknown_format_warnings};

/// Fills in what a definition may leave out: singular, listKind, conversion, the webhook's port.
pub fn default_crd(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            set_if_empty(names, "singular", kind.to_lowercase());
            set_if_empty(names, "listKind", format!("{kind}List"));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert(String::from("conversion"), json!({ "strategy": "None" }));
    }
    let service = spec["conversion"].pointer_mut("/webhook/clientConfig/service");
    if let Some(service) = service.and_then(Value::as_object_mut) {
        service.entry("port").or_insert_with(|| 443.into());
    }
}

fn set_if_empty(fields: &mut Map<String, Value>, name: &str, value: String) {
    if fields.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Gives a written definition the status it keeps: the stored one, or an empty one; the storage version
/// joins `storedVersions`.
pub fn keep_status(crd: &mut Value, old: Option<&Value>) {
    let Some(version) = storage_version(crd) else { return };
    let mut status = old.map_or(Value::Null, |old| old["status"].clone());
    if !status.is_object() {
        status = json!({ "acceptedNames": { "plural": "", "kind": "" }, "conditions": [] });
    }
    if !texts(&status["storedVersions"]).any(|stored| stored == version) {
        let mut stored: Vec<Value> = texts(&status["storedVersions"]).map(Value::from).collect();
        stored.push(version.into());
        status["storedVersions"] = Value::Array(stored);
    }
    if let Some(fields) = crd.as_object_mut() {
        fields.insert(String::from("status"), status);
    }
}

fn storage_version(crd: &Value) -> Option<String> {
    let version = list(&crd["spec"]["versions"]).iter().find(|version| version["storage"] == true)?;
    version["name"].as_str().map(str::to_owned)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or(false)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    list(value).iter().filter_map(Value::as_str)
}

/// The children of a schema node, each with what comes after the node's own path.
fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Whether a field of a schema says anything: Go's zero values say nothing.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(set) => *set,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Number(_) | Value::Object(_) => true,
    }
}
