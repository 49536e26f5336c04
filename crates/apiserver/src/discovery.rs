//! The discovery documents: groups, versions and resources, in the classic form and in aggregated discovery.

use serde_json::{Map, Value, json};

use crate::registry::{Group, Registry, Resource, Version, group_version};

mod openapi;

pub(crate) use openapi::OpenApiCache;

/// `/api`
pub fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

/// `/apis`
pub fn groups(registry: &Registry) -> Value {
    let named = registry.groups().filter(|(name, _)| !name.is_empty());
    let groups: Vec<Value> = named.map(|(name, members)| group_entry(name, members)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/GROUP`
pub fn group(name: &str, group: &Group) -> Value {
    let mut document = group_entry(name, group);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    document
}

/// `/api/VERSION` and `/apis/GROUP/VERSION`
pub fn resources(group: &str, version: &Version) -> Value {
    let entries: Vec<Value> =
        version.resources.values().flat_map(|resource| classic_entries(resource)).collect();
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version(group, &version.name),
        "resources": entries,
    })
}

/// `/api` and `/apis` in aggregated form; `core` chooses which of the two.
pub fn aggregated(registry: &Registry, core: bool) -> Value {
    let groups = registry.groups().filter(|(name, _)| name.is_empty() == core);
    let items: Vec<Value> = groups.map(|(name, group)| aggregated_group(name, group)).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn group_entry(name: &str, group: &Group) -> Value {
    let entry = |version: &Version| json!({ "groupVersion": group_version(name, &version.name), "version": version.name });
    let versions: Vec<Value> = group.versions().iter().map(entry).collect();
    json!({ "name": name, "preferredVersion": versions.first(), "versions": versions })
}

fn classic_entries(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    let fields = main.as_object_mut().expect("it was just written as an object");
    insert_unless_empty(fields, "shortNames", &resource.short_names);
    insert_unless_empty(fields, "categories", &resource.categories);
    if resource.is_stored() {
        fields.insert("storageVersionHash".to_owned(), storage_version_hash(resource).into());
    }
    let parts = resource.subresources.iter().map(|part| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, part.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": part.kind,
            "verbs": part.verbs,
        });
        if (part.group.as_ref(), part.version.as_ref()) != (&*resource.group, &*resource.version) {
            entry["group"] = part.group.as_ref().into();
            entry["version"] = part.version.as_ref().into();
        }
        entry
    });
    std::iter::once(main.clone()).chain(parts).collect()
}

fn aggregated_group(name: &str, group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions()
        .iter()
        .map(|version| {
            let resources: Vec<Value> =
                version.resources.values().map(|resource| aggregated_resource(resource)).collect();
            json!({ "version": version.name, "resources": resources, "freshness": "Current" })
        })
        .collect();
    let metadata = match name {
        "" => json!({ "creationTimestamp": null }),
        name => json!({ "name": name, "creationTimestamp": null }),
    };
    json!({ "metadata": metadata, "versions": versions })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let response_kind =
        |group: &str, version: &str, kind: &str| json!({ "group": group, "version": version, "kind": kind });
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": response_kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    let fields = entry.as_object_mut().expect("it was just written as an object");
    insert_unless_empty(fields, "shortNames", &resource.short_names);
    insert_unless_empty(fields, "categories", &resource.categories);
    let parts: Vec<Value> = resource
        .subresources
        .iter()
        .map(|part| {
            json!({
                "subresource": part.name,
                "responseKind": response_kind(&part.group, &part.version, &part.kind),
                "verbs": part.verbs,
            })
        })
        .collect();
    if !parts.is_empty() {
        fields.insert("subresources".to_owned(), Value::Array(parts));
    }
    entry
}

fn insert_unless_empty(fields: &mut Map<String, Value>, key: &str, texts: &[Box<str>]) {
    if !texts.is_empty() {
        fields.insert(key.to_owned(), texts.iter().map(|text| Value::from(&**text)).collect());
    }
}

/// Clients compare it to notice that objects are stored in another version; its value means nothing else.
fn storage_version_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    let identity = format!("{}/{}", resource.stored_api_version, resource.kind);
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in identity.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    base64::engine::general_purpose::STANDARD.encode(hash.to_be_bytes())
}
