//! The environment of a scenario: simulated or live. The operations that the player needs of either, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use decide::Snapshot;
use decide::snapshot::Interpreters;
use decide::why::Why;
use jiff::Timestamp;

use crate::api_client::ApiClient;
use crate::error::PlayError;
use crate::live::Live;
use crate::reference::Reference;
use crate::simulated::Simulated;
use crate::step::Cluster;

/// Where a scenario is played.
pub enum Environment {
    /// In this process.
    Simulated(Box<Simulated>),
    /// On a control plane that is running somewhere.
    Live(Live),
}

impl Environment {
    /// The control plane.
    pub fn control(&self) -> Arc<ApiClient> {
        match self {
            Environment::Simulated(simulated) => Arc::new(simulated.control()),
            Environment::Live(live) => live.control(),
        }
    }

    /// A member.
    pub fn member(&self, name: &str) -> Result<Arc<ApiClient>, PlayError> {
        let api_client = match self {
            Environment::Simulated(simulated) => simulated.member(name).map(Arc::new),
            Environment::Live(live) => live.member(name),
        };
        api_client.ok_or_else(|| {
            PlayError(format!("there is no member {name}; there are {}", self.members().join(", ")))
        })
    }

    /// A member, or the control plane if none is named.
    pub fn place(&self, member: Option<&str>) -> Result<Arc<ApiClient>, PlayError> {
        match member {
            None => Ok(self.control()),
            Some(member) => self.member(member),
        }
    }

    /// Names of all members.
    pub fn members(&self) -> Vec<String> {
        match self {
            Environment::Simulated(simulated) => simulated.members(),
            Environment::Live(live) => live.members(),
        }
    }

    /// A cluster joins.
    pub async fn join(&mut self, cluster: &Cluster) -> Result<(), PlayError> {
        match self {
            Environment::Simulated(simulated) => simulated.join(cluster).await,
            Environment::Live(live) => live.join(cluster).await,
        }
    }

    /// A cluster can be reached, or not.
    pub async fn reach(&self, name: &str, reachable: bool) -> Result<(), PlayError> {
        self.member(name)?;
        match self {
            Environment::Simulated(simulated) => {
                simulated.faults().reach(name, reachable);
                Ok(())
            }
            Environment::Live(live) => live.reach(name, reachable).await,
        }
    }

    /// Restarts the controllers, where the environment can do that. No expectation may depend on it, so elsewhere the
    /// step does nothing.
    pub async fn restart(&mut self) -> Result<(), PlayError> {
        match self {
            Environment::Simulated(simulated) => {
                simulated.restart().await;
                Ok(())
            }
            Environment::Live(live) => live.restart().await,
        }
    }

    /// What time it is for the control plane.
    pub async fn now(&self) -> Result<Timestamp, PlayError> {
        match self {
            Environment::Simulated(simulated) => Ok((simulated.ctx().now)()),
            Environment::Live(live) => live.now().await,
        }
    }

    /// Time passes.
    pub async fn wait(&self, time: Duration) -> Result<(), PlayError> {
        match self {
            Environment::Simulated(_) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Environment::Live(live) => live.wait(time).await,
        }
    }

    /// What was counted, where that can be asked.
    pub fn metrics(&self) -> Option<BTreeMap<String, f64>> {
        match self {
            Environment::Simulated(simulated) => Some(simulated.metrics()),
            Environment::Live(_) => None,
        }
    }

    /// How long an expectation may take to come true.
    pub fn deadline(&self) -> Duration {
        match self {
            Environment::Simulated(_) => Duration::ZERO,
            Environment::Live(live) => live.deadline(),
        }
    }

    /// Why a template is propagated as it is, where the brain can be asked.
    pub async fn why(&self, reference: &Reference) -> Option<Why> {
        let Environment::Simulated(simulated) = self else { return None };
        let object = simulated.control().get(reference).await.ok()??;
        let text =
            |pointer: &str| object.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
        let key = decide::TemplateKey {
            api_version: text("/apiVersion").to_owned(),
            kind: text("/kind").to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            name: text("/metadata/name").to_owned(),
        };
        // The view has no moment of its own; why is asked now.
        let ctx = simulated.ctx();
        let snapshot = Snapshot { now: (ctx.now)(), ..ctx.cache.snapshot().clone() };
        decide::why::why(&snapshot, &key, Interpreters::BUILT_IN)
    }
}
