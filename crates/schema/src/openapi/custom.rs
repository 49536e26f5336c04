//! Schemas of CustomResourceDefinitions as documents publish them: with the metadata that every object
//! has, and for OpenAPI v2 without what kubectl cannot read there.

use serde_json::{Map, Value, json};

use super::components::{Components, Dialect};
use super::published::Published;

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// What `kubectl explain` says about the fields that every object has.
pub(super) const API_VERSION: &str =
    "APIVersion defines which version of the kind's schema this object is written in.";
pub(super) const KIND: &str = "Kind is the name of the schema that this object follows, in CamelCase.";
pub(super) const METADATA: &str =
    "Standard object's metadata: its name, its labels and what the server keeps about it.";

const METADATA_FIELDS: [(&str, &str); 6] = [
    ("annotations", "Annotations are texts by key that tools keep with the object; nobody selects by them."),
    (
        "creationTimestamp",
        "CreationTimestamp is a timestamp that the server sets when it creates the object.",
    ),
    ("labels", "Labels are short texts by key that objects are selected by."),
    ("name", "Name is what the object is called, once among those of its kind in its namespace."),
    ("namespace", "Namespace is where the object lives; it cannot be changed."),
    ("uid", "UID tells the object from every other, of the same name too."),
];

/// Says what the fields of metadata are.
pub(super) fn explain(object_meta: &mut Value) {
    for (name, description) in METADATA_FIELDS {
        if let Some(Value::Object(field)) = object_meta["properties"].get_mut(name) {
            field.insert("description".into(), description.into());
        }
    }
}

/// The component of a custom kind.
pub(super) fn object(kind: &Published<'_>, source: &Value, components: &mut Components) -> Value {
    let mut schema = match source {
        Value::Object(fields) if publishes_fields(fields, components.dialect) => {
            let mut fields = schema(fields.clone(), components);
            add_object_fields(&mut fields, components);
            fields
        }
        // Fields here would tell kubectl that there are no others.
        _ => Map::from_iter([("type".to_owned(), json!("object"))]),
    };
    schema.insert("x-kubernetes-group-version-kind".into(), gvk(kind, kind.kind));
    Value::Object(schema)
}

/// The component of a custom kind's lists.
pub(super) fn list(kind: &Published<'_>, components: &mut Components) -> Value {
    let list_kind = kind.list_kind.unwrap_or_default();
    json!({
        "type": "object",
        "description": format!("{list_kind} is a list of {}", kind.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": components.refer(LIST_META),
            "items": { "type": "array", "items": components.dialect.reference(&kind.component()) },
        },
        "x-kubernetes-group-version-kind": gvk(kind, list_kind),
    })
}

fn publishes_fields(fields: &Map<String, Value>, dialect: Dialect) -> bool {
    dialect == Dialect::V3 || !is_true(fields, "x-kubernetes-preserve-unknown-fields")
}

fn gvk(kind: &Published<'_>, name: &str) -> Value {
    json!([{ "group": kind.group, "version": kind.version, "kind": name }])
}

/// One node and all below it. The nesting is bounded by the JSON parser that read the definition.
fn schema(mut fields: Map<String, Value>, components: &mut Components) -> Map<String, Value> {
    if components.dialect == Dialect::V2 {
        to_v2(&mut fields);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(child)) = fields.get_mut(key) {
            *child = schema(std::mem::take(child), components);
        }
    }
    for (_, child) in fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Value::Object(child) = child {
            *child = schema(std::mem::take(child), components);
        }
    }
    let unknown = is_true(&fields, "x-kubernetes-preserve-unknown-fields");
    let free = components.dialect == Dialect::V2 && unknown;
    if is_true(&fields, "x-kubernetes-embedded-resource") && !free {
        add_object_fields(&mut fields, components);
        require(&mut fields, &["kind", "apiVersion"]);
    }
    fields
}

fn add_object_fields(fields: &mut Map<String, Value>, components: &mut Components) {
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        let description =
            properties.get("metadata").and_then(|metadata| metadata.get("description")).cloned();
        let mut metadata = components.refer(OBJECT_META);
        let description = description.unwrap_or_else(|| METADATA.into());
        match components.dialect {
            Dialect::V2 => metadata["description"] = description,
            Dialect::V3 => metadata = json!({ "allOf": [metadata], "description": description }),
        }
        for (name, description) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            properties.entry(name).or_insert_with(|| json!({ "type": "string", "description": description }));
        }
        properties.insert("metadata".into(), metadata);
    }
}

fn require(fields: &mut Map<String, Value>, names: &[&str]) {
    if let Value::Array(required) = fields.entry("required").or_insert_with(|| json!([])) {
        for name in names {
            if !required.iter().any(|other| other == name) {
                required.push(json!(name));
            }
        }
    }
}

/// Drops what OpenAPI v2 has no words for. A field that may be null, or hold anything, loses its type:
/// kubectl would refuse values that the server takes.
fn to_v2(fields: &mut Map<String, Value>) {
    for word in ["allOf", "oneOf", "anyOf", "not", "default"] {
        fields.remove(word);
    }
    let nullable = is_true(fields, "nullable");
    let free = is_true(fields, "x-kubernetes-preserve-unknown-fields");
    fields.remove("nullable");
    if nullable || free {
        fields.remove("items");
        fields.remove("properties");
    }
    let bare_array = fields.get("type") == Some(&json!("array")) && !fields.contains_key("items");
    let free_object = free && fields.get("type") == Some(&json!("object"));
    if nullable || bare_array || free_object {
        fields.remove("type");
    }
    let null_children = nullable_children(fields);
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|name| !null_children.iter().any(|child| name == child));
    }
}

fn nullable_children(fields: &Map<String, Value>) -> Vec<String> {
    let children = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
    children.filter(|(_, child)| child["nullable"] == true).map(|(name, _)| name.clone()).collect()
}

fn is_true(fields: &Map<String, Value>, key: &str) -> bool {
    fields.get(key) == Some(&Value::Bool(true))
}
