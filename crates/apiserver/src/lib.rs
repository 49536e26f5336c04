//! How Kubernetes speaks: REST, discovery, OpenAPI, patch, apply, watch, tables and CRDs over the store.
//! Knows nothing of policies: admission is handed in.

pub mod apply;
pub mod builtin;
pub mod crd;
pub mod error;
pub mod jsonpath;
pub mod kinds;
pub mod metadata;
pub mod openapi;
pub mod patch;
pub mod protobuf;
pub mod quantity;
pub mod schema;
pub mod selector;
pub mod table;
pub mod validate;
