//! The error of everything that plays scenarios.

/// Why a scenario could not go on; not the fault of what it tests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlayError(pub String);
