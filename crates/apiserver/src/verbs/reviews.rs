//! Kinds that are only answered, never kept: who am I, may I. Here everybody who got in is an
//! administrator, so every answer is yes.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::error::ApiError;
use crate::options::FieldValidation;
use crate::verbs::draft::Draft;
use crate::verbs::{Answer, Call, Sent};

impl Engine {
    /// Answers a review.
    pub fn review(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        if call.name.is_some() {
            return Err(ApiError::no_such_path());
        }
        if sent.method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let draft = Draft::read(call, sent, FieldValidation::Ignore)?;
        let mut review = draft.object;
        review["status"] = review_status(call)?;
        review["metadata"] = json!({ "creationTimestamp": null });
        Ok(Answer::document(StatusCode::CREATED, review))
    }
}

fn review_status(call: &Call) -> Result<Value, ApiError> {
    let identity = &call.identity;
    match &*call.resource.kind {
        "SelfSubjectReview" => {
            Ok(json!({ "userInfo": { "username": identity.user, "groups": identity.groups } }))
        }
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            Ok(json!({ "allowed": true, "reason": "administrators may do everything" }))
        }
        "SelfSubjectRulesReview" => Ok(json!({
            "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            "incomplete": false,
        })),
        "TokenReview" => Ok(json!({ "authenticated": false, "error": "no tokens are issued here" })),
        _ => Err(ApiError::method_not_allowed()),
    }
}
