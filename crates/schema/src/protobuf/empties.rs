//! What Go's structs do to a JSON object by being written again: fields that they omit when empty are
//! gone. Knows the same table as the protobuf decoder, because the table says what each field omits.

use serde_json::{Map, Value};

use super::messages::{Field, Form, Message, Shape, ValueType, table};

/// Deeper values stay as they are; the schema has refused them before.
const DEPTH_MAX: usize = 100;
/// An empty list of owners is a request to forget them, so it has to survive until it is heard.
const MANAGED_FIELDS: &str = "managedFields";

/// Drops what the kind's struct omits when empty: empty texts, lists and maps, zeros and `false`, except where the
/// struct distinguishes absent from empty.
pub fn drop_empty(api_version: &str, kind: &str, object: &mut Value) {
    let message = table().root(api_version, kind).and_then(|index| table().message(index));
    if let (Some(message), Some(fields)) = (message, object.as_object_mut()) {
        drop_fields(message, fields, 0);
    }
}

/// The same for the metadata of a kind that has no struct.
pub fn drop_empty_metadata(metadata: &mut Value) {
    let config_map = table().root("v1", "ConfigMap").and_then(|index| table().message(index));
    let field = config_map.and_then(|message| message.fields.iter().find(|field| field.json == "metadata"));
    let message = field.and_then(inner);
    if let (Some(message), Some(fields)) = (message, metadata.as_object_mut()) {
        drop_fields(message, fields, 0);
    }
}

fn inner(field: &Field) -> Option<&'static Message> {
    match field.value {
        ValueType::Message(index) => table().message(index),
        _ => None,
    }
}

fn drop_fields(message: &Message, fields: &mut Map<String, Value>, depth: usize) {
    if depth > DEPTH_MAX || message.form != Form::Object {
        return;
    }
    for field in &message.fields {
        let inner = inner(field);
        if field.inline {
            if let Some(inner) = inner {
                drop_fields(inner, fields, depth + 1);
            }
            continue;
        }
        let Some(value) = fields.get_mut(field.json).filter(|_| field.json != MANAGED_FIELDS) else {
            continue;
        };
        if let Some(inner) = inner {
            descend(inner, field.shape, value, depth + 1);
        }
        if field.omit_empty && is_empty(field, value) {
            fields.remove(field.json);
        }
    }
}

fn descend(message: &Message, shape: Shape, value: &mut Value, depth: usize) {
    let each = |value: &mut Value| {
        if let Some(fields) = value.as_object_mut() {
            drop_fields(message, fields, depth);
        }
    };
    match (shape, value) {
        (Shape::One, value) => each(value),
        (Shape::Repeated, Value::Array(items)) => items.iter_mut().for_each(each),
        (Shape::Map, Value::Object(values)) => values.values_mut().for_each(each),
        _ => {}
    }
}

/// Whether Go cannot tell the value from an absent one.
fn is_empty(field: &Field, value: &Value) -> bool {
    match (field.shape, field.value, value) {
        (Shape::Repeated, _, Value::Array(items)) => items.is_empty(),
        (Shape::Map, _, Value::Object(values)) => values.is_empty(),
        (Shape::One, ValueType::Message(_), _) => false,
        (Shape::One, ValueType::Bytes, value) => value == "",
        (Shape::One, _, value) if !field.pointer => super::object::is_zero(value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(api_version: &str, kind: &str, given: Value, expected: Value) {
        let mut found = given.clone();
        drop_empty(api_version, kind, &mut found);
        assert_eq!(found, expected, "{given}");
    }

    #[test]
    fn what_go_omits_is_gone() {
        check(
            "v1",
            "ConfigMap",
            json!({ "metadata": { "labels": {}, "finalizers": [], "name": "a" }, "data": {}, "immutable": false }),
            json!({ "metadata": { "name": "a" }, "immutable": false }),
        );
        check(
            "v1",
            "Pod",
            json!({ "spec": {
                "hostNetwork": false, "nodeSelector": {}, "tolerations": [], "restartPolicy": "",
                "terminationGracePeriodSeconds": 0, "securityContext": {},
                "containers": [{ "name": "", "args": [], "stdin": false, "env": [{ "name": "A", "value": "" }] }],
            }}),
            json!({ "spec": {
                "terminationGracePeriodSeconds": 0, "securityContext": {},
                "containers": [{ "name": "", "env": [{ "name": "A" }] }],
            }}),
        );
        check("v1", "Secret", json!({ "data": { "a": "" } }), json!({ "data": { "a": "" } }));
        check(
            "apps/v1",
            "Deployment",
            json!({ "spec": { "replicas": 0 } }),
            json!({ "spec": { "replicas": 0 } }),
        );
    }

    #[test]
    fn what_go_always_writes_stays() {
        check("rbac.authorization.k8s.io/v1", "Role", json!({ "rules": [] }), json!({ "rules": [] }));
    }

    #[test]
    fn owners_can_be_forgotten() {
        let given = json!({ "metadata": { "managedFields": [] } });
        check("v1", "Pod", given.clone(), given);
    }

    #[test]
    fn what_go_wrote_stays() {
        for (_, object) in super::super::tests::vectors() {
            let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
            check(&text("apiVersion"), &text("kind"), object.clone(), object);
        }
    }

    #[test]
    fn metadata_of_custom_kinds() {
        let mut metadata = json!({ "name": "a", "annotations": {}, "generation": 0, "namespace": "" });
        drop_empty_metadata(&mut metadata);
        assert_eq!(metadata, json!({ "name": "a" }));
    }
}
