//! Tokens of our service account in a member: bound to a Secret there, so that they expire and can be revoked, and
//! renewed by the controllers. A member without such bound tokens issues one that never expires.

use anyhow::{Context as _, Result, bail};
use controllers::credentials::{
    TOKEN_ACCOUNT, TOKEN_BOUND_TO, TOKEN_EXPIRES, TOKEN_ISSUED, TOKEN_USED, read_token, seconds,
};
use controllers::rest::{Collection, Error, Path, Rest};
use http::Method;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::{
    Account, BOUND_TYPE, LAST_USED, MEMBER_TIMEOUT, POLL_INTERVAL, TOKEN_OF, TOKEN_TYPE, TOKEN_USER,
};
use crate::output::print_message;

/// The tokens of our service accounts in the member.
pub struct Tokens {
    /// For the controllers.
    pub controllers: Token,
    /// For requests that impersonate users.
    pub impersonator: Token,
}

/// One token.
pub struct Token {
    /// What is shown.
    pub text: String,
    /// The Secret that has it there, or that it is bound to.
    pub(super) secret: String,
    /// Whose it is, as `namespace/name`.
    account: String,
    /// When it was made and when it ends; none if it never does.
    life: Option<(Timestamp, Timestamp)>,
}

impl Token {
    /// What the controllers have to know to renew it, as annotations; nothing is said of one that never ends.
    pub fn annotations(&self) -> Value {
        match self.life {
            None => json!({}),
            Some((issued, expires)) => json!({
                TOKEN_ISSUED: seconds(issued), TOKEN_EXPIRES: seconds(expires),
                TOKEN_ACCOUNT: self.account, TOKEN_BOUND_TO: self.secret,
            }),
        }
    }
}

impl Account {
    /// A new token of an account, for so many seconds if the member makes such tokens.
    pub(super) async fn token(&self, member: &Rest, user: &str, life_seconds: i64) -> Result<Token> {
        let name = format!("{user}-token-{:08x}", rand::random::<u32>());
        self.make_secret(member, user, &name, BOUND_TYPE).await?;
        let accounts = Collection::new("v1", "serviceaccounts", &self.namespace);
        let path = accounts.object(user).below("token");
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "expirationSeconds": life_seconds,
                "boundObjectRef": { "apiVersion": "v1", "kind": "Secret", "name": name },
            },
        });
        let issued = Timestamp::now();
        match member.send::<Value>(Method::POST, &path, "application/json", Some(&request)).await {
            Ok(answer) => {
                let (text, expires) = read_token(&path, &answer).context("read the token")?;
                let account = format!("{}/{user}", self.namespace);
                Ok(Token { text, secret: name, account, life: Some((issued, expires)) })
            }
            Err(error @ (Error::NotFound { .. } | Error::Refused { code: 400..=499, .. })) => {
                super::remove(member, &self.secrets().object(&name)).await?;
                print_message(&format!(
                    "warning: the cluster does not issue expiring tokens for account {user} ({error}); a \
                     token that never expires is used: replace it regularly with `longshore join --rotate`"
                ));
                self.lasting_token(member, user).await
            }
            Err(error) => Err(error).with_context(|| format!("request a token for {user}")),
        }
    }

    async fn make_secret(&self, member: &Rest, user: &str, name: &str, kind: &str) -> Result<()> {
        let mut metadata = self.metadata(name);
        metadata["annotations"] = json!({ TOKEN_USER: user });
        metadata["labels"][TOKEN_OF] = self.user.as_str().into();
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata });
        let made = member.create(&self.secrets(), &secret).await;
        made.map(drop).with_context(|| format!("request a token for {user}"))
    }

    /// A token in a Secret, which never ends.
    async fn lasting_token(&self, member: &Rest, user: &str) -> Result<Token> {
        let name = format!("{user}-token-{:08x}", rand::random::<u32>());
        self.make_secret(member, user, &name, TOKEN_TYPE).await?;
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < MEMBER_TIMEOUT {
            let found: Option<Value> = member.get(&self.secrets().object(&name)).await?;
            let encoded = found.map(|mut found| found["data"]["token"].take()).filter(Value::is_string);
            if let Some(encoded) = encoded {
                let ByteString(bytes) = serde_json::from_value(encoded).context("read the token")?;
                let text = String::from_utf8(bytes).context("read the token")?;
                let account = format!("{}/{user}", self.namespace);
                return Ok(Token { text, secret: name, account, life: None });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        bail!(
            "the cluster does not create a token for account {user}: check that its \
               kube-controller-manager runs"
        )
    }

    /// Whether the controllers have come with the new token, by a way that cannot be gone from here. Of one that ends
    /// they note it on the Secret at `kept` on the control plane; of another one the member's API server notes it.
    pub async fn is_used(&self, member: &Rest, tokens: &Tokens, control: &Rest, kept: &Path) -> Result<bool> {
        let token = &tokens.controllers;
        let theirs = self.secrets().object(&token.secret);
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < MEMBER_TIMEOUT {
            let is_used = match token.life {
                Some(_) => {
                    let secret: Option<Value> =
                        control.get(kept).await.context("read whether the token was used")?;
                    secret.is_some_and(|secret| {
                        secret["metadata"]["annotations"][TOKEN_USED] == token.secret.as_str()
                    })
                }
                None => {
                    let secret: Option<Value> =
                        member.get(&theirs).await.context("read whether the token was used")?;
                    secret.is_some_and(|secret| secret["metadata"]["labels"][LAST_USED].is_string())
                }
            };
            if is_used {
                return Ok(true);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(false)
    }
}
