//! The Kubernetes API server as a library: REST, discovery, OpenAPI, patch, server-side apply, watch, tables and
//! CustomResourceDefinitions over the store. Knows nothing of policies: the embedding process passes in admission.

pub mod admission;
pub mod audit;
pub mod authn;
mod authz;
mod call;
mod controllers;
mod conversion;
mod discovery;
mod engine;
mod environment;
pub mod extension;
mod flowcontrol;
pub mod fuzzing;
mod http;
mod metrics;
mod registry;
mod run_blocking;
mod security;
mod server;
mod storage;
mod supervision;
mod verbs;
mod watch;
mod webhook_client;
mod work_queue;

pub use self::http::{ConnectionLimits, Credentials, Frontend, ServeError, body};
pub use admission::StorageLimits;
pub use engine::Config;
pub use flowcontrol::Limits;
pub use security::Security;
pub use server::{ApiServer, InProcess};
