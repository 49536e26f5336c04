//! A live control plane and its members. What a scenario made there is removed afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use crate::api_client::ApiClient;
use crate::error::PlayError;
use crate::host::{Host, HostOperation};
use crate::step::Cluster;

/// How long an expectation may take to come true.
const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(60);
/// Where the clusters of a control plane are listed.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// A running control plane and its members.
#[derive(Clone)]
pub struct Live {
    control: Arc<ApiClient>,
    members: BTreeMap<String, Arc<ApiClient>>,
    /// The host, for operations that no user can do.
    host: Option<Host>,
}

impl Live {
    /// By the files that lead there. Has to be called inside a runtime.
    pub async fn connect(
        control: &Path,
        members: &[(String, std::path::PathBuf)],
    ) -> Result<Self, PlayError> {
        let mut clients = BTreeMap::new();
        for (name, path) in members {
            clients.insert(name.clone(), connect(path).await?);
        }
        Ok(Self { control: connect(control).await?, members: clients, host: None })
    }

    /// The same with a host that joins clusters, cuts them off, restarts controllers and advances the clock.
    #[must_use]
    pub fn with_host(self, host: Host) -> Self {
        Self { host: Some(host), ..self }
    }

    pub(crate) fn has_host(&self) -> bool {
        self.host.is_some()
    }

    fn host(&self, operation: &str) -> Result<&Host, PlayError> {
        self.host
            .as_ref()
            .ok_or_else(|| PlayError(format!("without a host, a live control plane cannot {operation}")))
    }

    /// A cluster joins.
    pub(crate) async fn join(&mut self, cluster: &Cluster) -> Result<(), PlayError> {
        let host = self.host("let a cluster join")?;
        let kubeconfig = host.ask(|reply| HostOperation::Join(cluster.clone(), reply)).await?;
        self.members.insert(cluster.name.clone(), connect(&kubeconfig).await?);
        Ok(())
    }

    /// A cluster can be reached, or not.
    pub(crate) async fn reach(&self, name: &str, reachable: bool) -> Result<(), PlayError> {
        let host = self.host("cut a cluster off")?;
        host.ask(|reply| HostOperation::Reach(name.to_owned(), reachable, reply)).await
    }

    /// Restarts the controllers, if there is a host that can.
    pub(crate) async fn restart(&self) -> Result<(), PlayError> {
        match &self.host {
            Some(host) => host.ask(HostOperation::Restart).await,
            None => Ok(()),
        }
    }

    /// Time passes.
    pub(crate) async fn wait(&self, time: Duration) -> Result<(), PlayError> {
        match &self.host {
            Some(host) => host.ask(|reply| HostOperation::Pass(time, reply)).await,
            None => {
                tokio::time::sleep(time).await;
                Ok(())
            }
        }
    }

    /// What time it is for the control plane.
    pub(crate) async fn now(&self) -> Result<Timestamp, PlayError> {
        match &self.host {
            Some(host) => host.ask(HostOperation::Time).await,
            None => Ok(Timestamp::now()),
        }
    }

    pub(crate) fn control(&self) -> Arc<ApiClient> {
        Arc::clone(&self.control)
    }

    pub(crate) fn member(&self, name: &str) -> Option<Arc<ApiClient>> {
        self.members.get(name).cloned()
    }

    pub(crate) fn members(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    pub(crate) fn deadline(&self) -> Duration {
        EXPECTATION_TIMEOUT
    }

    /// The clusters that have joined, whether they were named or not.
    pub(crate) async fn joined(&self) -> Result<Vec<Value>, PlayError> {
        let mut list =
            self.control.fetch(&controllers::rest::Path::fixed(CLUSTERS)).await?.unwrap_or_default();
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }
}

async fn connect(path: &Path) -> Result<Arc<ApiClient>, PlayError> {
    let wrong = |error: &dyn std::fmt::Display| PlayError(format!("{}: {error}", path.display()));
    let file = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| wrong(&error))?;
    let client = Client::try_from(config).map_err(|error| wrong(&error))?;
    Ok(Arc::new(ApiClient::new(client)))
}
