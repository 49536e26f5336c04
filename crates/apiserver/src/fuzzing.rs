//! Entry points for fuzz targets and property tests of other crates: the functions that read what clients send and
//! that are private otherwise. Holds no behaviour of its own.

use apimachinery::error::ApiError;
use serde_json::Value;

use crate::authn::TokenKeys;
pub use crate::http::options::{DeleteOptions, WriteKind, WriteOptions, check_list_options};
pub use crate::http::{Query, ResourcePath, Target};

/// The user that a token of a service account names, if these keys signed it.
pub fn token_subject(keys: &TokenKeys, token: &str) -> Result<String, String> {
    keys.verify(token).map(|claims| claims.subject)
}

/// A token with these claims, right or wrong, signed with these keys.
pub fn signed_token(keys: &TokenKeys, claims: Value) -> Option<String> {
    keys.sign(claims).ok()
}

/// The name of the definition of a built-in kind's type, as decoders tell it.
pub fn type_name(index: u16) -> &'static str {
    crate::verbs::type_name(index)
}

/// The token of a list's next page as it is written once it was read; an error for what is no token.
pub fn continuation_read_again(token: &str) -> Result<String, ApiError> {
    crate::verbs::Continuation::decode(token).map(|page| page.encode())
}
