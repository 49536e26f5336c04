//! Review kinds, which are answered and never stored: SelfSubjectReview, SubjectAccessReview and its kin,
//! TokenReview.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::authn::Identity;
use crate::authz::{Action, Object, On, Rule};
use crate::call::{Call, Sent};
use crate::engine::Engine;
use crate::http::options::FieldValidation;
use crate::storage::text;
use crate::verbs::Answer;
use crate::verbs::draft::Draft;
use apimachinery::error::{ApiError, FieldError, Subject};

const ONE_OF: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
const NOT_BOTH: &str = "cannot be specified in combination with resourceAttributes";

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
        review["status"] = self.review_status(call, &review)?;
        review["metadata"] = match &*call.resource.kind {
            "SelfSubjectReview" => json!({ "creationTimestamp": self.timestamp() }),
            _ => json!({ "creationTimestamp": null }),
        };
        if &*call.resource.kind == "SelfSubjectRulesReview" {
            // As in Kubernetes, which answers without the question.
            review["spec"] = json!({});
        }
        Ok(Answer::document(StatusCode::CREATED, review))
    }

    fn review_status(&self, call: &Call, review: &Value) -> Result<Value, ApiError> {
        let spec = &review["spec"];
        match &*call.resource.kind {
            "SelfSubjectReview" => Ok(json!({ "userInfo": call.identity.user_info() })),
            "SelfSubjectAccessReview" => {
                check_question(call, spec)?;
                Ok(self.access_status(&call.identity, spec))
            }
            "SubjectAccessReview" | "LocalSubjectAccessReview" => {
                check_question(call, spec)?;
                Ok(self.access_status(&subject(spec), spec))
            }
            "SelfSubjectRulesReview" => self.rules_status(&call.identity, text(spec, "/namespace")),
            "TokenReview" => self.token_status(spec),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn access_status(&self, identity: &Identity, spec: &Value) -> Value {
        match self.rbac.decide(identity, &action(spec)) {
            None => json!({ "allowed": false }),
            Some(reason) if reason.is_empty() => json!({ "allowed": true }),
            Some(reason) => json!({ "allowed": true, "reason": reason }),
        }
    }

    fn rules_status(&self, identity: &Identity, namespace: &str) -> Result<Value, ApiError> {
        if namespace.is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let mut rules = self.rbac.rules_for(identity, namespace);
        if identity.is_administrator() && rules.is_empty() {
            rules.extend(Rule::everything());
        }
        let resources = rules.iter().filter(|rule| !rule.resources.is_empty());
        let urls = rules.iter().filter(|rule| !rule.non_resource_urls.is_empty());
        Ok(json!({
            "resourceRules": resources.collect::<Vec<_>>(),
            "nonResourceRules": urls.collect::<Vec<_>>(),
            "incomplete": false,
        }))
    }

    fn token_status(&self, spec: &Value) -> Result<Value, ApiError> {
        let token = text(spec, "/token");
        if token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        let mut audiences = texts(&spec["audiences"]);
        if audiences.is_empty() {
            audiences = self.authenticator.keys.audiences();
        }
        Ok(match self.authenticator.token_identity(token, &audiences) {
            Ok((identity, audiences)) => {
                json!({ "authenticated": true, "user": identity.user_info(), "audiences": audiences })
            }
            Err(error) => json!({ "user": {}, "error": error }),
        })
    }
}

/// The action that a review asks about.
fn action(spec: &Value) -> Action<'_> {
    if spec["resourceAttributes"].is_null() {
        let attributes = &spec["nonResourceAttributes"];
        return Action { verb: text(attributes, "/verb").into(), on: On::Path(text(attributes, "/path")) };
    }
    let attributes = &spec["resourceAttributes"];
    let object = Object {
        group: text(attributes, "/group"),
        resource: text(attributes, "/resource"),
        subresource: text(attributes, "/subresource"),
        namespace: text(attributes, "/namespace"),
        name: text(attributes, "/name"),
    };
    Action::on(text(attributes, "/verb"), object)
}

/// The user that a review asks about.
fn subject(spec: &Value) -> Identity {
    Identity {
        user: text(spec, "/user").to_owned(),
        uid: text(spec, "/uid").to_owned(),
        groups: texts(&spec["groups"]),
        extra: BTreeMap::deserialize(&spec["extra"]).unwrap_or_default(),
        ..Identity::default()
    }
}

fn texts(list: &Value) -> Vec<String> {
    let entries = list.as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A review has to name one resource or path, and a user or group.
fn check_question(call: &Call, spec: &Value) -> Result<(), ApiError> {
    let kind = &*call.resource.kind;
    let (object, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut errors = Vec::new();
    if !object.is_null() && !path.is_null() {
        errors.push(FieldError::invalid("spec.nonResourceAttributes", path.clone(), NOT_BOTH));
    }
    if object.is_null() && path.is_null() {
        errors.push(FieldError::invalid("spec.resourceAttributes", Value::Null, ONE_OF));
    }
    let is_own = kind == "SelfSubjectAccessReview";
    if !is_own && text(spec, "/user").is_empty() && texts(&spec["groups"]).is_empty() {
        errors.push(FieldError::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    if kind == "LocalSubjectAccessReview" {
        let asked = text(object, "/namespace");
        if !object.is_null() && asked != call.namespace.as_deref().unwrap_or_default() {
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, asked, "must match metadata.namespace"));
        }
        if !path.is_null() {
            let detail = "disallowed on this kind of request";
            errors.push(FieldError::invalid("spec.nonResourceAttributes", path.clone(), detail));
        }
    }
    // Kubernetes has forgotten the kind by the time it says so.
    let subject = Subject { group: &call.resource.group, resource: "", name: "" };
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(subject, &errors)) }
}
