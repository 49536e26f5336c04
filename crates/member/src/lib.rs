//! A simulated cluster: an API server on its own store, nodes with a capacity, and workloads that advance by stage
//! files. Knows nothing of policies and of the control plane above it.

mod amounts;
mod cache;
mod client;
mod facts;
mod hash;
mod key;
mod member;
mod node;
mod nodes;
mod plan;
mod queue;
mod reflector;
mod runtime;
mod stages;
mod worker;
mod workloads;
mod write_backoff;

pub use client::Passage;
pub use member::{Member, NodeSpec, Options, StartError, Stopped};
pub use nodes::Nodes;
pub use stages::{StageError, Stages};
