//! AdmissionReview requests and responses (`admission.k8s.io/v1`).

use base64::Engine as _;
use serde_json::{Value, json};

use crate::admission::matching::operation_name;
use crate::admission::{Operation, WriteAttributes};
use crate::storage::text;
use apimachinery::error::ApiError;
use apimachinery::gotext::quoted;

/// What a webhook that agrees says besides.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Response {
    pub patch: Option<Value>,
    pub warnings: Vec<String>,
}

/// Upper bound on the warnings of one webhook.
const WARNINGS_MAX: usize = 50;

/// The question about a write.
pub(super) fn admission_review(uid: &str, attributes: &WriteAttributes<'_>, object: &Value) -> Value {
    let mut request = request(attributes, object);
    let is_delete = attributes.operation == Operation::Delete;
    request["uid"] = uid.into();
    request["object"] = if is_delete { Value::Null } else { object.clone() };
    request["oldObject"] = attributes.old.cloned().unwrap_or_default();
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request })
}

/// The attributes of the request, without the objects themselves.
pub(in crate::admission) fn request(attributes: &WriteAttributes<'_>, object: &Value) -> Value {
    let resource = &attributes.call.resource;
    let kind = json!({ "group": resource.group, "version": resource.version, "kind": resource.kind });
    let plural = json!({ "group": resource.group, "version": resource.version, "resource": resource.plural });
    let mut request = json!({
        "kind": kind,
        "resource": plural,
        "requestKind": kind,
        "requestResource": plural,
        "operation": operation_name(attributes.operation),
        "userInfo": attributes.call.identity.user_info(),
        "dryRun": attributes.dry_run,
        "options": null,
    });
    let name = match attributes.call.name() {
        "" => text(object, "/metadata/name"),
        name => name,
    };
    let part = attributes.call.subresource();
    let namespace = attributes.call.namespace.as_deref().unwrap_or_default();
    let fields =
        [("name", name), ("namespace", namespace), ("subResource", part), ("requestSubResource", part)];
    for (key, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        request[key] = value.into();
    }
    request
}

/// Reads an answer: a refusal is an error of the request, an unreadable answer one of the webhook.
pub(super) fn parse_response(
    hook: &str,
    uid: &str,
    bytes: &[u8],
) -> Result<Result<Response, String>, ApiError> {
    let review: Value = match serde_json::from_slice(bytes) {
        Ok(review) => review,
        Err(error) => return Ok(Err(format!("the answer is no JSON: {error}"))),
    };
    let response = &review["response"];
    if review["kind"] != "AdmissionReview" || review["apiVersion"] != "admission.k8s.io/v1" {
        let described = format!("{}, Kind={}", text(&review, "/apiVersion"), text(&review, "/kind"));
        return Ok(Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {described}"
        )));
    }
    if response["uid"] != uid {
        return Ok(Err(format!(
            "expected response.uid={}, got {}",
            quoted(uid),
            quoted(text(response, "/uid"))
        )));
    }
    let warnings = response["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let warnings = warnings.iter().filter_map(Value::as_str).take(WARNINGS_MAX).map(str::to_owned).collect();
    if response["allowed"] != true {
        return Err(refusal(hook, &response["status"]));
    }
    if response["patch"].is_null() {
        return Ok(Ok(Response { patch: None, warnings }));
    }
    if response["patchType"] != "JSONPatch" {
        return Ok(Err("webhook returned response.patch but not response.patchType".to_owned()));
    }
    let patch = base64::engine::general_purpose::STANDARD.decode(text(response, "/patch"));
    let patch = patch.ok().and_then(|patch| serde_json::from_slice(&patch).ok());
    Ok(match patch {
        Some(patch) => Ok(Response { patch: Some(patch), warnings }),
        None => Err("the patch of the answer is no JSON".to_owned()),
    })
}

fn refusal(hook: &str, status: &Value) -> ApiError {
    let denied = format!("admission webhook {} denied the request", quoted(hook));
    let (message, reason) = (text(status, "/message"), text(status, "/reason"));
    let message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    const REASONS: [&str; 9] = [
        "Unauthorized",
        "Forbidden",
        "NotFound",
        "AlreadyExists",
        "Conflict",
        "Invalid",
        "BadRequest",
        "TooManyRequests",
        "InternalError",
    ];
    let reason = REASONS.into_iter().find(|one| *one == reason).unwrap_or_default();
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    let code = if (400..600).contains(&code) { code } else { 400 };
    ApiError {
        code,
        reason,
        message,
        details: status["details"].clone(),
        retry_after_seconds: None,
        continuation: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_kubernetes_reads_them() {
        let read = |response: Value| {
            let review = json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response });
            parse_response("h.io", "u", review.to_string().as_bytes())
        };
        let fine = Response { patch: None, warnings: vec!["w".to_owned()] };
        assert_eq!(read(json!({ "uid": "u", "allowed": true, "warnings": ["w"] })), Ok(Ok(fine)));
        let denied = "admission webhook \"h.io\" denied the request";
        let check = |status: Value, code: u16, message: &str| {
            let error =
                read(json!({ "uid": "u", "allowed": false, "status": status })).expect_err("a refusal");
            assert_eq!((error.code, error.message.as_str()), (code, message));
        };
        check(json!(null), 400, &format!("{denied} without explanation"));
        check(json!({ "message": "no", "code": 403 }), 403, &format!("{denied}: no"));
        check(json!({ "reason": "Forbidden", "code": 200 }), 400, &format!("{denied}: Forbidden"));
        assert!(matches!(read(json!({ "uid": "v", "allowed": true })), Ok(Err(_))), "another question");
        assert!(matches!(read(json!({ "uid": "u", "allowed": true, "patch": "e30=" })), Ok(Err(_))));
        assert!(matches!(parse_response("h", "u", b"no"), Ok(Err(_))));
    }
}
