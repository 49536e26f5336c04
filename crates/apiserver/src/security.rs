//! What a server is told about who gets in, handed to it when it is made. What is not said here lets nobody in.

use serde_json::Value;

use crate::auth::{KeyError, StaticTokens, TokenKeys};

/// Whom a server believes, beside those who are trusted in its process and those who show a certificate.
pub struct Security {
    /// Bearer tokens from a file.
    pub tokens: StaticTokens,
    /// The keys of the tokens of service accounts.
    pub keys: TokenKeys,
    /// With `Some`, Kubernetes' default roles and bindings are kept up to date, and these cluster roles and cluster
    /// role bindings with them.
    pub roles: Option<Vec<Value>>,
}

impl Security {
    /// No tokens but those that the server makes itself, for as long as it runs, and no roles.
    pub fn bare() -> Result<Self, KeyError> {
        Ok(Self { tokens: StaticTokens::default(), keys: TokenKeys::ephemeral()?, roles: None })
    }
}
