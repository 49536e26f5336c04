//! Authentication, authorization, audit and limit settings, passed in when the server is built. A credential that is
//! not configured here is refused.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::StorageLimits;
use crate::audit::Audit;
use crate::authn::{KeyError, StaticTokens, TokenKeys};
use crate::flowcontrol::Limits;

/// What a server authenticates beside in-process clients and client certificates, and its roles, audit log and limits.
pub struct Security {
    /// Bearer tokens from a file.
    pub tokens: StaticTokens,
    /// The keys of the tokens of service accounts.
    pub keys: TokenKeys,
    /// With `Some`, Kubernetes' default roles and bindings are kept up to date, and these cluster roles and cluster
    /// role bindings with them.
    pub roles: Option<Vec<Value>>,
    /// The audit log.
    pub audit: Option<Arc<Audit>>,
    /// Concurrency limits.
    pub limits: Limits,
    /// How much may be stored.
    pub storage: StorageLimits,
    /// The longest life of a token of a service account, in seconds.
    pub token_seconds_max: Option<i64>,
}

impl Security {
    /// No tokens but those that the server makes itself, for as long as it runs, and no roles.
    pub fn bare() -> Result<Self, KeyError> {
        let (tokens, keys) = (StaticTokens::default(), TokenKeys::ephemeral()?);
        let (limits, storage) = (Limits::default(), StorageLimits::default());
        Ok(Self { tokens, keys, roles: None, audit: None, limits, storage, token_seconds_max: None })
    }
}
