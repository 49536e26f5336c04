//! POST on `serviceaccounts/token`: makes a token for an account that exists.

use http::StatusCode;
use jiff::ToSpan as _;
use serde_json::{Value, json};

use crate::authn::account_user;
use crate::call::{Call, Sent};
use crate::engine::Engine;
use crate::http::content;
use crate::storage::{stored, text};
use crate::verbs::Answer;
use apimachinery::error::{ApiError, FieldError, Subject};

const HOUR_SECONDS: i64 = 3_600;
/// The longest life of a token, as long as kube-apiserver takes.
const SECONDS_MAX: i64 = 1 << 32;

impl Engine {
    /// Makes a token for the service account that the path names.
    pub fn request_token(&self, sent: &Sent, call: &Call) -> Result<Answer, ApiError> {
        let mut request = match sent.body.is_empty() {
            true => json!({}),
            false => content::decode_object(&sent.media_type, &sent.body)?,
        };
        if !request.is_object() {
            return Err(ApiError::bad_request("the body is no TokenRequest"));
        }
        let account = stored::parse(&self.read(&call.resource, &call.key(), call.name())?.value);
        check_named(&request, &account)?;
        let asked_seconds = lifetime(&request)?;
        let seconds = asked_seconds.min(self.token_seconds_max.unwrap_or(SECONDS_MAX));
        let audiences = audiences(&request).unwrap_or_else(|| self.authenticator.keys.audiences());
        let now = (self.now)();
        let mut claims = json!({
            "aud": audiences,
            "exp": now.as_second() + seconds,
            "iat": now.as_second(),
            "nbf": now.as_second(),
            "jti": self.uid(),
            "sub": account_user(text(&account, "/metadata/namespace"), text(&account, "/metadata/name")),
            "kubernetes.io": {
                "namespace": account["metadata"]["namespace"],
                "serviceaccount": reference(&account),
            },
        });
        if let Some((kind, object)) = self.bound_object(&request, &account)? {
            claims["kubernetes.io"][kind] = reference(&object);
        }
        let token = self.authenticator.keys.sign(claims).map_err(ApiError::internal)?;
        let end = now.checked_add(seconds.seconds()).map_err(ApiError::internal)?;
        request["kind"] = "TokenRequest".into();
        request["apiVersion"] = "authentication.k8s.io/v1".into();
        request["metadata"] = json!({
            "name": account["metadata"]["name"], "namespace": account["metadata"]["namespace"],
            "uid": account["metadata"]["uid"], "creationTimestamp": self.timestamp(),
        });
        request["spec"]["audiences"] = json!(audiences);
        request["spec"]["expirationSeconds"] = seconds.into();
        let expires = end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        request["status"] = json!({ "token": token, "expirationTimestamp": expires });
        // In kube-apiserver's words.
        let shortened = (seconds < asked_seconds).then(|| {
            format!("requested expiration of {asked_seconds} seconds shortened to {seconds} seconds")
        });
        Ok(Answer::document(StatusCode::CREATED, request).with_warnings(shortened.into_iter().collect()))
    }

    /// The object that the token is to be bound to besides its account.
    fn bound_object(
        &self,
        request: &Value,
        account: &Value,
    ) -> Result<Option<(&'static str, Value)>, ApiError> {
        let wanted = &request["spec"]["boundObjectRef"];
        if wanted.is_null() {
            return Ok(None);
        }
        let (api_version, kind, name) =
            (text(wanted, "/apiVersion"), text(wanted, "/kind"), text(wanted, "/name"));
        let (claim, resource) = match (api_version, kind) {
            ("v1", "Pod") => ("pod", "pods"),
            ("v1", "Secret") => ("secret", "secrets"),
            ("v1", "Node") => ("node", "nodes"),
            _ => {
                let message = match api_version.contains('/') {
                    true => format!("cannot bind token to object of type {api_version}, Kind={kind}"),
                    false => format!("cannot bind token to object of type /{api_version}, Kind={kind}"),
                };
                return Err(ApiError::bad_request(message));
            }
        };
        let found = self.resource("", "v1", resource)?;
        let key = found.key(Some(text(account, "/metadata/namespace")), name);
        let object = stored::parse(&self.read(&found, &key, name)?.value);
        let owner = text(account, "/metadata/name");
        if claim == "pod" && text(&object, "/spec/serviceAccountName") != owner {
            return Err(ApiError::bad_request(format!(
                "cannot bind token for serviceaccount {owner:?} to pod running with different serviceaccount name."
            )));
        }
        let uid = text(wanted, "/uid");
        if !uid.is_empty() && uid != text(&object, "/metadata/uid") {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            );
            return Err(ApiError::conflict(Subject { group: "", resource: kind, name }, why));
        }
        Ok(Some((claim, object)))
    }
}

fn reference(object: &Value) -> Value {
    json!({ "name": object["metadata"]["name"], "uid": object["metadata"]["uid"] })
}

fn audiences(request: &Value) -> Option<Vec<String>> {
    let named = request["spec"]["audiences"].as_array()?;
    let named: Vec<String> = named.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    (!named.is_empty()).then_some(named)
}

/// What the body says of the account has to be true of it.
fn check_named(request: &Value, account: &Value) -> Result<(), ApiError> {
    let name = text(account, "/metadata/name");
    let kind = Subject { group: "authentication.k8s.io", resource: "TokenRequest", name };
    let differs = |pointer: &str| {
        let said = text(request, pointer);
        (!said.is_empty() && said != text(account, pointer)).then(|| said.to_owned())
    };
    for (pointer, field, word) in [
        ("/metadata/name", "metadata.name", "name"),
        ("/metadata/namespace", "metadata.namespace", "namespace"),
    ] {
        if let Some(said) = differs(pointer) {
            let detail = format!("must match the service account {word} if specified");
            return Err(ApiError::invalid(kind, &[FieldError::invalid(field, said, detail)]));
        }
    }
    match differs("/metadata/uid") {
        None => Ok(()),
        Some(said) => {
            let why = format!(
                "the UID in the token request ({said}) does not match the UID of the service account ({})",
                text(account, "/metadata/uid")
            );
            Err(ApiError::conflict(kind, why))
        }
    }
}

/// How long the token is to live, in seconds.
fn lifetime(request: &Value) -> Result<i64, ApiError> {
    const FIELD: &str = "spec.expirationSeconds";
    let seconds = match &request["spec"]["expirationSeconds"] {
        Value::Null => HOUR_SECONDS,
        value => {
            value.as_i64().ok_or_else(|| ApiError::bad_request(format!("{FIELD} is no whole number")))?
        }
    };
    let wrong = match seconds {
        ..600 => "may not specify a duration less than 10 minutes",
        _ if seconds > SECONDS_MAX => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(seconds),
    };
    let kind = Subject { group: "authentication.k8s.io", resource: "TokenRequest", name: "" };
    Err(ApiError::invalid(kind, &[FieldError::invalid(FIELD, seconds, wrong)]))
}
