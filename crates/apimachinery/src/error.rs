//! API errors as `metav1.Status`: code, reason, details and message. Must not know which handler they came from.

use serde_json::{Map, Value, json};

use crate::gotext::quoted;

mod field;
pub use field::{FieldError, FieldErrorKind};

/// A failed request, ready to be sent as a `metav1.Status`.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    /// HTTP status code, repeated in the body.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`.
    pub reason: &'static str,
    /// The sentence that users see.
    pub message: String,
    /// `details` of the Status, null where Kubernetes sends none.
    pub details: Value,
    /// Seconds for the `Retry-After` header, where there is one.
    pub retry_after_seconds: Option<u32>,
    /// How a list that cannot go on as it began can go on nevertheless.
    pub continuation: Option<String>,
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// The resource a Status talks about: `deployments.apps "nginx"`.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural resource name in most errors, Kind in `Invalid` ones.
    pub resource: &'a str,
    /// Object name, may be empty.
    pub name: &'a str,
}

impl Subject<'_> {
    fn qualified(&self) -> String {
        match self.group {
            "" => self.resource.to_owned(),
            group => format!("{}.{group}", self.resource),
        }
    }

    fn details(&self) -> Value {
        let mut details = Map::new();
        for (key, text) in [("name", self.name), ("group", self.group), ("kind", self.resource)] {
            if !text.is_empty() {
                details.insert(key.to_owned(), text.into());
            }
        }
        Value::Object(details)
    }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            retry_after_seconds: None,
            continuation: None,
        }
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: the request could not be authenticated.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: known, and not allowed.
    pub fn forbidden(subject: Subject<'_>, why: impl std::fmt::Display) -> Self {
        let message = match (subject.resource, subject.name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", subject.qualified()),
            (_, name) => format!("{} {} is forbidden: {why}", subject.qualified(), quoted(name)),
        };
        Self { details: subject.details(), ..Self::new(403, "Forbidden", message) }
    }

    /// 404: no such object.
    pub fn not_found(subject: Subject<'_>) -> Self {
        let message = format!("{} {} not found", subject.qualified(), quoted(subject.name));
        Self { details: subject.details(), ..Self::new(404, "NotFound", message) }
    }

    /// 404: no such path; what kube-apiserver answers where no resource is served.
    pub fn no_such_path() -> Self {
        let error = Self::new(404, "NotFound", "the server could not find the requested resource");
        Self { details: json!({}), ..error }
    }

    /// 405: the resource exists and does not do this.
    pub fn method_not_allowed() -> Self {
        let error = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        Self { details: json!({}), ..error }
    }

    /// 406: none of the accepted media types is served.
    pub fn not_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(406, "NotAcceptable", message)
    }

    /// 409: create of something that is there.
    pub fn already_exists(subject: Subject<'_>) -> Self {
        let message = format!("{} {} already exists", subject.qualified(), quoted(subject.name));
        Self { details: subject.details(), ..Self::new(409, "AlreadyExists", message) }
    }

    /// 409: the object moved on, or another precondition failed.
    pub fn conflict(subject: Subject<'_>, why: impl std::fmt::Display) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            subject.qualified(),
            quoted(subject.name)
        );
        Self { details: subject.details(), ..Self::new(409, "Conflict", message) }
    }

    /// 409: server-side apply met fields that others own. `causes` are Status causes.
    pub fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        Self { details: json!({ "causes": causes }), ..Self::new(409, "Conflict", message) }
    }

    /// 410: the revision is too old to be read.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: more bytes than a request may have.
    pub fn too_large(limit_bytes: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit_bytes}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: the server does not support the media type of the body.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 422: understood and refused, with a cause per field. `subject.resource` is the Kind here.
    pub fn invalid(subject: Subject<'_>, errors: &[FieldError]) -> Self {
        let texts: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        let list = match texts.as_slice() {
            [] => String::from("<nil>"),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {} is invalid: {list}", subject.qualified(), quoted(subject.name));
        let mut details = subject.details();
        details["causes"] = errors.iter().map(FieldError::cause).collect();
        Self { details, ..Self::new(422, "Invalid", message) }
    }

    /// 422: refused without a field to point at.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message)
    }

    /// 429: come back later.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let error = Self::new(429, "TooManyRequests", message);
        Self {
            details: json!({ "retryAfterSeconds": retry_after_seconds }),
            retry_after_seconds: Some(retry_after_seconds),
            ..error
        }
    }

    /// 500: our fault.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        let error = Self::new(500, "InternalError", format!("Internal error occurred: {cause}"));
        Self { details: json!({ "causes": [{ "message": cause.to_string() }] }), ..error }
    }

    /// 507: there is no room for more objects.
    pub fn insufficient_storage(message: impl Into<String>) -> Self {
        Self::new(507, "InsufficientStorage", message)
    }

    /// 503: not now, perhaps not here.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 504: a wait that the server gave up.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    /// The body to send: a `metav1.Status`.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        // Some failures of server-side apply have no reason in Kubernetes either.
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        if let Some(continuation) = &self.continuation {
            status["metadata"]["continue"] = continuation.as_str().into();
        }
        status
    }
}
