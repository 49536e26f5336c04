//! CustomResourceDefinitions that are in effect: read from the store, and compiled into kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use store::{Range, Revision, Store};

use super::Converter;
use crate::storage::{stored, text};
use apiextensions::CustomKind;

/// Where definitions lie in the store.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The kinds of every definition in the store that can be served.
pub(crate) fn load_definitions(store: &Store) -> BTreeMap<String, Arc<Definition>> {
    let page = store.range(DEFINITIONS, Range::default());
    let entries = page.map(|page| page.entries).unwrap_or_default();
    let kinds = entries.iter().filter_map(|entry| {
        Some((entry.key.to_string(), compile_definition(&stored::parse(&entry.value), entry.revision)?))
    });
    kinds.collect()
}

/// The kind behind a definition, once its names are accepted.
pub(crate) fn compile_definition(definition: &Value, since: Revision) -> Option<Arc<Definition>> {
    if definition_condition(definition, "Established") != Some("True") {
        return None;
    }
    let kind = apiextensions::compile(definition).ok()?;
    let name = text(definition, "/metadata/name").to_owned();
    let object = json!({ "spec": definition["spec"], "status": { "acceptedNames": definition["status"]["acceptedNames"] } });
    let converter = Converter::of(&definition["spec"]["conversion"]);
    Some(Arc::new(Definition { name, object, kind, converter, since }))
}

/// A CustomResourceDefinition that is in effect.
#[derive(Debug)]
pub struct Definition {
    /// The name of the definition, `plural.group`.
    pub name: String,
    /// The definition as it was written; OpenAPI and tables are made from it.
    pub object: Value,
    /// The kind it describes.
    pub kind: CustomKind,
    /// The conversion webhook of its objects, if there is one.
    pub converter: Option<Converter>,
    /// What was written before this revision may have another version or lack a default.
    pub since: Revision,
}

impl Definition {
    /// Whether it says the same, whenever that was written.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.object == other.object && self.kind == other.kind
    }
}

/// The status of a condition of a definition.
pub(crate) fn definition_condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = definition["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}
