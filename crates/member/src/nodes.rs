//! Simulated nodes for a real cluster, whose API server and controllers run elsewhere. Binds pods to nodes, runs them
//! by their stages, and provisions volumes; everything else is left alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Passage};
use crate::key::{Kind, Named};
use crate::member::{NodeSpec, StartError, register_all};
use crate::runtime::{self, Ask, IDLE_WAITERS_MAX};
use crate::stages::Stages;
use crate::worker::Worker;

/// The kinds that the scheduler, kubelets and storage of a cluster reconcile. Other controllers create and count pods.
const LOOKED_AFTER: [Kind; 4] = [Kind::Node, Kind::Pod, Kind::Volume, Kind::Claim];

/// Running nodes. They end when they are dropped.
pub struct Nodes {
    stop: CancellationToken,
    /// No caller waits for idleness here; without the sender the task would end.
    _asks: mpsc::Sender<Ask>,
    task: JoinHandle<()>,
}

impl Nodes {
    /// Registers these nodes with the cluster behind `passage` and plays them.
    pub async fn start(
        name: &str,
        passage: Passage,
        nodes: &[NodeSpec],
        stages: Stages,
        now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Result<Self, StartError> {
        let built_in = Kind::built_in().filter(|(kind, _)| LOOKED_AFTER.contains(kind));
        let names: BTreeMap<Kind, Named> = stages.kinds().chain(built_in).collect();
        let kinds: Vec<Kind> = names.keys().copied().collect();
        let client = Client::new(passage, names);
        register_all(&client, nodes).await?;
        let worker = move || Worker::new(client.clone(), kinds.iter().copied(), stages.clone(), now.clone());
        let (asks, asked) = mpsc::channel(IDLE_WAITERS_MAX);
        let stop = CancellationToken::new();
        let task = runtime::start(name, worker, None, asked, stop.clone());
        Ok(Self { stop, _asks: asks, task })
    }

    /// Ends them; pods stay as they are.
    pub async fn shut_down(self) {
        self.stop.cancel();
        let Self { task, .. } = self;
        // A task that panicked has said so; everything it was about is in the cluster.
        let _ = task.await;
    }
}
