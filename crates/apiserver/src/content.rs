//! The languages of bodies: what a client sends is read into JSON values, and what it accepts is found
//! out from its `Accept` header. Must not know what an object means.

use bytes::Bytes;
use http::HeaderMap;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

use crate::aside::aside;
use crate::error::ApiError;
use crate::gotext::quoted;
use crate::schema;

/// The largest request body, as in kube-apiserver.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Reading a body that is larger than this keeps others waiting.
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
            crate::protobuf::decode(body).map_err(|error| ApiError::bad_request(error.to_string()))
        }
        _ => Err(ApiError::unsupported_media_type(String::from(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ))),
    }
}

/// Reads JSON. Nesting is bounded by the parser (128 levels).
pub fn decode_json(body: &[u8]) -> Result<Value, ApiError> {
    let read = || serde_json::from_slice(body);
    let read = if body.len() > LARGE_BYTES { aside(read) } else { read() };
    read.map_err(|error| {
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}

/// Whether a media type says that a body is YAML.
pub fn is_yaml(media_type: &str) -> bool {
    matches!(media_type, "application/yaml" | "application/x-yaml" | "text/yaml")
}

/// How much of a YAML document may come from aliases, in scalars and brackets.
const ALIASED_MAX: usize = 50_000;

/// Reads one YAML document; apply patches are sent this way.
pub fn decode_yaml(body: &[u8]) -> Result<Value, ApiError> {
    // JSON is YAML, and kubectl sends JSON under the YAML media type: take the fast and exact path.
    if body.first() == Some(&b'{')
        && let Ok(value) = serde_json::from_slice(body)
    {
        return Ok(value);
    }
    let text = std::str::from_utf8(body).map_err(|error| ApiError::bad_request(format!("yaml: {error}")))?;
    aside(|| serde_saphyr::from_str_with_options(text, yaml_options(DuplicateKeyPolicy::LastWins)))
        .map_err(|error| ApiError::bad_request(format!("yaml: {error}")))
}

/// What `fieldValidation` has to say about a YAML document that says something twice: the first key that it says again.
pub fn repeated_key(body: &[u8]) -> Option<String> {
    let is_json = body.first() == Some(&b'{') && serde_json::from_slice::<IgnoredAny>(body).is_ok();
    if is_json && schema::duplicate_fields(body).is_empty() {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    let read = || serde_saphyr::from_str_with_options::<Value>(text, yaml_options(DuplicateKeyPolicy::Error));
    match aside(read) {
        Err(serde_saphyr::Error::DuplicateMappingKey { key, location }) => {
            let key = quoted(&key.unwrap_or_default());
            Some(format!("line {}: key {key} already set in map", location.line()))
        }
        _ => None,
    }
}

/// Aliases may say a thing again, but not so often that a small text becomes the work of seconds. What is wrong is told
/// without a quote, because it may be secret.
fn yaml_options(duplicate_keys: DuplicateKeyPolicy) -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_recorded_anchor_events: ALIASED_MAX },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED_MAX },
    }
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
