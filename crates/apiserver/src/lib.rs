//! The Kubernetes API server as a library: REST, discovery, OpenAPI, patch, server-side apply, watch, tables and
//! CustomResourceDefinitions over the store. Knows nothing of policies: the embedding process passes in admission.

pub mod admission;
mod admission_policies;
pub mod audit;
pub mod authn;
mod authz;
pub mod body;
mod compaction;
mod content;
mod controllers;
mod conversion;
mod discovery;
mod documents;
mod engine;
mod expression_authorizer;
pub mod extension;
mod flowcontrol;
pub mod fuzzing;
mod metrics;
mod openapi_cache;
mod options;
mod quotas;
mod registry;
mod request;
mod run_blocking;
mod security;
mod serve;
mod server;
mod storage_limits;
mod stored;
mod supervision;
mod verbs;
mod webhooks;

pub use engine::Config;
pub use flowcontrol::Limits;
pub use security::Security;
pub use serve::{ConnectionLimits, Credentials, Frontend, ServeError};
pub use server::{ApiServer, InProcess};
pub use storage_limits::StorageLimits;
