//! Responses with a document: JSON or YAML, and the `Status` of a request that failed.

use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::Body;
use super::content::Language;
use apimachinery::error::ApiError;

/// A response with a JSON or YAML document.
pub(crate) fn document_response(document: &Value, language: Language) -> Response<Body> {
    match language {
        Language::Json => typed(Body::full(document.to_string()), "application/json"),
        Language::PrettyJson => {
            let text = serde_json::to_string_pretty(document).expect("JSON values always serialise");
            typed(Body::full(text + "\n"), "application/json")
        }
        Language::Yaml => match serde_saphyr::to_string(document) {
            Ok(text) => typed(Body::full(text), "application/yaml"),
            Err(error) => error_response(&ApiError::internal(format!("write YAML: {error}"))),
        },
    }
}

/// The response of a refused or failed request.
pub(crate) fn error_response(error: &ApiError) -> Response<Body> {
    let mut response = typed(Body::full(error.status().to_string()), "application/json");
    *response.status_mut() = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(seconds) = error.retry_after_seconds {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    response
}

/// A response with a body of this media type.
pub(crate) fn typed(body: Body, media_type: &'static str) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
