//! The identity behind a token of a service account, which is invalid once the account, or an object that the token is
//! bound to, is gone.

use super::jwt::{Bound, Claims, Reference};
use super::{Authenticator, Identity, account_groups, account_user};
use crate::storage::stored;

/// Clocks may differ by this much.
const LEEWAY_SECONDS: i64 = 60;

impl Authenticator {
    /// The identity of a token's bearer, if everything that it is bound to still exists.
    pub(super) fn account_identity(&self, claims: &Claims) -> Result<Identity, String> {
        let now = (self.now)().as_second();
        if now > claims.expires + LEEWAY_SECONDS {
            return Err("service account token has expired".to_owned());
        }
        if now < claims.not_before - LEEWAY_SECONDS {
            return Err("service account token is not valid yet".to_owned());
        }
        let Bound { namespace, account, pod, secret, node } = &claims.bound;
        self.check_bound("/serviceaccounts", namespace, account)?;
        for (table, place, bound) in
            [("/pods", namespace.as_str(), pod), ("/secrets", namespace, secret), ("/nodes", "", node)]
        {
            bound.as_ref().map_or(Ok(()), |bound| self.check_bound(table, place, bound))?;
        }
        let user = account_user(namespace, &account.name);
        let mut identity = Identity {
            user,
            uid: account.uid.clone(),
            groups: account_groups(namespace),
            ..Identity::default()
        };
        let mut note = |key: &str, value: &str| {
            identity.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
        };
        note("credential-id", &format!("JTI={}", claims.id));
        for (name, uid, bound) in [("pod-name", "pod-uid", pod), ("node-name", "node-uid", node)] {
            if let Some(bound) = bound {
                note(name, &bound.name);
                note(uid, &bound.uid);
            }
        }
        Ok(identity.authenticated())
    }

    /// An object of the same name is not the same object.
    fn check_bound(&self, table: &str, namespace: &str, bound: &Reference) -> Result<(), String> {
        let key = match namespace {
            "" => bound.name.clone(),
            namespace => format!("{namespace}/{}", bound.name),
        };
        let gone = || "service account token has been invalidated".to_owned();
        let entry = self.store.get(table, &key).ok_or_else(gone)?;
        let metadata = stored::outline(&entry.value).metadata;
        match metadata.uid == bound.uid && metadata.deletion_timestamp.is_none() {
            true => Ok(()),
            false => Err(gone()),
        }
    }
}
