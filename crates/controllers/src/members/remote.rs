//! Builds the client of a member on the network from its Cluster and its Secret, in Karmada's format. Reads nothing by
//! itself.

use api::Cluster;
use k8s_openapi::api::core::v1::Secret;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

/// The key of the token in a member's Secret.
const TOKEN: &str = "token";
/// The key of the authority that signed the member's certificate, in PEM.
const CA_BUNDLE: &str = "caBundle";

/// Why there is no client for a member.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// The Cluster has no API endpoint.
    #[error("the api endpoint of cluster {0} is empty")]
    NoEndpoint(String),
    /// The Cluster references no credentials.
    #[error("cluster {0} does not have a secret")]
    NoReference(String),
    /// What was named is not there.
    #[error("the secret {namespace}/{name} of cluster {cluster} is not found")]
    NoSecret {
        /// The member.
        cluster: String,
        /// Where the Secret should be.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The Secret lacks something.
    #[error("the secret for cluster {cluster} is missing a non-empty value for \"{key}\"")]
    Missing {
        /// The member.
        cluster: String,
        /// What it lacks.
        key: &'static str,
    },
    /// What is there makes no sense.
    #[error("build a client for cluster {cluster}: {reason}")]
    Unusable {
        /// The member.
        cluster: String,
        /// Why.
        reason: String,
    },
}

/// Everything that a client depends on. Deliberately not printable: it holds a token.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientConfig {
    cluster: String,
    endpoint: String,
    token: String,
    /// None trusts whatever certificate the member shows.
    authority: Option<Vec<u8>>,
    /// Empty for a direct connection.
    proxy: String,
}

impl ClientConfig {
    /// The configuration that a Cluster and its Secret describe.
    pub fn of(cluster: &Cluster, secret: &Secret) -> Result<Self, Unreachable> {
        let name = &cluster.metadata.name;
        let value = |key: &'static str| {
            let found = secret.data.as_ref().and_then(|data| data.get(key));
            let found = found.map(|bytes| bytes.0.clone()).filter(|bytes| !bytes.is_empty());
            found.ok_or(Unreachable::Missing { cluster: name.clone(), key })
        };
        let token = String::from_utf8(value(TOKEN)?);
        let spec = &cluster.spec;
        Ok(Self {
            cluster: name.clone(),
            endpoint: spec.api_endpoint.clone(),
            token: token.map_err(|_| Unreachable::Missing { cluster: name.clone(), key: TOKEN })?,
            authority: match spec.insecure_skip_tls_verification {
                true => None,
                false => Some(value(CA_BUNDLE)?),
            },
            proxy: spec.proxy_url.clone(),
        })
    }

    /// A client with this configuration.
    pub async fn client(&self) -> Result<kube::Client, Unreachable> {
        let unusable = |reason: String| Unreachable::Unusable { cluster: self.cluster.clone(), reason };
        let mut cluster = json!({ "server": self.endpoint });
        match &self.authority {
            None => cluster["insecure-skip-tls-verify"] = true.into(),
            Some(pem) => {
                let bytes = k8s_openapi::ByteString(pem.clone());
                cluster["certificate-authority-data"] = json!(bytes);
            }
        }
        let name = &self.cluster;
        let kubeconfig = json!({
            "clusters": [{ "name": name, "cluster": cluster }],
            "users": [{ "name": name, "user": { "token": self.token } }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
            "current-context": name,
        });
        let kubeconfig: Kubeconfig =
            serde_json::from_value(kubeconfig).map_err(|error| unusable(error.to_string()))?;
        let read = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = read.map_err(|error| unusable(error.to_string()))?;
        // The proxy settings of this process do not apply to members, and the controllers' queues retry.
        config.proxy_url = match self.proxy.as_str() {
            "" => None,
            proxy => Some(proxy.parse().map_err(|error| unusable(format!("read {proxy}: {error}")))?),
        };
        config.default_retry = false;
        kube::Client::try_from(config).map_err(|error| unusable(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_config_needs_a_token_and_a_certificate_authority() {
        let check = |spec: serde_json::Value, data: serde_json::Value, expected: &str| {
            let cluster = serde_json::from_value(json!({ "metadata": { "name": "m" }, "spec": spec }));
            let secret = serde_json::from_value(json!({ "metadata": {}, "data": data }));
            let found = ClientConfig::of(&cluster.expect("a cluster"), &secret.expect("a secret"));
            let found = found.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(found, expected);
        };
        let missing =
            |key: &str| format!("the secret for cluster m is missing a non-empty value for \"{key}\"");
        check(json!({}), json!({ "token": "dA==", "caBundle": "Yw==" }), "");
        check(json!({}), json!({ "caBundle": "Yw==" }), &missing("token"));
        check(json!({}), json!({ "token": "", "caBundle": "Yw==" }), &missing("token"));
        check(json!({}), json!({ "token": "dA==" }), &missing("caBundle"));
        check(json!({ "insecureSkipTLSVerification": true }), json!({ "token": "dA==" }), "");
    }
}
