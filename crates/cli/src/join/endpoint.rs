//! The address at which the controllers reach a member: from this call's flags, or else from the last join, because the
//! user who replaces credentials may be in another network than the controllers. Also tries credentials there.

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::Cluster;
use controllers::members::ClientConfig;
use controllers::rest::{Collection, Rest};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::cluster::{ClusterFlags, KubeconfigCluster, identity};
use crate::Hint;

/// The timeout after which a member counts as not reachable from here.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long new credentials may take to be known to every API server of the member.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(10);
/// The poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The key of the authority in the Secret with the credentials.
pub const CA_BUNDLE: &str = "caBundle";

/// Where the controllers find a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberEndpoint {
    /// Its address.
    pub endpoint: String,
    /// The CA bundle that verifies its certificate, in PEM; empty if it is not verified.
    pub authority: Vec<u8>,
    /// Whether its serving certificate is not verified.
    pub insecure: bool,
    /// The proxy in front of it, or empty.
    pub proxy: String,
}

impl MemberEndpoint {
    /// The place that a member has joined with; none if its Cluster names none.
    pub async fn known(control: &Rest, cluster: &Cluster) -> Result<Option<Self>> {
        let spec = &cluster.spec;
        if spec.api_endpoint.is_empty() {
            return Ok(None);
        }
        let secret = match &spec.secret_ref {
            Some(reference) => {
                let path = Collection::new("v1", "secrets", &reference.namespace).object(&reference.name);
                control
                    .get::<Secret>(&path)
                    .await
                    .with_context(|| format!("read Secret {}", reference.name))?
            }
            None => None,
        };
        let authority = secret.and_then(|secret| secret.data?.remove(CA_BUNDLE));
        Ok(Some(Self {
            endpoint: spec.api_endpoint.clone(),
            authority: authority.map(|bytes| bytes.0).unwrap_or_default(),
            insecure: spec.insecure_skip_tls_verification,
            proxy: spec.proxy_url.clone(),
        }))
    }

    /// The address to store. An address and its CA bundle belong together.
    pub fn choose(
        said: &ClusterFlags,
        kubeconfig_cluster: &KubeconfigCluster,
        known: Option<&MemberEndpoint>,
    ) -> Result<Self> {
        let mut place = match (&said.cluster_endpoint, known) {
            (None, Some(known)) => known.clone(),
            (endpoint, known) => Self {
                endpoint: endpoint.clone().unwrap_or_else(|| kubeconfig_cluster.endpoint().to_owned()),
                authority: Vec::new(),
                insecure: kubeconfig_cluster.is_insecure(),
                proxy: known.map_or(kubeconfig_cluster.proxy(), |known| known.proxy.as_str()).to_owned(),
            },
        };
        if place.authority.is_empty() && !place.insecure {
            place.authority = kubeconfig_cluster.authority()?;
        }
        if let Some(proxy) = &said.cluster_proxy_url {
            place.proxy.clone_from(proxy);
        }
        Ok(place)
    }

    /// Tries these credentials at the address that the controllers use; false if the member is not reachable from here.
    /// It is an error if a server answers and does not accept them.
    pub async fn accepts_credentials(&self, cluster: &Value, credentials: &Value) -> Result<bool> {
        let cluster: Cluster = serde_json::from_value(cluster.clone()).context("read the Cluster")?;
        let secret = serde_json::from_value(json!({ "metadata": {}, "data": credentials }));
        let config = ClientConfig::of(&cluster, &secret.context("read the credentials")?)?;
        let rest = Rest::new(config.client().await?);
        let begun = Instant::now();
        loop {
            let refusal = match timeout(CONNECT_TIMEOUT, identity(&rest)).await {
                Err(_) => return Ok(false),
                Ok(Err(error)) if error.is_outage() => return Ok(false),
                Ok(Ok(Some(id))) if id == cluster.spec.id => return Ok(true),
                Ok(Ok(_)) => return Err(self.wrong("another cluster answers there")),
                Ok(Err(error)) => error,
            };
            if begun.elapsed() > CREDENTIALS_TIMEOUT {
                return Err(self.wrong(&refusal.to_string()));
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    fn wrong(&self, why: &str) -> anyhow::Error {
        let hint = "pass the address at which the controllers reach it with --cluster-endpoint";
        anyhow::Error::new(Hint(hint.to_owned()))
            .context(why.to_owned())
            .context(format!("try the new credentials at {}", self.endpoint))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn place(endpoint: &str, authority: &str, proxy: &str) -> MemberEndpoint {
        let (endpoint, proxy) = (endpoint.to_owned(), proxy.to_owned());
        MemberEndpoint { endpoint, authority: authority.into(), insecure: authority.is_empty(), proxy }
    }

    fn check(said: [Option<&str>; 2], known: Option<&MemberEndpoint>, expected: &MemberEndpoint) {
        // "there" in base64.
        let kubeconfig_cluster = KubeconfigCluster(json!({
            "server": "https://127.0.0.1:6443", "certificate-authority-data": "dGhlcmU=",
            "proxy-url": "http://bastion",
        }));
        let [cluster_endpoint, cluster_proxy_url] = said.map(|said| said.map(str::to_owned));
        let said = ClusterFlags { cluster_endpoint, cluster_proxy_url, ..ClusterFlags::default() };
        assert_eq!(
            MemberEndpoint::choose(&said, &kubeconfig_cluster, known).expect("there is an authority"),
            *expected
        );
    }

    #[test]
    fn who_joins_is_found_where_the_kubeconfig_says_or_the_flags() {
        check([None, None], None, &place("https://127.0.0.1:6443", "there", "http://bastion"));
        check([Some("https://10.0.0.5"), Some("")], None, &place("https://10.0.0.5", "there", ""));
    }

    #[test]
    fn who_has_joined_stays_where_he_is_unless_the_flags_say_otherwise() {
        let known = place("https://10.0.0.5:6443", "mine", "");
        check([None, None], Some(&known), &known);
        check([None, Some("http://p")], Some(&known), &place("https://10.0.0.5:6443", "mine", "http://p"));
        check([Some("https://10.0.0.6"), None], Some(&known), &place("https://10.0.0.6", "there", ""));
        let insecure = place("https://10.0.0.5:6443", "", "http://p");
        check([None, None], Some(&insecure), &insecure);
        check([None, Some("")], Some(&insecure), &place("https://10.0.0.5:6443", "", ""));
    }

    async fn tried(port: u16) -> Result<bool> {
        let place = place(&format!("http://127.0.0.1:{port}"), "", "");
        let spec = json!({ "id": "it", "apiEndpoint": place.endpoint, "insecureSkipTLSVerification": true });
        let cluster = json!({ "metadata": { "name": "m" }, "spec": spec });
        place.accepts_credentials(&cluster, &json!({ "token": "dGhlcmU=" })).await
    }

    /// Answers one request with this uid.
    async fn server_with_uid(uid: &str) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("there is a port");
        let port = listener.local_addr().expect("it has an address").port();
        let body = json!({ "metadata": { "uid": uid } }).to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("server_with_uid comes");
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        });
        port
    }

    #[tokio::test]
    async fn credentials_are_tried_where_they_are_used() {
        assert!(tried(server_with_uid("it").await).await.expect("it answers"));
        let another = tried(server_with_uid("another").await).await.expect_err("another answers");
        assert!(format!("{another:#}").contains("another cluster answers there"), "{another:#}");
        assert!(!tried(1).await.expect("nobody answers"));
    }
}
