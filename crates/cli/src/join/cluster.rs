//! The cluster at the other end: how it is reached with the rights of whoever joins it, and what has to be remembered
//! so that the controllers can reach it as well.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controllers::rest::{Collection, Rest};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use crate::Hint;

/// How the cluster to join is found.
#[derive(clap::Args)]
#[command(next_help_heading = "The cluster")]
pub struct Whereabouts {
    /// The kubeconfig of the cluster, with the rights of an administrator
    #[arg(long, value_name = "FILE")]
    pub cluster_kubeconfig: Option<PathBuf>,
    /// The context in it [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub cluster_context: Option<String>,
    /// Where the account is made there, and its credentials are kept here
    #[arg(long, value_name = "NAMESPACE", default_value = "karmada-cluster")]
    pub cluster_namespace: String,
    /// The address by which the controllers reach the cluster [default: that of the kubeconfig]
    #[arg(long, value_name = "URL")]
    pub cluster_endpoint: Option<String>,
    /// The proxy by which the controllers reach the cluster [default: that of the kubeconfig]
    #[arg(long, value_name = "URL")]
    pub cluster_proxy_url: Option<String>,
}

/// The cluster at the other end.
pub struct Far {
    /// Where requests go.
    pub rest: Rest,
    /// Its address.
    pub endpoint: String,
    /// Who signed its certificate, in PEM; empty if nobody is asked.
    pub authority: Vec<u8>,
    /// Whether its certificate is believed whoever signed it.
    pub insecure: bool,
    /// The proxy in front of it, or empty.
    pub proxy: String,
}

impl Far {
    /// Finds it.
    pub async fn open(arguments: &Whereabouts) -> Result<Self> {
        let file = arguments.cluster_kubeconfig.as_ref().ok_or_else(|| {
            let hint = Hint("name the kubeconfig of the cluster with --cluster-kubeconfig".to_owned());
            anyhow::Error::new(hint).context("find the cluster")
        })?;
        let kubeconfig =
            Kubeconfig::read_from(file).with_context(|| format!("read the kubeconfig {}", file.display()))?;
        let options =
            KubeConfigOptions { context: arguments.cluster_context.clone(), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
        let mut config = config.with_context(|| format!("use the kubeconfig {}", file.display()))?;
        let of_context = of_context(&kubeconfig, arguments.cluster_context.as_deref());
        let of_context = of_context.context("the kubeconfig names no cluster for the context")?;
        let proxy = arguments.cluster_proxy_url.clone();
        let proxy = proxy.unwrap_or_else(|| text(&of_context, "proxy-url").to_owned());
        config.default_retry = false;
        config.connect_timeout = Some(std::time::Duration::from_secs(5));
        let insecure = config.accept_invalid_certs;
        let endpoint = arguments.cluster_endpoint.clone();
        Ok(Self {
            endpoint: endpoint.unwrap_or_else(|| text(&of_context, "server").to_owned()),
            authority: if insecure { Vec::new() } else { authority(&of_context)? },
            insecure,
            proxy,
            rest: Rest::new(kube::Client::try_from(config).context("use the kubeconfig of the cluster")?),
        })
    }

    /// Who the cluster is, whatever it is called: the uid of a namespace that lives as long as it does.
    pub async fn id(&self) -> Result<String> {
        let path = Collection::new("v1", "namespaces", "").object("kube-system");
        let namespace: Option<Value> = self.rest.get(&path).await.map_err(|error| {
            let hint = "does it run, and may the user of the kubeconfig read there?";
            anyhow::Error::new(Hint(hint.to_owned())).context(error).context("ask the cluster who it is")
        })?;
        let uid = namespace.and_then(|namespace| Some(namespace["metadata"]["uid"].as_str()?.to_owned()));
        uid.context("the cluster has no namespace kube-system, so it cannot be told from others")
    }
}

/// What a kubeconfig says about the cluster of a context.
fn of_context(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<Value> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|named| named.name == name)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster)?;
    serde_json::to_value(cluster.cluster.as_ref()?).ok()
}

fn text<'v>(cluster: &'v Value, key: &str) -> &'v str {
    cluster[key].as_str().unwrap_or_default()
}

fn authority(cluster: &Value) -> Result<Vec<u8>> {
    let data = text(cluster, "certificate-authority-data");
    if !data.is_empty() {
        return STANDARD.decode(data).context("read certificate-authority-data");
    }
    match text(cluster, "certificate-authority") {
        "" => {
            let hint = "name the authority that signed the cluster's certificate in its kubeconfig";
            Err(anyhow::Error::new(Hint(hint.to_owned()))
                .context("the kubeconfig says nobody whom to believe"))
        }
        file => std::fs::read(file).with_context(|| format!("read {file}")),
    }
}
