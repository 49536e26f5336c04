//! The decisions of the control plane: one pure function per question, each answer with its reason.
//!
//! Nothing here blocks, reads a clock, logs or does I/O, and every order is deterministic. Twin kinds are one here: a
//! [`Policy`] of either scope, a [`Binding`] of either scope.

pub mod activation;
pub mod admission;
pub mod admission_warnings;
pub mod affinity;
pub mod binding;
mod bound;
pub mod budget;
pub mod claim;
pub mod conditions;
pub mod credentials;
pub mod dependencies;
pub mod eviction;
mod fields;
pub mod gates;
pub mod handback;
pub mod image;
pub mod interpret;
pub mod json_pointer;
mod limits;
pub mod orphans;
pub mod overrides;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod policy_status;
pub mod progress;
pub mod propagation;
pub mod quantity;
pub mod readiness;
pub mod rebalance;
pub mod rollout;
pub mod selector;
pub mod sight;
pub mod skipped;
pub mod snapshot;
pub mod status;
pub mod template;
pub mod unknown_clusters;
pub mod why;
pub mod works;

pub use activation::{Activation, activation};
pub use api::{Binding, Scope};
pub use claim::policies::Policies;
pub use claim::templates::Templates;
pub use claim::{Claim, claim};
pub use gates::Gates;
pub use policy::{Policy, PolicyKey};
pub use skipped::SkippedResources;
pub use snapshot::Snapshot;
pub use template::{BindingKey, Template, TemplateKey};
