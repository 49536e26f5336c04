//! The continue token of paginated lists: opaque to clients, plain JSON inside.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use apimachinery::error::ApiError;

/// Where the next page starts, and at which revision the list is read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Continuation {
    #[serde(rename = "v", default)]
    format: String,
    /// The revision of the first page; none for a list that goes on after its revision was compacted.
    #[serde(rename = "rv")]
    pub revision: Option<u64>,
    /// The last key that has been shown.
    #[serde(rename = "start", default)]
    pub after: String,
}

const FORMAT: &str = "longshore.io/v1";

impl Continuation {
    /// A token for the page behind this key.
    pub fn new(after: &str, revision: u64) -> Self {
        Self { format: FORMAT.to_owned(), revision: Some(revision), after: after.to_owned() }
    }

    /// A token for what is behind this key now, whatever the pages before it showed.
    pub fn inconsistent(after: &str) -> Self {
        Self { format: FORMAT.to_owned(), revision: None, after: after.to_owned() }
    }

    /// The text that clients send back.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).expect("a token of texts and numbers serialises"))
    }

    /// Reads what a client sent back.
    pub fn decode(token: &str) -> Result<Self, ApiError> {
        let invalid = |why: &str| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| invalid(&error.to_string()))?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|error| invalid(&error.to_string()))?;
        match (token.format == FORMAT, token.after.is_empty()) {
            (true, false) => Ok(token),
            (true, true) => Err(invalid("encoded start key empty")),
            (false, _) => {
                Err(invalid(&format!("server does not recognize this encoded version {}", token.format)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens_round_trip_and_others_are_refused() {
        let token = Continuation::new("default/a", 7);
        assert_eq!(Continuation::decode(&token.encode()), Ok(token));
        for text in ["", "x", "e30", "bm90IGpzb24"] {
            assert_eq!(Continuation::decode(text).unwrap_err().code, 400, "{text}");
        }
    }
}
