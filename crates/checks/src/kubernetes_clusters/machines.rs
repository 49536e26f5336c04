//! Simulates the nodes of a real member: `member::Nodes` over the network. Requests are retried while the server is
//! unavailable.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use apiserver::body::Body;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::config::{KubeConfigOptions, Kubeconfig};
use member::{NodeSpec, Nodes, Passage, Stages};

use super::cluster::Cluster;

/// How soon a server that is away is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The machines of one member.
pub struct Machines(Nodes);

impl Machines {
    /// One machine with the room that a description asks for, as a simulated member has it.
    pub(super) async fn start(cluster: &Cluster, wanted: &scenario::Cluster) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(&cluster.kubeconfig).context("read a kubeconfig")?;
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        config.read_timeout = None;
        let client = kube::Client::try_from(config)?;
        let passage = Passage::new(tower::service_fn(move |request| ask(client.clone(), request)));
        let node = NodeSpec {
            name: node_name(&wanted.name),
            cpu: wanted.cpu.clone(),
            memory: "1Ti".to_owned(),
            pods: wanted.pods,
            labels: labels(wanted),
        };
        let now = Arc::new(jiff::Timestamp::now);
        let started = Nodes::start(&cluster.name, passage, &[node], Stages::builtin(), now).await;
        Ok(Self(started.with_context(|| format!("start the machines of {}", cluster.name))?))
    }

    /// Ends them and takes them out of the cluster, which is to get others.
    pub(super) async fn remove_nodes(self, cluster: &Cluster, name: &str) {
        self.shut_down().await;
        let path = format!("/api/v1/nodes/{}", node_name(name));
        cluster.api_client().request(Method::DELETE, &path, "").await;
    }

    /// Ends them.
    pub(super) async fn shut_down(self) {
        self.0.shut_down().await;
    }
}

fn labels(wanted: &scenario::Cluster) -> BTreeMap<String, String> {
    let places =
        [("topology.kubernetes.io/region", &wanted.region), ("topology.kubernetes.io/zone", &wanted.zone)];
    let known = places.into_iter().filter(|(_, place)| !place.is_empty());
    known.map(|(key, place)| (key.to_owned(), place.clone())).collect()
}

fn node_name(cluster: &str) -> String {
    format!("{cluster}-node1")
}

async fn ask(client: kube::Client, request: Request<Full<Bytes>>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap_or_else(|never| match never {}).to_bytes();
    loop {
        let request = Request::from_parts(head.clone(), kube::client::Body::from(body.to_vec()));
        match client.send(request).await {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                // A broken stream ends, which its reader notices.
                let frames = body.into_data_stream().take_while(|part| std::future::ready(part.is_ok()));
                let bytes = frames.filter_map(|part| std::future::ready(part.ok()));
                return Ok(Response::from_parts(head, Body::stream(bytes)));
            }
            Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
        }
    }
}
