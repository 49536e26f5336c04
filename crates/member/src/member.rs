//! The handle of a member: starts it, sends requests to it, and stops it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::error::ApiError;
use apiserver::authn::Identity;
use apiserver::{ApiServer, Config, admission};
use jiff::Timestamp;
use serde_json::{Value, json};
use store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Passage, Refusal};
use crate::key::{Key, Kind, Named};
use crate::plan::{Write, status};
use crate::runtime::{self, Ask, IDLE_WAITERS_MAX};
use crate::stages::Stages;
use crate::worker::Worker;
use crate::write_backoff::WriteBackoff;

/// The user name of a member's own controllers.
const IDENTITY: &str = "system:member";
/// How long watches may resume. Several members share a machine, and history is most of what they keep.
const HISTORY_KEPT: Duration = Duration::from_secs(60);
const HISTORY_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A node that a member has from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its processors, as a quantity.
    pub cpu: String,
    /// Its memory, as a quantity.
    pub memory: String,
    /// How many pods it takes.
    pub pods: u32,
    /// Its labels, such as `topology.kubernetes.io/region` and `topology.kubernetes.io/zone`.
    pub labels: BTreeMap<String, String>,
}

/// What a member is made of.
pub struct Options {
    /// Its name, for the log.
    pub name: String,
    /// Its nodes; those that are there already get this capacity.
    pub nodes: Vec<NodeSpec>,
    /// Where its objects live. It stays open when the member ends.
    pub store: Store,
    /// The wall clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// A fresh random number for uids and generated names.
    pub random: Arc<dyn Fn() -> u128 + Send + Sync>,
    /// The certificate authority that clients inside the cluster would trust, in PEM.
    pub root_ca: String,
    /// How its objects advance.
    pub stages: Stages,
}

/// Why a member did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The API server could not be prepared.
    #[error("prepare the API server: {0}")]
    Server(#[from] ApiError),
    /// A node was refused.
    #[error("register node {node}: {why}")]
    Node {
        /// The node.
        node: String,
        /// What the API server said.
        why: String,
    },
}

/// The member has ended, so nothing will settle any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the member has ended")]
pub struct Stopped;

/// A running cluster to play with. It ends when it is dropped.
pub struct Member {
    server: ApiServer,
    store: Store,
    asks: mpsc::Sender<Ask>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Member {
    /// Starts a member, or goes on where an earlier one on the same store was.
    pub async fn start(options: Options) -> Result<Member, StartError> {
        let Options { name, nodes, store, now, random, root_ca, stages } = options;
        let admission = admission::admit_all();
        let config = Config { store: store.clone(), now: now.clone(), random, admission, root_ca };
        let server = ApiServer::new(config).await?;
        let names: BTreeMap<Kind, Named> = stages.kinds().chain(Kind::built_in()).collect();
        let kinds: Vec<Kind> = names.keys().copied().collect();
        let passage = Passage::new(server.trusting(Identity::untracked(IDENTITY)));
        let client = Client::new(passage, names);
        register_all(&client, &nodes).await?;
        let worker = move || Worker::new(client.clone(), kinds.iter().copied(), stages.clone(), now.clone());
        let revisions = store.clone();
        let write_backoff = Some(WriteBackoff::new(move || revisions.revision(), Instant::now()));
        let (asks, asked) = mpsc::channel(IDLE_WAITERS_MAX);
        let stop = CancellationToken::new();
        let mut tasks = server.start_controllers_with_history(HISTORY_KEPT, HISTORY_BYTES_MAX);
        tasks.push(runtime::start(&name, worker, write_backoff, asked, stop.clone()));
        Ok(Member { server, store, asks, stop, tasks })
    }

    /// Its API server, to be served over TLS or used in this process.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Waits until nothing is left to do: every object has reached its last stage, and what was to be
    /// deleted is gone. Delays of stages are waited for, deadlines of failing workloads are not.
    pub async fn settle(&self) -> Result<(), Stopped> {
        loop {
            tokio::select! {
                biased;
                () = self.asks.closed() => return Err(Stopped),
                () = self.server.controllers_idle() => {}
            }
            let revision = self.store.revision();
            let (ask, answer) = oneshot::channel();
            self.asks.send(ask).await.map_err(|_| Stopped)?;
            answer.await.map_err(|_| Stopped)?;
            if self.server.are_controllers_idle() && self.store.revision() == revision {
                return Ok(());
            }
        }
    }

    /// Ends every watch and every task. Everything is in the store.
    pub async fn shut_down(mut self) {
        self.end();
        for task in std::mem::take(&mut self.tasks) {
            // A task that panicked has said so; everything it was about is in the store.
            let _ = task.await;
        }
    }

    fn end(&self) {
        self.stop.cancel();
        self.server.shut_down();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes every node, or gives those that are there their capacity.
pub(crate) async fn register_all(client: &Client, nodes: &[NodeSpec]) -> Result<(), StartError> {
    for node in nodes {
        register(client, node)
            .await
            .map_err(|refusal| StartError::Node { node: node.name.clone(), why: refusal.message })?;
    }
    Ok(())
}

async fn register(client: &Client, node: &NodeSpec) -> Result<(), Refusal> {
    let amounts = json!({ "cpu": node.cpu, "memory": node.memory, "pods": node.pods.to_string() });
    let key = Key::new(Kind::Node, "", &node.name);
    let write = match client.get(&key).await? {
        None => Some(Write::Create { kind: Kind::Node, object: node_object(node, &amounts) }),
        Some(object) => {
            let mut next = object["status"].clone();
            next["capacity"] = amounts.clone();
            next["allocatable"] = amounts;
            status(&key, &object, next)
        }
    };
    match write {
        Some(write) => client.write(&write).await.map(drop),
        None => Ok(()),
    }
}

fn node_object(node: &NodeSpec, amounts: &Value) -> Value {
    let mut labels = json!({
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    });
    for (key, value) in &node.labels {
        labels[key] = value.as_str().into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": node.name, "labels": labels },
        "status": { "capacity": amounts, "allocatable": amounts },
    })
}
