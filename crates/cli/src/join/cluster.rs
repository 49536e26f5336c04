//! The cluster to join: a client with the rights of the user who joins it, its id, and its server, CA and proxy as the
//! kubeconfig says.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use api::{Cluster, names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controllers::rest::{Collection, Error, Rest};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use crate::Hint;
use crate::kubeconfig_problem::kubeconfig_problem;

/// How the cluster to join is found.
#[derive(clap::Args, Default)]
#[command(next_help_heading = "The cluster")]
pub struct ClusterFlags {
    /// Kubeconfig of the member cluster, with administrator rights
    #[arg(long, value_name = "FILE")]
    pub cluster_kubeconfig: Option<PathBuf>,
    /// Context in that kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub cluster_context: Option<String>,
    /// Namespace of the service account in the cluster, and of the Secret with its token in the control plane [default:
    /// the present one, or karmada-cluster]
    #[arg(long, value_name = "NAMESPACE")]
    pub cluster_namespace: Option<String>,
    /// URL at which the controllers reach the cluster [default: the present one, or that of the kubeconfig]
    #[arg(long, value_name = "URL")]
    pub cluster_endpoint: Option<String>,
    /// Proxy through which the controllers reach the cluster [default: the present one, or that of the kubeconfig]
    #[arg(long, value_name = "URL")]
    pub cluster_proxy_url: Option<String>,
}

impl ClusterFlags {
    /// Where the account and its credentials are, or will be; `known` is the member as it has joined.
    pub fn namespace(&self, known: Option<&Cluster>) -> String {
        let joined_with = known.and_then(|known| Some(known.spec.secret_ref.as_ref()?.namespace.clone()));
        let joined_with = joined_with.filter(|namespace| !namespace.is_empty());
        let said = self.cluster_namespace.clone().or(joined_with);
        said.unwrap_or_else(|| names::CLUSTER_NAMESPACE.to_owned())
    }
}

/// The cluster at the other end.
pub struct MemberCluster {
    /// Where requests go.
    pub rest: Rest,
    /// What the kubeconfig says about it.
    pub kubeconfig_cluster: KubeconfigCluster,
}

impl MemberCluster {
    /// Finds it.
    pub async fn open(arguments: &ClusterFlags) -> Result<Self> {
        let file = arguments.cluster_kubeconfig.as_ref().ok_or_else(|| {
            let hint = Hint("pass the kubeconfig of the cluster with --cluster-kubeconfig".to_owned());
            anyhow::Error::new(hint).context("find the cluster")
        })?;
        let kubeconfig = Kubeconfig::read_from(file)
            .map_err(|error| anyhow!(kubeconfig_problem(&error)))
            .with_context(|| format!("read the kubeconfig {}", file.display()))?;
        let options =
            KubeConfigOptions { context: arguments.cluster_context.clone(), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
        let mut config = config
            .map_err(|error| anyhow!(kubeconfig_problem(&error)))
            .with_context(|| format!("use the kubeconfig {}", file.display()))?;
        let kubeconfig_cluster = of_context(&kubeconfig, arguments.cluster_context.as_deref());
        let kubeconfig_cluster =
            kubeconfig_cluster.context("the kubeconfig has no cluster for the context")?;
        config.default_retry = false;
        config.connect_timeout = Some(std::time::Duration::from_secs(5));
        let rest = Rest::new(kube::Client::try_from(config).context("use the kubeconfig of the cluster")?);
        Ok(Self { rest, kubeconfig_cluster: KubeconfigCluster(kubeconfig_cluster) })
    }

    /// The id of the cluster, independent of its name.
    pub async fn id(&self) -> Result<String> {
        let id = identity(&self.rest).await.map_err(|error| {
            let hint = "check that it runs and that the user of the kubeconfig may read there: `kubectl \
                        --kubeconfig FILE get namespace kube-system`";
            anyhow::Error::new(Hint(hint.to_owned())).context(error).context("read the id of the cluster")
        })?;
        id.context("the cluster has no namespace kube-system, whose uid is its id")
    }
}

/// The id of a cluster: the uid of a namespace that lives as long as it does.
pub async fn identity(rest: &Rest) -> Result<Option<String>, Error> {
    let path = Collection::new("v1", "namespaces", "").object("kube-system");
    let namespace: Option<Value> = rest.get(&path).await?;
    Ok(namespace.and_then(|namespace| Some(namespace["metadata"]["uid"].as_str()?.to_owned())))
}

/// What a kubeconfig says about the cluster of a context.
fn of_context(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<Value> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|named| named.name == name)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster)?;
    serde_json::to_value(cluster.cluster.as_ref()?).ok()
}

/// What a kubeconfig says about a cluster.
pub struct KubeconfigCluster(pub Value);

impl KubeconfigCluster {
    /// Its address.
    pub fn endpoint(&self) -> &str {
        self.text("server")
    }

    /// The proxy in front of it, or nothing.
    pub fn proxy(&self) -> &str {
        self.text("proxy-url")
    }

    /// Whether its serving certificate is not verified.
    pub fn is_insecure(&self) -> bool {
        self.0["insecure-skip-tls-verify"].as_bool().unwrap_or_default()
    }

    /// The CA bundle that verifies its certificate, in PEM.
    pub fn authority(&self) -> Result<Vec<u8>> {
        let data = self.text("certificate-authority-data");
        if !data.is_empty() {
            return STANDARD.decode(data).context("read certificate-authority-data");
        }
        match self.text("certificate-authority") {
            "" => {
                let hint = "add certificate-authority-data, or insecure-skip-tls-verify, to the cluster in \
                            its kubeconfig";
                Err(anyhow::Error::new(Hint(hint.to_owned()))
                    .context("the kubeconfig has no certificate authority for the cluster"))
            }
            file => std::fs::read(file).with_context(|| format!("read {file}")),
        }
    }

    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_namespace_is_the_one_it_has_joined_with_unless_a_flag_names_another() {
        let check = |said: Option<&str>, joined_with: Option<&str>, expected: &str| {
            let arguments =
                ClusterFlags { cluster_namespace: said.map(str::to_owned), ..ClusterFlags::default() };
            let known = joined_with.map(|namespace| {
                let spec = json!({ "secretRef": { "namespace": namespace, "name": "m" } });
                serde_json::from_value::<Cluster>(json!({ "metadata": {}, "spec": spec })).expect("a cluster")
            });
            assert_eq!(arguments.namespace(known.as_ref()), expected);
        };
        check(None, None, "karmada-cluster");
        check(None, Some(""), "karmada-cluster");
        check(None, Some("platform"), "platform");
        check(Some("other"), Some("platform"), "other");
    }
}
