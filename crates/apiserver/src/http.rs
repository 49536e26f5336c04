//! HTTP: the listener with its connections, and what requests and responses are made of: paths, queries, options, media
//! types, bodies. Must not know resources, nor what answers a request.

pub mod body;
pub(crate) mod content;
pub(crate) mod options;
mod query;
mod request;
mod response;
mod serve;

pub(crate) use body::Body;
pub use query::{Query, percent_decode};
pub use request::{ResourcePath, Target};
pub(crate) use response::{document_response, error_response, typed};
pub(crate) use serve::{ConnectionHandle, Peer, Shared};
pub use serve::{ConnectionLimits, Credentials, Frontend, ServeError};
