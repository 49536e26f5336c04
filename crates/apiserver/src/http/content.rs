//! Content negotiation: decodes request bodies (JSON, YAML, protobuf) into JSON values, and picks the response format
//! from the `Accept` header. Must not know what an object means.

use apimachinery::error::ApiError;
use bytes::Bytes;
use http::HeaderMap;
use schema::decode;
pub use schema::decode::is_yaml;
use serde_json::Value;

use crate::run_blocking::run_blocking;

/// The largest request body, as in kube-apiserver.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A body larger than this is decoded with `run_blocking`.
const LARGE_BYTES: usize = 32 * 1024;

/// What shape of answer the client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The object itself.
    Object,
    /// A `Table`, what `kubectl get` prints.
    Table,
    /// A `PartialObjectMetadata` or its list.
    Metadata,
}

/// The language of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// JSON on one line.
    Json,
    /// JSON for people (`pretty=true`).
    PrettyJson,
    /// YAML.
    Yaml,
}

/// What the client accepts, the first choice we can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Language of the answer.
    pub language: Language,
    /// Shape of the answer.
    pub shape: Shape,
    /// Whether the object itself would do, whatever shape is liked best.
    pub plain: bool,
    /// Whether the body may be gzipped.
    pub gzip: bool,
}

impl Accepted {
    /// Reads `Accept` and `Accept-Encoding`.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, ApiError> {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let gzip = text(http::header::ACCEPT_ENCODING).is_some_and(|value| value.contains("gzip"));
        let accept = text(http::header::ACCEPT).unwrap_or("*/*");
        let choices: Vec<_> = accept.split(',').filter_map(media_choice).collect();
        let plain = choices.iter().any(|(_, shape)| *shape == Shape::Object);
        let (language, shape) = choices
            .into_iter()
            .next()
            .ok_or_else(|| ApiError::not_acceptable("application/json, application/yaml"))?;
        Ok(Self { language, shape, plain, gzip })
    }
}

/// One entry of an `Accept` header, if it is one we can serve.
fn media_choice(entry: &str) -> Option<(Language, Shape)> {
    let mut parts = entry.split(';').map(str::trim);
    let language = match parts.next()?.to_ascii_lowercase().as_str() {
        "" | "*/*" | "application/*" | "application/json" => Language::Json,
        "application/yaml" => Language::Yaml,
        _ => return None,
    };
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let parameter = |key: &str| parameters.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let shape = match (parameter("as"), parameter("g")) {
        (None, _) => Shape::Object,
        (Some("Table"), Some("meta.k8s.io")) if parameter("v") == Some("v1") => Shape::Table,
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io"))
            if parameter("v") == Some("v1") =>
        {
            Shape::Metadata
        }
        _ => return None,
    };
    Some((language, shape))
}

/// The media type of a request body without its parameters.
pub fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let whole = value.unwrap_or("");
    match whole.split(';').next().unwrap_or("").trim() {
        // Parameters of nothing are no media type at all.
        "" => whole,
        media_type => media_type,
    }
}

/// Reads an object that was sent as JSON, YAML or protobuf.
pub fn decode_object(media_type: &str, body: &Bytes) -> Result<Value, ApiError> {
    match media_type {
        // What kube-apiserver assumes when nothing is said.
        "" | "application/json" | "*/*" => decode_json(body),
        media_type if is_yaml(media_type) => decode_yaml(body),
        "application/vnd.kubernetes.protobuf" => {
            schema::protobuf::decode(body).map_err(|error| ApiError::bad_request(error.to_string()))
        }
        _ => Err(ApiError::unsupported_media_type(String::from(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ))),
    }
}

/// Decodes JSON, on a blocking thread where the body is large.
pub fn decode_json(body: &[u8]) -> Result<Value, ApiError> {
    if body.len() > LARGE_BYTES { run_blocking(|| decode::json(body)) } else { decode::json(body) }
}

/// Decodes one YAML document on a blocking thread, unless it is JSON.
pub fn decode_yaml(body: &[u8]) -> Result<Value, ApiError> {
    decode::json_sent_as_yaml(body).map_or_else(|| run_blocking(|| decode::yaml(body)), Ok)
}

/// The first key that a YAML document sets twice, in the words of `fieldValidation`.
pub fn repeated_key(body: &[u8]) -> Option<String> {
    run_blocking(|| decode::repeated_key(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(accept: &str) -> Result<(Language, Shape), u16> {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::ACCEPT, accept.parse().unwrap());
        Accepted::from_headers(&headers)
            .map(|found| (found.language, found.shape))
            .map_err(|error| error.code)
    }

    #[test]
    fn the_first_choice_that_is_served_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accepted(table), Ok((Language::Json, Shape::Table)));
        let partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                       application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(accepted(partial), Ok((Language::Json, Shape::Metadata)));
        assert_eq!(accepted("application/vnd.kubernetes.protobuf, */*"), Ok((Language::Json, Shape::Object)));
        assert_eq!(accepted("application/yaml"), Ok((Language::Yaml, Shape::Object)));
        assert_eq!(accepted("text/html"), Err(406));
    }
}
