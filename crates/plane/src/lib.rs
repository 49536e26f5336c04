//! Assembles one control plane: `decide`'s rules as the API server's admission, the CRDs installed and members joined.
//! Shared by all composition roots; knows no port, no file, no clock.

pub mod admission;
pub mod extension;
mod install;
pub mod policy_impact;
pub mod reports;
pub mod restart;
pub mod review;
pub mod roles;
pub mod webhooks;

pub use install::{
    Definitions, NoteError, are_kinds_served, ensure_namespace, install_kinds, join, note_path,
    publish_gates, published_budget, published_gates, wanted_definitions,
};
