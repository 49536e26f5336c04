//! Checks the ConversionReview response of a conversion webhook: everything is taken but metadata, of which only
//! labels and annotations may change. Must not know how the webhook was called.

use serde_json::{Map, Value};

use crate::storage::text;
use apimachinery::error::FieldError;
use apimachinery::gotext::quoted;
use apimachinery::metadata;

/// The objects in an answer, or why there are none.
pub(super) fn objects(bytes: &[u8], review: &str, uid: &str) -> Result<Vec<Value>, String> {
    let mut answer: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let (version, kind) = (text(&answer, "/apiVersion"), text(&answer, "/kind"));
    if version != review || kind != "ConversionReview" {
        return Err(format!(
            "expected webhook response of {review}, Kind=ConversionReview, got {version}, Kind={kind}"
        ));
    }
    let Some(response) = answer.get_mut("response").filter(|response| response.is_object()) else {
        return Err("no response provided".to_owned());
    };
    let answered = text(response, "/uid");
    if answered != uid {
        return Err(format!("expected response.uid={}, got {}", quoted(uid), quoted(answered)));
    }
    match (text(response, "/result/status"), text(response, "/result/message")) {
        ("Success", _) => {}
        (status, "") => return Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => return Err(message.to_owned()),
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// A converted object with the metadata of the original, or what is wrong with it.
pub(super) fn restored(original: &Value, mut converted: Value, wanted: &str) -> Result<Value, String> {
    let version = text(&converted, "/apiVersion");
    if version != wanted {
        return Err(format!(
            "object at index 0: invalid groupVersion (expected {wanted}, received {version})"
        ));
    }
    let (expected, kind) = (text(original, "/kind"), text(&converted, "/kind"));
    if kind != expected {
        return Err(format!("object at index 0: invalid kind (expected {expected}, received {kind})"));
    }
    for (field, name) in
        [("/metadata/name", "name"), ("/metadata/namespace", "namespace"), ("/metadata/uid", "UID")]
    {
        let (expected, got) = (text(original, field), text(&converted, field));
        if expected != got {
            return Err(format!("object: must have the same {name}: {expected} != {got}"));
        }
    }
    let metadata =
        restored_metadata(original, &converted["metadata"]).map_err(|why| format!("metadata: {why}"))?;
    converted["metadata"] = metadata;
    Ok(converted)
}

fn restored_metadata(original: &Value, answered: &Value) -> Result<Value, String> {
    if !answered.is_object() {
        return Err("missing metadata in converted object".to_owned());
    }
    let mut metadata = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match answered.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(texts)) => {
                check_texts(field, answered, texts, metadata.get(field))?;
                metadata.insert(field.to_owned(), Value::Object(texts.clone()));
            }
            Some(_) => return Err(format!("invalid metadata.{field} in converted object")),
        }
    }
    Ok(Value::Object(metadata))
}

/// Labels and annotations that the webhook changed are checked as if a client had written them.
fn check_texts(
    field: &str,
    answered: &Value,
    texts: &Map<String, Value>,
    before: Option<&Value>,
) -> Result<(), String> {
    if let Some((key, _)) = texts.iter().find(|(_, value)| !value.is_string()) {
        return Err(format!("metadata.{field}[{key}] must be a string in converted object"));
    }
    if before.and_then(Value::as_object) == Some(texts) {
        return Ok(());
    }
    let errors = match field {
        "labels" => metadata::labels(answered, "metadata"),
        _ => metadata::annotations(answered, "metadata"),
    };
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.to_string()),
        many => Err(format!("[{}]", many.iter().map(FieldError::to_string).collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_read_as_kubernetes_reads_them() {
        let read = |response: Value| {
            let review = json!({ "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response });
            objects(review.to_string().as_bytes(), "apiextensions.k8s.io/v1", "u")
        };
        let fine = json!({ "uid": "u", "result": { "status": "Success" }, "convertedObjects": [{ "a": 1 }] });
        assert_eq!(read(fine), Ok(vec![json!({ "a": 1 })]));
        let check = |response: Value, why: &str| assert_eq!(read(response), Err(why.to_owned()));
        check(json!(null), "no response provided");
        check(json!({ "uid": "v" }), "expected response.uid=\"u\", got \"v\"");
        check(json!({ "uid": "u" }), "response.result.status was '', not 'Success'");
        let refused = json!({ "uid": "u", "result": { "status": "Failure", "message": "cannot" } });
        check(refused, "cannot");
    }

    #[test]
    fn metadata_stays_but_for_labels_and_annotations() {
        let original = json!({
            "apiVersion": "ex.com/v1", "kind": "Thing",
            "metadata": { "name": "a", "uid": "u", "finalizers": ["x/y"], "labels": { "a": "b" } },
        });
        let with = |change: fn(&mut Value)| {
            let mut converted = original.clone();
            converted["apiVersion"] = "ex.com/v2".into();
            change(&mut converted);
            restored(&original, converted, "ex.com/v2")
        };
        let kept = with(|object| {
            object["metadata"]["finalizers"] = json!([]);
            object["metadata"]["annotations"] = json!({ "c": "d" });
            object["metadata"]["labels"] = Value::Null;
        });
        let metadata = json!({ "name": "a", "uid": "u", "finalizers": ["x/y"], "annotations": { "c": "d" } });
        assert_eq!(kept.map(|object| object["metadata"].clone()), Ok(metadata));
        let check = |change: fn(&mut Value), why: &str| assert_eq!(with(change), Err(why.to_owned()));
        check(
            |object| object["apiVersion"] = "ex.com/v3".into(),
            "object at index 0: invalid groupVersion (expected ex.com/v2, received ex.com/v3)",
        );
        check(
            |object| object["kind"] = "Other".into(),
            "object at index 0: invalid kind (expected Thing, received Other)",
        );
        check(|object| object["metadata"]["name"] = "b".into(), "object: must have the same name: a != b");
        check(|object| object["metadata"]["uid"] = "v".into(), "object: must have the same UID: u != v");
        let wrong = with(|object| object["metadata"]["labels"] = json!({ "a b": "c" }));
        assert!(wrong.is_err_and(|why| why.starts_with("metadata: metadata.labels: Invalid value: \"a b\"")));
    }
}
