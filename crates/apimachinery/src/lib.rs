//! What every part of a Kubernetes API server shares: names, metadata, quantities, selectors, JSONPath and `Status`
//! errors. Knows no kinds and no requests.

pub mod error;
pub mod gotext;
pub mod jsonpath;
pub mod metadata;
pub mod names;
pub mod quantity;
#[cfg(any(test, feature = "recorded"))]
pub mod recorded;
pub mod selector;
pub mod version_order;
