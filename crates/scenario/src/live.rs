//! A control plane that is running somewhere, and its members. What was made there is removed afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::door::Door;
use crate::ground::Trouble;

/// How long an expectation may take to come true.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long after a step is waited before anything is looked at, so that what must not happen could have. Also
/// makes sure that two steps never fall into the same second, which is all that timestamps tell apart.
const REST: Duration = Duration::from_millis(2_500);

/// A running control plane and its members.
#[derive(Clone)]
pub struct Live {
    control: Client,
    members: BTreeMap<String, Client>,
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

    pub(crate) fn control(&self) -> Door {
        Door::new(self.control.clone())
    }

    pub(crate) fn member(&self, name: &str) -> Option<Door> {
        self.members.get(name).cloned().map(Door::new)
    }

    pub(crate) fn members(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    pub(crate) fn patience(&self) -> Duration {
        PATIENCE
    }

    pub(crate) async fn settle(&self) -> Result<(), Trouble> {
        tokio::time::sleep(REST).await;
        Ok(())
    }
}

async fn connect(path: &Path) -> Result<Client, Trouble> {
    let wrong = |error: &dyn std::fmt::Display| Trouble(format!("{}: {error}", path.display()));
    let file = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| wrong(&error))?;
    Client::try_from(config).map_err(|error| wrong(&error))
}
