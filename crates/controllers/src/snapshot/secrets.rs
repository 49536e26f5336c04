//! Redacts Secrets: the values are replaced so that equality can still be compared and nothing else can be learnt.

use decide::template::digest;
use serde_json::Value;

/// Where kubectl writes a copy of what was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// True for a Secret.
pub fn is_secret(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"] == "Secret"
}

/// Puts a digest in the place of each value.
pub fn hide_values(secret: &mut Value) {
    for field in ["data", "stringData"] {
        let values = secret.get_mut(field).and_then(Value::as_object_mut);
        values.into_iter().flatten().for_each(|(_, value)| hide(value));
    }
    let copy = secret.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(LAST_APPLIED));
    copy.into_iter().for_each(hide);
}

fn hide(value: &mut Value) {
    *value = digest(value).into();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(password: &str) -> Value {
        let applied = format!("{{\"stringData\":{{\"password\":\"{password}\"}}}}");
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "s", "annotations": { LAST_APPLIED: applied, "note": "kept" } },
            "data": { "password": password }, "stringData": { "password": password },
        })
    }

    #[test]
    fn values_are_gone_and_still_told_apart() {
        let (mut one, mut same, mut other) = (secret("hunter2"), secret("hunter2"), secret("hunter3"));
        [&mut one, &mut same, &mut other].into_iter().for_each(hide_values);
        assert_eq!(one, same);
        assert_ne!(one["data"], other["data"]);
        assert_eq!(one["metadata"]["annotations"]["note"], "kept");
        assert!(!one.to_string().contains("hunter"), "{one}");
    }
}
