//! The languages of bodies: what a client sends is read into JSON values, and what it accepts is found
//! out from its `Accept` header. Must not know what an object means.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use crate::error::ApiError;

/// The largest request body, as in kube-apiserver.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

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
    /// Whether the body may be gzipped.
    pub gzip: bool,
}

impl Accepted {
    /// Reads `Accept` and `Accept-Encoding`.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, ApiError> {
        let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
        let gzip = text(http::header::ACCEPT_ENCODING).is_some_and(|value| value.contains("gzip"));
        let accept = text(http::header::ACCEPT).unwrap_or("*/*");
        let choices = accept.split(',').filter_map(media_choice);
        let (language, shape) = choices
            .into_iter()
            .next()
            .ok_or_else(|| ApiError::not_acceptable("application/json, application/yaml"))?;
        Ok(Self { language, shape, gzip })
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
        "application/yaml" | "application/x-yaml" | "text/yaml" => decode_yaml(body),
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
    serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}

/// Reads one YAML document; apply patches are sent this way.
pub fn decode_yaml(body: &[u8]) -> Result<Value, ApiError> {
    // JSON is YAML, and kubectl sends JSON under the YAML media type: take the fast and exact path.
    if body.first() == Some(&b'{')
        && let Ok(value) = serde_json::from_slice(body)
    {
        return Ok(value);
    }
    let text = std::str::from_utf8(body).map_err(|error| ApiError::bad_request(format!("yaml: {error}")))?;
    serde_saphyr::from_str(text).map_err(|error| ApiError::bad_request(format!("yaml: {error}")))
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
