//! Authenticates a request: from its credentials to an identity. Every route goes through here.

use http::HeaderMap;
use http::request::Parts;

use store::Store;

use super::{Credential, Identity, StaticTokens, TokenKeys};
use crate::environment::Clock;
use apimachinery::error::ApiError;

/// Paths that anonymous clients may read: health and version.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// Whether a path needs no authentication.
pub(crate) fn is_public(path: &str) -> bool {
    PUBLIC.contains(&path)
}

/// Tokens that are longer than this are none of ours.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// What the server authenticates clients by.
pub(crate) struct Authenticator {
    /// Bearer tokens from a file.
    pub tokens: StaticTokens,
    /// The keys of the tokens of service accounts.
    pub keys: TokenKeys,
    /// Where the objects are that tokens are bound to.
    pub store: Store,
    pub now: Clock,
}

impl Authenticator {
    /// The authenticated user. An invalid credential is a 401, even where none is needed.
    pub fn authenticate(&self, parts: &Parts) -> Result<Identity, ApiError> {
        match parts.extensions.get::<Identity>() {
            Some(identity) => Ok(identity.clone()),
            None => self.network_identity(parts),
        }
    }

    fn network_identity(&self, parts: &Parts) -> Result<Identity, ApiError> {
        let credential = parts.extensions.get::<Credential>();
        if let Some(Credential::Certificate { identity, not_after }) = credential
            && (self.now)().as_second() <= *not_after
        {
            return Ok(identity.clone());
        }
        match (bearer_token(&parts.headers), credential) {
            (Some(token), _) => {
                let audiences = self.keys.audiences();
                let (identity, _) =
                    self.token_identity(token, &audiences).map_err(|_| ApiError::unauthorized())?;
                Ok(identity)
            }
            (None, None) if is_public(parts.uri.path()) => Ok(Identity::anonymous()),
            _ => Err(ApiError::unauthorized()),
        }
    }

    /// Whose token it is, and for which of the wanted audiences it was made.
    pub fn token_identity(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<(Identity, Vec<String>), String> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err("invalid bearer token".to_owned());
        }
        if let Some(identity) = self.tokens.find(token) {
            // A token of the file says nothing of audiences: it is good for this server.
            let own = self.keys.audiences();
            return Ok((identity, own.into_iter().filter(|one| audiences.contains(one)).collect()));
        }
        let claims = self.keys.verify(token)?;
        let fitting: Vec<String> =
            claims.audiences.iter().filter(|one| audiences.contains(one)).cloned().collect();
        if fitting.is_empty() {
            return Err(format!(
                "token audiences {:?} is invalid for the target audiences {audiences:?}",
                claims.audiences
            ));
        }
        Ok((self.account_identity(&claims)?, fitting))
    }
}

/// The token of an `Authorization` header.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let mut words = value.trim().splitn(3, ' ');
    let is_bearer = words.next()?.eq_ignore_ascii_case("bearer");
    words.next().filter(|token| is_bearer && !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_as_kubernetes_reads_them() {
        let check = |value: &str, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(http::header::AUTHORIZATION, value.parse().expect("a header"));
            assert_eq!(bearer_token(&headers), expected, "{value:?}");
        };
        check("Bearer abc", Some("abc"));
        check(" bearer abc def", Some("abc"));
        check("Bearer", None);
        check("Bearer  abc", None);
        check("Basic abc", None);
        assert_eq!(bearer_token(&HeaderMap::new()), None);
    }
}
