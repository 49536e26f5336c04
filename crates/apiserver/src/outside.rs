//! The languages in which strangers speak to this server, each with the functions that read it: the surface that fuzz
//! targets and other tests from outside of this crate stand on. Holds no behaviour of its own.

use serde_json::Value;

pub use crate::apply::{WriteContext, managed_fields_read_again, server_side_apply, track_update};
use crate::auth::TokenKeys;
pub use crate::content::{decode_json, decode_yaml};
pub use crate::crd::{
    CompileError, CustomKind, CustomVersion, Verdict, compile, default_crd, keep_status, validate_crd,
};
pub use crate::jsonpath::JsonPath;
pub use crate::options::{DeleteOptions, WriteKind, WriteOptions, check_list_options};
pub use crate::patch::{json_patch, merge_patch, strategic_merge};
pub use crate::protobuf::{DecodeError, decode as decode_protobuf};
pub use crate::request::{Query, ResourcePath, Target};

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
pub fn continuation_read_again(token: &str) -> Result<String, crate::error::ApiError> {
    crate::verbs::Continuation::decode(token).map(|page| page.encode())
}
