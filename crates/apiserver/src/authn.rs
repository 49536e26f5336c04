//! Authentication. Every route passes here, and an identity comes only from a credential: the in-process transport, a
//! client certificate or a bearer token. Never from a header that merely claims it.

use std::collections::BTreeMap;

mod accounts;
mod authenticate;
mod jwt;
mod tokens;

pub(crate) use authenticate::{Authenticator, is_public};
pub use jwt::{KeyError, TokenKeys};
pub use tokens::{StaticTokens, TokenFileError};

/// A proven identity. Lives in the extensions of a request, which no client can write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user name: the common name of a client certificate, or what a token says.
    pub user: String,
    /// Distinguishes this user from an earlier one of the same name; empty if the authenticator knows no uid.
    pub uid: String,
    /// The groups: the organisations of a client certificate, or what a token says.
    pub groups: Vec<String>,
    /// What else is known, such as which token it was.
    pub extra: BTreeMap<String, Vec<String>>,
    /// Objects that it creates get no `managedFields`, as if they predated field ownership, until a client applies
    /// them. Never set for network clients.
    pub is_untracked: bool,
    /// The impersonating user, if this identity is impersonated.
    pub impersonator: Option<Box<Identity>>,
    /// Part of this process: neither queued nor audited. Never set for network clients.
    pub is_internal: bool,
}

/// The group that may do everything, as in Kubernetes.
pub const ADMINISTRATORS: &str = "system:masters";
/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of all unauthenticated clients.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user of requests without a credential.
pub const ANONYMOUS: &str = "system:anonymous";

/// The user and field manager of the controllers inside the server, in managedFields and admission.
pub const CONTROLLERS: &str = "system:controller:apiserver";

/// What a connection proved before the first request came.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    /// A certificate that our authority signed, and the second it ends.
    Certificate { identity: Identity, not_after: i64 },
    /// A certificate of an authority that this server does not trust.
    UnknownAuthority,
}

impl Identity {
    /// The identity of the controllers and commands that run inside the server's own process.
    pub fn internal(user: &str) -> Self {
        Self { is_internal: true, ..Self::named(user, [ADMINISTRATORS]) }
    }

    /// The same, without field ownership: for a component that creates so many objects that `managedFields` would
    /// cost more than the fields.
    pub fn untracked(user: &str) -> Self {
        Self { is_untracked: true, ..Self::internal(user) }
    }

    /// An authenticated user, in these groups and in `system:authenticated`.
    pub fn named<'a>(user: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        let groups = groups.into_iter().map(str::to_owned).collect();
        let identity = Self { user: user.to_owned(), groups, ..Self::default() };
        identity.authenticated()
    }

    /// An anonymous client.
    pub(crate) fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { user: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// The same, in the group `system:authenticated`.
    pub(crate) fn authenticated(mut self) -> Self {
        let is_said = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if self.user != ANONYMOUS && !self.groups.iter().any(is_said) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Whether it may do everything.
    pub fn is_administrator(&self) -> bool {
        self.groups.iter().any(|group| group == ADMINISTRATORS)
    }

    /// Whether it is the controllers inside the server.
    pub(crate) fn is_server_controller(&self) -> bool {
        self.is_internal && self.user == CONTROLLERS
    }

    /// As reviews and audit events show it.
    pub(crate) fn user_info(&self) -> serde_json::Value {
        let mut info = serde_json::json!({ "username": self.user, "groups": self.groups });
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = serde_json::json!(self.extra);
        }
        info
    }
}

/// The user name of a service account.
pub(crate) fn account_user(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups of a service account.
pub(crate) fn account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Namespace and name of the service account that a user name stands for.
pub(crate) fn account_of(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_plain = |word: &str| !word.is_empty() && !word.contains([':', '/']);
    (is_plain(namespace) && is_plain(name)).then_some((namespace, name))
}
