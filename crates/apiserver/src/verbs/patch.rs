//! PATCH in its four kinds: JSON patch, merge patch, strategic merge patch and server-side apply.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::content;
use crate::engine::{Engine, text};
use crate::error::{ApiError, FieldError, Subject};
use crate::options::WriteOptions;
use crate::patch;
use crate::verbs::draft::Draft;
use crate::verbs::{Answer, Call};

impl Engine {
    /// Changes the object as the patch in the body says.
    pub async fn patch(&self, headers: &HeaderMap, body: &Bytes, call: &Call) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&call.query, &call.user_agent)?;
        let media_type = content::media_type(headers);
        let _definitions = self.definition_lock(call).await;
        if media_type == "application/apply-patch+yaml" {
            return self.apply(body, call, &options).await;
        }
        if options.force {
            let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
            let subject = Subject { group: "meta.k8s.io", resource: "PatchOptions", name: "" };
            return Err(ApiError::invalid(subject, &[error]));
        }
        let patch = content::decode_json(body)?;
        let patched = |old: &Value| apply_patch(media_type, call, old, &patch);
        self.change(call, &options, |old| Draft::from_value(call, patched(old)?, options.field_validation))
            .await
    }

    async fn apply(&self, body: &Bytes, call: &Call, options: &WriteOptions) -> Result<Answer, ApiError> {
        if !options.manager_given {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            let subject = Subject { group: "meta.k8s.io", resource: "PatchOptions", name: "" };
            return Err(ApiError::invalid(subject, &[error]));
        }
        let draft = Draft::applied(call, content::decode_yaml(body)?, options.field_validation)?;
        check_applied(call, &draft.object)?;
        let exists = self.store.get(&call.resource.table, &call.key()).is_some();
        if !exists && call.subresource.is_none() {
            let answer = self.create_draft(call, options, draft.clone()).await;
            // Somebody else was faster: then this is a change of what they made.
            match answer {
                Err(error) if error.reason == "AlreadyExists" => {}
                answer => return answer,
            }
        }
        let answer = self.change(call, options, |_| Ok(draft.clone())).await?;
        Ok(Answer { status: StatusCode::OK, ..answer })
    }
}

fn apply_patch(media_type: &str, call: &Call, old: &Value, body: &Value) -> Result<Value, ApiError> {
    match media_type {
        "application/json-patch+json" => patch::json_patch(old, body),
        "application/merge-patch+json" => patch::merge_patch(old, body),
        "application/strategic-merge-patch+json" if call.resource.custom.is_none() => {
            patch::strategic_merge(old, body, &call.resource.schema)
        }
        other => {
            let accepted = match call.resource.custom {
                None => {
                    "application/json-patch+json, application/merge-patch+json, \
                     application/strategic-merge-patch+json, application/apply-patch+yaml"
                }
                Some(_) => {
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                }
            };
            Err(ApiError::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 {accepted} (got {other:?})"
            )))
        }
    }
}

/// What an applied configuration has to say about itself.
fn check_applied(call: &Call, applied: &Value) -> Result<(), ApiError> {
    let name = text(applied, "/metadata/name");
    if !name.is_empty() && name != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    match applied["metadata"].get("managedFields") {
        Some(fields) if !fields.is_null() => Err(ApiError::bad_request("metadata.managedFields must be nil")),
        _ => Ok(()),
    }
}
