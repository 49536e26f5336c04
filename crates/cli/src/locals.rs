//! The local member clusters that `up` starts beside the control plane: each an API server with its own port, data and
//! kubeconfig context.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use apiserver::authn::Identity;
use apiserver::{ConnectionLimits, Frontend};
use member::{Member, NodeSpec, Options, Stages};
use serde_json::{Value, json};
use store::Store;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::certificates::Certificates;
use crate::encryption_key::EncryptionKey;
use crate::kubeconfig;

/// Regions and zones that local members are spread over.
const REGIONS_AND_ZONES: [(&str, &str); 3] = [("east", "east-1"), ("west", "west-1"), ("west", "west-2")];

/// A running local member.
pub struct Local {
    /// `member1` and so on.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    number: usize,
    member: Member,
    store: Store,
    served: JoinHandle<()>,
}

/// What a local member needs from `up`.
pub struct Setting<'a> {
    /// Where its data is kept; nowhere if none.
    pub data_dir: Option<&'a Path>,
    /// Where each listened the last time, so that clients find it there again.
    pub kubeconfig: &'a Path,
    /// The certificates of the control plane, which serve the members too.
    pub certificates: &'a Certificates,
    /// What makes secrets unreadable on disk.
    pub encryption_key: &'a EncryptionKey,
    /// Told when everything ends.
    pub stop: CancellationToken,
    /// How many connections each of them takes.
    pub connections: ConnectionLimits,
}

impl Local {
    /// Starts the member of this number, counted from 1.
    pub async fn start(number: usize, setting: &Setting<'_>) -> Result<Self> {
        let name = format!("member{number}");
        let store = match setting.data_dir {
            None => Store::in_memory(),
            Some(directory) => {
                let directory = directory.join("members").join(&name);
                crate::data_directory::private_directory(&directory)?;
                Store::open_encrypted(
                    &directory,
                    store::Options::default(),
                    setting.encryption_key.encryption(),
                )
                .with_context(|| format!("open the store of {name}"))?
            }
        };
        let options = Options {
            name: name.clone(),
            nodes: vec![node(&name, number)],
            store: store.clone(),
            now: Arc::new(jiff::Timestamp::now),
            random: Arc::new(rand::random),
            root_ca: setting.certificates.authority.clone(),
            stages: Stages::builtin(),
        };
        let member = Member::start(options).await.with_context(|| format!("start {name}"))?;
        let listener = listen(setting.kubeconfig, &name).await?;
        let address = listener.local_addr().context("read the port")?;
        member.server().advertise(address);
        let frontend = Frontend::new(setting.certificates.credentials()?)?.with_limits(setting.connections);
        let (server, stop) = (member.server().clone(), setting.stop.clone());
        let served = tokio::spawn(async move { frontend.serve(listener, server, stop.cancelled()).await });
        Ok(Self { name, address, number, member, store, served })
    }

    /// A client for it inside this process.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.member.server().trusting(Identity::untracked("longshore")), "default")
    }

    /// Why this process has to be started again for it, asked for at any time; none while it has not.
    pub fn liveness(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        liveness(self.name.clone(), self.store.clone())
    }

    /// The zone it is in, which begins with its region.
    pub fn zone(&self) -> &'static str {
        place(self.number).1
    }

    /// The Cluster object that joins it.
    pub fn cluster(&self) -> Value {
        let (region, zone) = place(self.number);
        json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": { "name": self.name },
            "spec": {
                "syncMode": "Push",
                "apiEndpoint": format!("https://{}", self.address),
                "provider": "local",
                "region": region,
                "zones": [zone],
            },
        })
    }

    /// Ends it; what it acknowledged is kept.
    pub async fn shut_down(self) -> Result<()> {
        // A task that panicked has said so already.
        let _ = self.served.await;
        self.member.shut_down().await;
        self.store.close().await.with_context(|| format!("close the store of {}", self.name))
    }
}

fn liveness(name: String, store: Store) -> impl Fn() -> Option<String> + Send + Sync + 'static {
    move || store.gave_up().map(|why| format!("the store of {name}: {why}"))
}

/// Where it listened before, if that is free, so that its Cluster and its clients need not change.
async fn listen(kubeconfig: &Path, name: &str) -> Result<TcpListener> {
    let before = kubeconfig::last_address(kubeconfig, name);
    if let Some(address) = before.filter(|address| address.ip() == Ipv4Addr::LOCALHOST)
        && let Ok(listener) = TcpListener::bind(address).await
    {
        return Ok(listener);
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("find a free port")
}

fn place(number: usize) -> (&'static str, &'static str) {
    REGIONS_AND_ZONES[(number - 1) % REGIONS_AND_ZONES.len()]
}

fn node(member: &str, number: usize) -> NodeSpec {
    let (region, zone) = place(number);
    let labels = [("topology.kubernetes.io/region", region), ("topology.kubernetes.io/zone", zone)];
    NodeSpec {
        name: format!("{member}-node1"),
        cpu: "1k".to_owned(),
        memory: "4Ti".to_owned(),
        pods: 100_000,
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    }
}

#[cfg(test)]
mod tests {
    use store::{Change, Expect, Measured, Payload, Write};

    use super::*;

    fn panicking(_: &[u8]) -> Measured {
        panic!("injected into the writer")
    }

    #[tokio::test]
    async fn a_member_that_only_a_restart_helps_says_so() {
        let folder = tempfile::tempdir().expect("there is room for a temporary directory");
        let store = Store::open(folder.path(), store::Options::default()).expect("a store");
        let liveness = liveness("member1".to_owned(), store.clone());
        assert_eq!(liveness(), None);
        store.measure("t", panicking);
        let (expect, change) = (Expect::Any, Change::Put(Payload::plain("value")));
        let write = Write { table: "t".into(), key: "a".into(), expect, limits: Vec::new(), change };
        store.write(write).await.expect_err("the writer panicked");
        let begun = std::time::Instant::now();
        while liveness().is_none() {
            let waited = begun.elapsed();
            assert!(waited < std::time::Duration::from_secs(60), "nothing says that the writer is gone");
            tokio::task::yield_now().await;
        }
        let why = liveness().expect("it was just looked at");
        assert!(why.starts_with("the store of member1: the writer thread panicked"), "{why}");
    }
}
