//! Our service account in a member: its identity, its RBAC rights and its tokens. Objects of others, and a namespace
//! that `join` did not create, are left alone.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::labels;
use api::names::{CLUSTER_NAMESPACE, IMPERSONATOR_SERVICE_ACCOUNT as IMPERSONATOR};
use controllers::rest::{Collection, Error, Rest};
use serde_json::{Value, json};

use super::{contents, remove};
use crate::Hint;

mod role;
mod token;

use role::RBAC;
pub use role::{RoleScope, ScopeFlags};
pub use token::Tokens;

/// The label of Secrets with tokens: the name of the account that the token was created for.
const TOKEN_OF: &str = "longshore.io/token-of";
/// The annotation of objects that `join` creates: the id of the control plane that joined.
const JOINED_BY: &str = "longshore.io/joined-by";
/// The type of Secrets that contain tokens.
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
/// The type of Secrets that tokens are bound to: they are empty, and deleting one revokes its token.
const BOUND_TYPE: &str = "longshore.io/bound-token";
/// The annotation with the account of a token.
const TOKEN_USER: &str = "kubernetes.io/service-account.name";
/// The label by which API servers note the day on which a token was last used.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// How long the member may take to create a token or to delete a namespace, and the controllers to use a new token.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(30);
/// The poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Our account in a member.
pub struct Account {
    namespace: String,
    /// Where it was before, if that is elsewhere.
    former: Option<String>,
    user: String,
    role: String,
}

impl Account {
    /// The account for the member of this name.
    pub fn of(cluster: &str, namespace: &str) -> Self {
        let user = format!("karmada-{cluster}");
        let role = format!("karmada-controller-manager:{user}");
        Self { namespace: namespace.to_owned(), former: None, user, role }
    }

    /// The same, which was in another namespace before.
    pub fn moved_from(self, former: Option<String>) -> Self {
        Self { former, ..self }
    }

    async fn binding(&self, member: &Rest) -> Result<Option<Value>> {
        let path = Collection::new(RBAC, "clusterrolebindings", "").object(&self.role);
        member.get(&path).await.with_context(|| format!("read {} in the cluster", self.role))
    }

    /// The namespace in which an account of this name has rights.
    pub async fn found(&self, member: &Rest) -> Result<Option<String>> {
        let binding = self.binding(member).await?;
        Ok(binding.and_then(|binding| Some(binding["subjects"][0]["namespace"].as_str()?.to_owned())))
    }

    /// Makes sure that no other control plane has the account: to take it over would shut that one out.
    pub async fn is_free(&self, member: &Rest, control: &str) -> Result<()> {
        let binding = self.binding(member).await?;
        if binding.is_none_or(|binding| binding["metadata"]["annotations"][JOINED_BY] == control) {
            return Ok(());
        }
        let hint = "choose another name; if no control plane uses that account any more, remove it with \
                    `longshore unjoin NAME --cluster-kubeconfig FILE`";
        Err(anyhow::Error::new(Hint(hint.to_owned()))
            .context(format!("account {} in the cluster belongs to another control plane", self.user)))
    }

