//! A control plane that is running somewhere, and its members. What was made there is removed afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use crate::door::Door;
use crate::ground::Trouble;
use crate::hands::{Favour, Hands};
use crate::step::Cluster;

/// How long an expectation may take to come true.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where the clusters of a control plane are listed.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// A running control plane and its members.
#[derive(Clone)]
pub struct Live {
    control: Arc<Door>,
    members: BTreeMap<String, Arc<Door>>,
    /// Who does what no user can.
    hands: Option<Hands>,
}

impl Live {
    /// By the files that lead there. Has to be called inside a runtime.
    pub async fn connect(control: &Path, members: &[(String, std::path::PathBuf)]) -> Result<Self, Trouble> {
        let mut clients = BTreeMap::new();
        for (name, path) in members {
            clients.insert(name.clone(), connect(path).await?);
        }
        Ok(Self { control: connect(control).await?, members: clients, hands: None })
    }

    /// The same with somebody who lets clusters join, cuts them off, starts controllers anew and lets time pass.
    #[must_use]
    pub fn with_hands(self, hands: Hands) -> Self {
        Self { hands: Some(hands), ..self }
    }

    pub(crate) fn has_hands(&self) -> bool {
        self.hands.is_some()
    }

    fn hands(&self, favour: &str) -> Result<&Hands, Trouble> {
        self.hands.as_ref().ok_or_else(|| Trouble(format!("a live control plane cannot be made to {favour}")))
    }

    /// A cluster joins.
    pub(crate) async fn join(&mut self, cluster: &Cluster) -> Result<(), Trouble> {
        let hands = self.hands("let a cluster join")?;
        let kubeconfig = hands.ask(|reply| Favour::Join(cluster.clone(), reply)).await?;
        self.members.insert(cluster.name.clone(), connect(&kubeconfig).await?);
        Ok(())
    }

    /// A cluster can be reached, or not.
    pub(crate) async fn reach(&self, name: &str, reachable: bool) -> Result<(), Trouble> {
        let hands = self.hands("cut a cluster off")?;
        hands.ask(|reply| Favour::Reach(name.to_owned(), reachable, reply)).await
    }

    /// Controllers start anew, where somebody can do that.
    pub(crate) async fn restart(&self) -> Result<(), Trouble> {
        match &self.hands {
            Some(hands) => hands.ask(Favour::Restart).await,
            None => Ok(()),
        }
    }

    /// Time passes.
    pub(crate) async fn wait(&self, time: Duration) -> Result<(), Trouble> {
        match &self.hands {
            Some(hands) => hands.ask(|reply| Favour::Pass(time, reply)).await,
            None => {
                tokio::time::sleep(time).await;
                Ok(())
            }
        }
    }

    /// What time it is for the control plane.
    pub(crate) async fn now(&self) -> Result<Timestamp, Trouble> {
        match &self.hands {
            Some(hands) => hands.ask(Favour::Time).await,
            None => Ok(Timestamp::now()),
        }
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

    /// The clusters that have joined, whether they were named or not.
    pub(crate) async fn joined(&self) -> Result<Vec<Value>, Trouble> {
        let mut list =
            self.control.fetch(&controllers::rest::Path::fixed(CLUSTERS)).await?.unwrap_or_default();
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
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
