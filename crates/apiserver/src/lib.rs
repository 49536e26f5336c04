//! How Kubernetes speaks: REST, discovery, OpenAPI, patch, apply, watch, tables and CRDs over the store.
//! Knows nothing of policies: admission is handed in.

mod access;
pub mod admission;
mod apply;
mod aside;
pub mod audit;
pub mod auth;
pub mod body;
mod builtin;
mod compaction;
mod content;
mod conversion;
mod convert;
mod crd;
mod discovery;
mod documents;
mod engine;
pub mod error;
mod expressions;
mod gotext;
mod housekeeping;
mod jsonpath;
pub mod kinds;
mod limits;
mod metadata;
mod metrics;
mod names;
mod openapi;
mod openapi_cache;
mod options;
pub mod outside;
mod patch;
mod policies;
mod protobuf;
pub mod quantity;
#[cfg(test)]
mod recorded;
mod registry;
mod request;
pub mod schema;
mod security;
pub mod selector;
mod serve;
mod server;
mod stored;
mod table;
mod validate;
mod verbs;
mod version_order;
mod webhooks;

pub use engine::Config;
pub use limits::Limits;
pub use security::Security;
pub use serve::{Credentials, Frontend, ServeError};
pub use server::{ApiServer, InProcess};