    /// Makes the account, or brings it in line, and has new tokens made.
    pub async fn make(
        &self,
        member: &Rest,
        control: &str,
        scope: &RoleScope,
        seconds: i64,
    ) -> Result<Tokens> {
        if !self.namespace_exists(member).await? {
            let made = self.create_namespace(member, control).await;
            made.with_context(|| format!("make namespace {} in the cluster", self.namespace))?;
        }
        for user in [IMPERSONATOR, &self.user] {
            let account = json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(user),
            });
            let path = Collection::new("v1", "serviceaccounts", &self.namespace).object(user);
            member.apply(&path, &account, true).await.with_context(|| format!("make account {user}"))?;
        }
        self.grant(member, control, scope, self.former.as_deref()).await?;
        let controllers = self.token(member, &self.user, seconds).await?;
        let impersonator = self.token(member, IMPERSONATOR, seconds).await?;
        Ok(Tokens { controllers, impersonator })
    }

    /// Whether the namespace exists. One that a recent `unjoin` deleted may still be terminating.
    async fn namespace_exists(&self, member: &Rest) -> Result<bool> {
        let path = Collection::new("v1", "namespaces", "").object(&self.namespace);
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < MEMBER_TIMEOUT {
            let namespace: Option<Value> =
                member.get(&path).await.with_context(|| format!("read namespace {}", self.namespace))?;
            match namespace {
                None => return Ok(false),
                Some(found) if found["metadata"]["deletionTimestamp"].is_null() => return Ok(true),
                Some(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
        bail!("namespace {} in the cluster is still being deleted", self.namespace)
    }

    /// Makes the namespace, and notes that on it: only then it goes when we leave.
    async fn create_namespace(&self, member: &Rest, control: &str) -> Result<(), Error> {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": self.namespace, "labels": { labels::SYSTEM: labels::TRUE },
                "annotations": { JOINED_BY: control },
            },
        });
        match member.create(&Collection::new("v1", "namespaces", ""), &namespace).await {
            Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn metadata(&self, name: &str) -> Value {
        json!({ "name": name, "namespace": self.namespace, "labels": { labels::SYSTEM: labels::TRUE } })
    }

    fn secrets(&self) -> Collection {
        Collection::new("v1", "secrets", &self.namespace)
    }

    /// Makes every other token void, and takes the account away from where it was before.
    pub async fn revoke_other_tokens(
        &self,
        member: &Rest,
        control: &str,
        scope: &RoleScope,
        tokens: &Tokens,
    ) -> Result<()> {
        let kept = [&tokens.controllers.secret, &tokens.impersonator.secret];
        let is_shared = self.is_shared(member).await?;
        let others = self.tokens(member, is_shared).await?.into_iter().filter(|name| !kept.contains(&name));
        self.remove_tokens(member, others).await?;
        let Some(former) = &self.former else { return Ok(()) };
        self.grant(member, control, scope, None).await?;
        let (user, role) = (self.user.clone(), self.role.clone());
        let before = Self { namespace: former.clone(), former: None, user, role };
        before.delete_account(member).await.map(drop)
    }

    /// Makes new tokens void that turned out to be of no use.
    pub async fn revoke_new_tokens(&self, member: &Rest, tokens: Tokens) -> Result<()> {
        self.remove_tokens(member, [tokens.controllers.secret, tokens.impersonator.secret]).await
    }

    async fn remove_tokens(&self, member: &Rest, secrets: impl IntoIterator<Item = String>) -> Result<()> {
        for name in secrets {
            let removed = remove(member, &self.secrets().object(&name)).await;
            removed.with_context(|| format!("delete token {name}"))?;
        }
        Ok(())
    }

    /// The Secrets with tokens of our accounts, including those made by other clients. If another control plane has an
    /// account in the namespace, it shares the impersonator; then only Secrets made for us are ours.
    async fn tokens(&self, member: &Rest, is_shared: bool) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let each = |item: api::Unread| {
            let secret: Value = item.read().unwrap_or_default();
            if self.is_token(&secret, is_shared) {
                found.extend(secret["metadata"]["name"].as_str().map(str::to_owned));
            }
        };
        member.pages(&self.secrets(), "", each).await.context("list tokens in the cluster")?;
        Ok(found)
    }

    fn is_token(&self, secret: &Value, is_shared: bool) -> bool {
        let metadata = &secret["metadata"];
        let user = metadata["annotations"][TOKEN_USER].as_str().unwrap_or_default();
        let was_made_for_us = metadata["labels"][TOKEN_OF] == self.user.as_str();
        let is_ours = user == self.user || user == IMPERSONATOR && (was_made_for_us || !is_shared);
        (secret["type"] == TOKEN_TYPE || secret["type"] == BOUND_TYPE) && is_ours
    }

    /// Whether another control plane has its account in the same namespace.
    async fn is_shared(&self, member: &Rest) -> Result<bool> {
        let mut others = 0;
        let each = |item: api::Unread| {
            let account: Value = item.read().unwrap_or_default();
            let name = account["metadata"]["name"].as_str().unwrap_or_default();
            others += usize::from(name.starts_with("karmada-") && name != IMPERSONATOR && name != self.user);
        };
        let accounts = Collection::new("v1", "serviceaccounts", &self.namespace);
        member.pages(&accounts, "", each).await.context("list accounts in the cluster")?;
        Ok(others > 0)
    }

    /// Takes the account away, and what it may do. If the namespace stays, the answer says why.
    pub async fn end(&self, member: &Rest) -> Result<Option<String>> {
        self.revoke_in_namespaces(member, &[]).await?;
        for plural in ["clusterrolebindings", "clusterroles"] {
            remove(member, &Collection::new(RBAC, plural, "").object(&self.role)).await?;
        }
        self.delete_account(member).await
    }

    async fn delete_account(&self, member: &Rest) -> Result<Option<String>> {
        let accounts = Collection::new("v1", "serviceaccounts", &self.namespace);
        let is_shared = self.is_shared(member).await?;
        let tokens = self.tokens(member, is_shared).await?;
        if !is_shared {
            remove(member, &accounts.object(IMPERSONATOR)).await?;
        }
        remove(member, &accounts.object(&self.user)).await?;
        self.remove_tokens(member, tokens).await?;
        self.delete_namespace_if_empty(member).await
    }

    /// Deletes the namespace if it is ours and empty. Karmada's usual one is not marked where Karmada made it.
    async fn delete_namespace_if_empty(&self, member: &Rest) -> Result<Option<String>> {
        let path = Collection::new("v1", "namespaces", "").object(&self.namespace);
        let Some(namespace) = member.get::<Value>(&path).await? else { return Ok(None) };
        let metadata = &namespace["metadata"];
        if !metadata["annotations"][JOINED_BY].is_string() && self.namespace != CLUSTER_NAMESPACE {
            return Ok(Some("`longshore join` did not create it".to_owned()));
        }
        match contents::foreign_object(member, &self.namespace).await {
            Ok(None) => {
                member.delete(&path, metadata["uid"].as_str()).await.map(|()| None).map_err(Into::into)
            }
            Ok(Some(foreign_object)) => Ok(Some(format!("it contains {foreign_object}"))),
            Err(error) => Ok(Some(format!("its contents cannot be listed: {error:#}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_of_the_account_is_ours_and_the_impersonators_unless_it_is_shared() {
        let account = Account::of("member1", "karmada-cluster");
        let check = |user: &str, made_for: &str, is_shared: bool, expected: bool| {
            let metadata = json!({ "annotations": { TOKEN_USER: user }, "labels": { TOKEN_OF: made_for } });
            let secret = json!({ "type": TOKEN_TYPE, "metadata": metadata });
            assert_eq!(account.is_token(&secret, is_shared), expected, "{user} {made_for} {is_shared}");
            let opaque = json!({ "type": "Opaque", "metadata": metadata });
            assert!(!account.is_token(&opaque, is_shared), "no token is in it");
        };
        // Karmada's have no label.
        check("karmada-member1", "", false, true);
        check("karmada-member1", "", true, true);
        check("karmada-impersonator", "", false, true);
        check("karmada-impersonator", "", true, false);
        check("karmada-impersonator", "karmada-member1", true, true);
        check("karmada-impersonator", "karmada-member2", true, false);
        check("karmada-member2", "", false, false);
        check("default", "", false, false);
    }
}
