//! Who is asking. Every route passes here, and an identity is only ever put on a request by the transport
//! that proved it: never read from a header.

use crate::error::ApiError;

/// A proven identity. Lives in the extensions of a request, which no client can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user name: the common name of a client certificate.
    pub user: String,
    /// The groups: the organisations of a client certificate.
    pub groups: Vec<String>,
    /// What it creates has no `managedFields`, as if it were older than the tracking of owners, and gets none
    /// until somebody applies it. Nobody on the network is so.
    pub is_untracked: bool,
}

/// The group that may do everything, as in Kubernetes.
pub const ADMINISTRATORS: &str = "system:masters";

impl Identity {
    /// The identity of the controllers and commands that run inside the server's own process.
    pub fn internal(user: &str) -> Self {
        Self { user: user.to_owned(), groups: vec![ADMINISTRATORS.to_owned()], is_untracked: false }
    }

    /// The same for who creates so much that saying who owns its fields would cost more than the fields.
    pub fn untracked(user: &str) -> Self {
        Self { is_untracked: true, ..Self::internal(user) }
    }
}

/// Lets administrators in and nobody else.
pub fn authorize(extensions: &http::Extensions) -> Result<Identity, ApiError> {
    let identity = extensions.get::<Identity>().ok_or_else(ApiError::unauthorized)?;
    match identity.groups.iter().any(|group| group == ADMINISTRATORS) {
        true => Ok(identity.clone()),
        false => Err(ApiError::unauthorized()),
    }
}
