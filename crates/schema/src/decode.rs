//! Decodes request bodies that are JSON or YAML into values. Knows no kinds; [`crate::protobuf`] decodes the third format.

use apimachinery::error::ApiError;
use apimachinery::gotext::quoted;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

use crate::structural::duplicate_fields;

/// How many scalars and brackets of a YAML document may come from aliases.
const ALIASED_EVENTS_MAX: usize = 50_000;

/// Decodes JSON. The parser bounds the nesting (128 levels).
pub fn json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}

/// Whether a media type says that a body is YAML.
pub fn is_yaml(media_type: &str) -> bool {
    matches!(media_type, "application/yaml" | "application/x-yaml" | "text/yaml")
}

/// A body of a YAML media type that is JSON, as kubectl sends it: decoded fast and exactly.
pub fn json_sent_as_yaml(body: &[u8]) -> Option<Value> {
    (body.first() == Some(&b'{')).then(|| serde_json::from_slice(body).ok()).flatten()
}

/// Decodes one YAML document; apply patches are sent this way.
pub fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    if let Some(value) = json_sent_as_yaml(body) {
        return Ok(value);
    }
    let text = std::str::from_utf8(body).map_err(|error| ApiError::bad_request(format!("yaml: {error}")))?;
    serde_saphyr::from_str_with_options(text, yaml_options(DuplicateKeyPolicy::LastWins))
        .map_err(|error| ApiError::bad_request(format!("yaml: {error}")))
}

/// The first key that a YAML document sets twice, in the words of `fieldValidation`.
pub fn repeated_key(body: &[u8]) -> Option<String> {
    let is_json = body.first() == Some(&b'{') && serde_json::from_slice::<IgnoredAny>(body).is_ok();
    if is_json && duplicate_fields(body).is_empty() {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    let options = yaml_options(DuplicateKeyPolicy::Error);
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Err(serde_saphyr::Error::DuplicateMappingKey { key, location }) => {
            let key = quoted(&key.unwrap_or_default());
            Some(format!("line {}: key {key} already set in map", location.line()))
        }
        _ => None,
    }
}

/// Bounds what aliases may repeat, so that a small document does not cost seconds. Errors do not quote the document,
/// because it may hold secrets.
fn yaml_options(duplicate_keys: DuplicateKeyPolicy) -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_recorded_anchor_events: ALIASED_EVENTS_MAX },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED_EVENTS_MAX },
    }
}
