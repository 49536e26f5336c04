//! Reads discovery documents into the list of kinds: names, verbs, scope and subresources.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::definitions::Definitions;

/// The kinds of these group versions, as the first line of the table holds them.
pub fn read(directory: &Path, served: &[(&str, &str)], definitions: &Definitions) -> Result<Vec<Value>> {
    let mut kinds = Vec::new();
    for (group, version) in served {
        let file = format!("{}.json", crate::file_stem(group, version));
        let document = crate::read_json(&directory.join(file))?;
        let resources = document["resources"].as_array().context("no resources")?;
        for resource in resources.iter().filter(|resource| !name(resource).contains('/')) {
            kinds.push(kind(group, version, resource, resources, definitions));
        }
    }
    Ok(kinds)
}

fn kind(group: &str, version: &str, resource: &Value, all: &[Value], definitions: &Definitions) -> Value {
    let kind = resource["kind"].as_str().unwrap_or_default();
    let list = format!("{kind}List");
    let list = definitions.of_kind(group, version, &list).map(|_| list);
    json!({
        "group": group,
        "version": version,
        "kind": kind,
        "list_kind": list,
        "plural": name(resource),
        "singular": resource["singularName"],
        "short_names": array(&resource["shortNames"]),
        "categories": array(&resource["categories"]),
        "namespaced": resource["namespaced"],
        "verbs": array(&resource["verbs"]),
        "subresources": subresources(group, version, name(resource), all, definitions),
        "schema": definitions.of_kind(group, version, kind),
    })
}

fn subresources(
    group: &str,
    version: &str,
    plural: &str,
    all: &[Value],
    definitions: &Definitions,
) -> Vec<Value> {
    let of_plural = |resource: &Value| -> Option<Value> {
        let subresource = name(resource).strip_prefix(plural)?.strip_prefix('/')?;
        // A subresource names its own group version only where it differs from its parent's.
        let group = resource["group"].as_str().unwrap_or(group);
        let version = resource["version"].as_str().unwrap_or(version);
        Some(json!({
            "name": subresource,
            "group": group,
            "version": version,
            "kind": resource["kind"],
            "verbs": array(&resource["verbs"]),
            "schema": definitions.of_kind(group, version, resource["kind"].as_str().unwrap_or_default()),
        }))
    };
    all.iter().filter_map(of_plural).collect()
}

fn name(resource: &Value) -> &str {
    resource["name"].as_str().unwrap_or_default()
}

fn array(value: &Value) -> Value {
    if value.is_array() { value.clone() } else { json!([]) }
}
