//! The documents `/openapi/v3` and `/openapi/v2`, as functions of the published kinds. Must not know the client, nor
//! cache anything: the server caches the documents until a kind changes.

use bytes::Bytes;
use serde_json::{Map, Value, json};

mod components;
mod custom;
mod gnostic;
mod published;
mod routes;
mod v2;
mod v3;

pub use gnostic::swagger_protobuf;
pub use published::Published;
pub use v2::swagger;

/// Everything published in one group version.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupVersion<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Version within the group.
    pub version: &'a str,
    /// Its kinds, built in or custom.
    pub kinds: Vec<Published<'a>>,
}

impl GroupVersion<'_> {
    /// Its path below `/` and below `/openapi/v3/`, such as `apis/apps/v1`.
    pub fn path(&self) -> String {
        match self.group {
            "" => format!("api/{}", self.version),
            group => format!("apis/{group}/{}", self.version),
        }
    }
}

/// The OpenAPI v3 document of one group version, ready to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its path below `/openapi/v3/`, such as `apis/apps/v1`.
    pub path: String,
    /// Identifies this version of the document: the `hash` in its address, and its ETag.
    pub hash: String,
    /// The document, in JSON.
    pub body: Bytes,
}

/// What `/openapi/v3/<path of the group version>` answers.
pub fn document(group: &GroupVersion<'_>) -> Document {
    let body = v3::document(group).to_string();
    let hash = format!("{:032X}", fnv(body.as_bytes()));
    Document { path: group.path(), hash, body: body.into() }
}

/// What `/openapi/v3` answers: where the document of each group version is.
pub fn index<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Value {
    let paths = documents.into_iter().map(|document| {
        let url = format!("/openapi/v3/{}?hash={}", document.path, document.hash);
        (document.path.clone(), json!({ "serverRelativeURL": url }))
    });
    json!({ "paths": paths.collect::<Map<_, _>>() })
}

/// FNV-1a with 128 bits: a non-cryptographic hash that identifies versions of a document.
fn fnv(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests;
