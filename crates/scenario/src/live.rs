//! A control plane that is running somewhere, and its members. What was made there is removed afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::door::Door;
use crate::ground::Trouble;

/// How long an expectation may take to come true.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where the clusters of a control plane are listed.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// A running control plane and its members.
#[derive(Clone)]
pub struct Live {
    control: Arc<Door>,
    members: BTreeMap<String, Arc<Door>>,
}

impl Live {
    /// By the files that lead there. Has to be called inside a runtime.
    pub async fn connect(control: &Path, members: &[(String, std::path::PathBuf)]) -> Result<Self, Trouble> {
        let mut clients = BTreeMap::new();
        for (name, path) in members {
            clients.insert(name.clone(), connect(path).await?);
        }
        Ok(Self { control: connect(control).await?, members: clients })
    }

    pub(crate) fn control(&self) -> Arc<Door> {
        Arc::clone(&self.control)
    }

    pub(crate) fn member(&self, name: &str) -> Option<Arc<Door>> {
        self.members.get(name).cloned()
    }

    pub(crate) fn members(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    pub(crate) fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Names of the clusters that have joined, whether they were named or not.
    pub(crate) async fn joined(&self) -> Result<Vec<String>, Trouble> {
        let list = self.control.fetch(CLUSTERS).await?.unwrap_or_default();
        let clusters = list["items"].as_array().into_iter().flatten();
        Ok(clusters.filter_map(|one| one["metadata"]["name"].as_str().map(str::to_owned)).collect())
    }
}

async fn connect(path: &Path) -> Result<Arc<Door>, Trouble> {
    let wrong = |error: &dyn std::fmt::Display| Trouble(format!("{}: {error}", path.display()));
    let file = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| wrong(&error))?;
    let client = Client::try_from(config).map_err(|error| wrong(&error))?;
    Ok(Arc::new(Door::new(client)))
}
