//! Our account in a member: who we are there, what we may do, and the token that proves it. As little as works: whatever
//! templates can be has to be written, but nobody is impersonated and nothing is approved.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::labels;
use controllers::rest::{Collection, Rest};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::remove;

/// Karmada's account for who acts in the name of users.
const IMPERSONATOR: &str = "karmada-impersonator";
/// The label that tells tokens of ours from others.
const TOKEN_OF: &str = "longshore.io/token-of";
/// How long the member may take to make a token, or to take a namespace away.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked whether it has.
const LOOK: Duration = Duration::from_millis(100);

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Our account in a member.
pub struct Account {
    namespace: String,
    user: String,
    role: String,
}

/// What proves who we are there.
pub struct Tokens {
    /// For the controllers.
    pub controllers: String,
    /// For who acts in the name of users.
    pub impersonator: String,
    /// The Secrets that have them there.
    secrets: Vec<String>,
}

impl Account {
    /// The account for the member of this name.
    pub fn of(cluster: &str, namespace: &str) -> Self {
        let user = format!("karmada-{cluster}");
        let role = format!("karmada-controller-manager:{user}");
        Self { namespace: namespace.to_owned(), user, role }
    }

    /// Makes the account, or brings it in line, and has new tokens made.
    pub async fn make(&self, far: &Rest) -> Result<Tokens> {
        self.until_place_is_free(far).await?;
        let marks = [(labels::SYSTEM, labels::TRUE)];
        plane::ensure_namespace(far, &self.namespace, &marks)
            .await
            .with_context(|| format!("make namespace {} in the cluster", self.namespace))?;
        for user in [IMPERSONATOR, &self.user] {
            let account = json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(user),
            });
            let path = Collection::new("v1", "serviceaccounts", &self.namespace).object(user);
            far.apply(&path, &account, true).await.with_context(|| format!("make account {user}"))?;
        }
        self.grant(far).await?;
        let (controllers, own) = self.token(far, &self.user).await?;
        let (impersonator, users) = self.token(far, IMPERSONATOR).await?;
        Ok(Tokens { controllers, impersonator, secrets: vec![own, users] })
    }

    /// Who left a moment ago may still be taken away.
    async fn until_place_is_free(&self, far: &Rest) -> Result<()> {
        let path = Collection::new("v1", "namespaces", "").object(&self.namespace);
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < PATIENCE {
            let namespace: Option<Value> =
                far.get(&path).await.with_context(|| format!("read namespace {}", self.namespace))?;
            if namespace.is_none_or(|namespace| namespace["metadata"]["deletionTimestamp"].is_null()) {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("namespace {} in the cluster is being deleted and does not go", self.namespace)
    }

    fn metadata(&self, name: &str) -> Value {
        json!({ "name": name, "namespace": self.namespace, "labels": { labels::SYSTEM: labels::TRUE } })
    }

    async fn grant(&self, far: &Rest) -> Result<()> {
        let metadata = json!({ "name": self.role, "labels": { labels::SYSTEM: labels::TRUE } });
        let role =
            json!({ "apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules() });
        let binding = json!({
            "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": self.role },
            "subjects": [{ "kind": "ServiceAccount", "name": self.user, "namespace": self.namespace }],
        });
        for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let path = Collection::new(RBAC, plural, "").object(&self.role);
            far.apply(&path, &object, true).await.with_context(|| format!("grant {}", self.role))?;
        }
        Ok(())
    }

    /// A new token of an account, and the Secret that has it.
    async fn token(&self, far: &Rest, user: &str) -> Result<(String, String)> {
        let name = format!("{user}-token-{:08x}", rand::random::<u32>());
        let collection = Collection::new("v1", "secrets", &self.namespace);
        let mut metadata = self.metadata(&name);
        metadata["annotations"] = json!({ "kubernetes.io/service-account.name": user });
        metadata["labels"][TOKEN_OF] = user.into();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": metadata,
        });
        far.create(&collection, &secret).await.with_context(|| format!("ask for a token of {user}"))?;
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < PATIENCE {
            let found: Option<Value> = far.get(&collection.object(&name)).await?;
            let encoded = found.map(|mut found| found["data"]["token"].take()).filter(Value::is_string);
            if let Some(encoded) = encoded {
                let ByteString(bytes) = serde_json::from_value(encoded).context("read the token")?;
                return Ok((String::from_utf8(bytes).context("read the token")?, name));
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("the cluster makes no token for account {user}: does its kube-controller-manager run?")
    }

    /// Makes every token void that is not one of these.
    pub async fn remove_other_tokens(&self, far: &Rest, tokens: &Tokens) -> Result<()> {
        let collection = Collection::new("v1", "secrets", &self.namespace);
        let mut old = Vec::new();
        // Those of the impersonator may belong to a namesake of this member; they are its own affair.
        let selector = format!("{TOKEN_OF}={}", self.user).replace('=', "%3D").replace('/', "%2F");
        let each = |item: api::Unread| {
            let Ok(secret) = item.read::<Value>() else { return };
            let name = secret["metadata"]["name"].as_str().unwrap_or_default();
            if !tokens.secrets.iter().any(|kept| kept == name) {
                old.push(name.to_owned());
            }
        };
        far.pages(&collection, &selector, each).await.context("list tokens in the cluster")?;
        for name in old {
            remove(far, &collection.object(&name)).await.with_context(|| format!("delete token {name}"))?;
        }
        Ok(())
    }

    /// Takes the account away. The namespace goes with it unless another control plane uses it, too.
    pub async fn end(&self, far: &Rest) -> Result<()> {
        for plural in ["clusterrolebindings", "clusterroles"] {
            remove(far, &Collection::new(RBAC, plural, "").object(&self.role)).await?;
        }
        let accounts = Collection::new("v1", "serviceaccounts", &self.namespace);
        remove(far, &accounts.object(&self.user)).await?;
        let mut others = 0;
        let each = |item: api::Unread| {
            let name = item.read::<Value>().ok();
            let name = name.as_ref().and_then(|one| one["metadata"]["name"].as_str()).unwrap_or_default();
            others += usize::from(name.starts_with("karmada-") && name != IMPERSONATOR && name != self.user);
        };
        far.pages(&accounts, "", each).await.context("list accounts in the cluster")?;
        match others {
            0 => remove(far, &Collection::new("v1", "namespaces", "").object(&self.namespace)).await,
            _ => Ok(()),
        }
    }
}

/// What the controllers need: to write whatever a template can be, to see how it fares, and to ask for health. Roles
/// among the templates may grant what we do not have ourselves, which the two special verbs are for.
fn rules() -> Value {
    json!([
        {
            "apiGroups": ["*"], "resources": ["*"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        },
        {
            "apiGroups": [RBAC_GROUP],
            "resources": ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
            "verbs": ["escalate", "bind"],
        },
        { "nonResourceURLs": ["/readyz", "/healthz", "/version", "/api", "/api/*", "/apis", "/apis/*"], "verbs": ["get"] },
    ])
}
