//! The schema of ObjectMeta, for objects whose own schema does not spell it out: custom kinds and
//! resources embedded in them.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::Schema;

/// The schema of `metadata`, shared by every custom kind.
pub fn object_meta() -> &'static Arc<Schema> {
    static SHAPE: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::from_openapi(&source())));
    &SHAPE
}

fn source() -> Value {
    let text = || json!({ "type": "string" });
    let time = || json!({ "type": "string", "format": "date-time" });
    let number = || json!({ "type": "integer", "format": "int64" });
    let text_map = || json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "name": text(),
            "generateName": text(),
            "namespace": text(),
            "selfLink": text(),
            "uid": text(),
            "resourceVersion": text(),
            "generation": number(),
            "creationTimestamp": time(),
            "deletionTimestamp": time(),
            "deletionGracePeriodSeconds": number(),
            "labels": text_map(),
            "annotations": text_map(),
            "finalizers": { "type": "array", "items": text(), "x-kubernetes-list-type": "set" },
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": owner_reference(),
            },
            "managedFields": { "type": "array", "items": managed_fields_entry() },
        },
    })
}

fn owner_reference() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "name": { "type": "string" },
            "uid": { "type": "string" },
            "controller": { "type": "boolean" },
            "blockOwnerDeletion": { "type": "boolean" },
        },
    })
}

fn managed_fields_entry() -> Value {
    json!({
        "type": "object",
        "properties": {
            "manager": { "type": "string" },
            "operation": { "type": "string" },
            "apiVersion": { "type": "string" },
            "time": { "type": "string", "format": "date-time" },
            "fieldsType": { "type": "string" },
            "fieldsV1": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "subresource": { "type": "string" },
        },
    })
}
