//! How Kubernetes speaks: REST, discovery, OpenAPI, patch, apply, watch, tables and CRDs over the store.
//! Knows nothing of policies: admission is handed in.

mod access;
pub mod admission;
mod aside;
pub mod audit;
pub mod auth;
pub mod body;
mod compaction;
mod content;
mod conversion;
mod discovery;
mod documents;
mod engine;
mod expression_authorizer;
pub mod extension;
pub mod fuzzing;
mod housekeeping;
mod limits;
mod metrics;
mod openapi_cache;
mod options;
mod policies;
mod quotas;
mod registry;
mod request;
mod security;
mod serve;
mod server;
mod storage_limits;
mod stored;
mod supervision;
mod verbs;
mod webhooks;

pub use engine::Config;
pub use limits::Limits;
pub use security::Security;
pub use serve::{ConnectionLimits, Credentials, Frontend, ServeError};
pub use server::{ApiServer, InProcess};
pub use storage_limits::StorageLimits;
