//! One real cluster: etcd, kube-apiserver and kube-controller-manager, each a process, and the kubeconfig of its
//! administrator.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::certificates::Certificates;
use super::process::Process;
use super::{Programs, free_port};
use crate::client::ApiClient;

/// How long a cluster may take to be ready: four of them may share two processors.
const READY_TIMEOUT: Duration = Duration::from_secs(180);

/// What a cluster is for; it decides which of Kubernetes' controllers it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Templates lie here and nothing may come to life: only what keeps the store tidy and issues tokens.
    Control,
    /// A cluster that runs things: everything but what watches over machines and volumes, which are played.
    Member,
}

impl Role {
    fn controllers(self) -> &'static str {
        match self {
            Role::Control => {
                "namespace-controller,garbage-collector-controller,serviceaccount-controller,serviceaccount-token-controller,clusterrole-aggregation-controller,root-ca-certificate-publisher-controller"
            }
            Role::Member => {
                "*,-node-lifecycle-controller,-node-ipam-controller,-persistentvolume-binder-controller,-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller,-cloud-node-lifecycle-controller"
            }
        }
    }
}

/// One cluster.
pub struct Cluster {
    /// `control`, `member1` and so on.
    pub name: String,
    /// What lets an administrator in.
    pub kubeconfig: PathBuf,
    /// `https://127.0.0.1:PORT`.
    pub endpoint: String,
    /// The store.
    pub etcd: Process,
    /// The API server.
    pub server: Process,
    /// Kubernetes' own controllers.
    pub controllers: Process,
    directory: PathBuf,
    store_port: u16,
}

impl Cluster {
    /// Everything it needs, in a directory of its own; nothing runs yet.
    pub(super) fn prepare(programs: &Programs, name: &str, role: Role, directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory).with_context(|| format!("make a place for {name}"))?;
        let certificates = Certificates::make(name, directory)?;
        let (client, peer, port) = (free_port()?, free_port()?, free_port()?);
        let endpoint = format!("https://127.0.0.1:{port}");
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_text(name, &endpoint, &certificates))?;
        let store = format!("http://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let log = |server: &str| directory.join(format!("{server}.log"));
        let mut etcd = programs.command("etcd");
        etcd.arg("--data-dir").arg(directory.join("etcd")).args([
            &format!("--listen-client-urls={store}"),
            &format!("--advertise-client-urls={store}"),
            &format!("--listen-peer-urls={peer}"),
            &format!("--initial-advertise-peer-urls={peer}"),
            &format!("--initial-cluster=default={peer}"),
            "--logger=zap",
            // Servers are killed here, the machine never is: what was written is there without waiting for the disk.
            "--unsafe-no-fsync",
            "--log-level=error",
        ]);
        let mut server = programs.command("kube-apiserver");
        server.args(server_arguments(directory, port, &store)?);
        if role == Role::Control {
            // As in Karmada: no controller runs that would ever remove the protection finalizer from a claim.
            server.arg("--disable-admission-plugins=StorageObjectInUseProtection");
        }
        let mut controllers = programs.command("kube-controller-manager");
        controllers.args(controllers_arguments(directory, &kubeconfig, role));
        Ok(Self {
            name: name.to_owned(),
            kubeconfig,
            endpoint,
            etcd: Process::new(&format!("etcd of {name}"), etcd, &log("etcd")),
            server: Process::new(&format!("kube-apiserver of {name}"), server, &log("kube-apiserver")),
            controllers: Process::new(
                &format!("kube-controller-manager of {name}"),
                controllers,
                &log("kube-controller-manager"),
            ),
            directory: directory.to_owned(),
            store_port: client,
        })
    }

    /// Starts whatever of it does not run.
    pub fn start(&mut self) -> Result<()> {
        self.etcd.start()?;
        self.server.start()
    }

    /// Ends all of its servers.
    pub fn stop(&mut self) {
        for server in [&mut self.controllers, &mut self.server, &mut self.etcd] {
            server.end();
        }
    }

    /// Copies the store of a cluster that is stopped.
    pub fn back_up(&self, to: &Path) -> Result<()> {
        copy(&self.directory.join("etcd"), to)
    }

    /// Puts a copy in the place of the store of a cluster that is stopped.
    pub fn restore(&self, from: &Path) -> Result<()> {
        let store = self.directory.join("etcd");
        std::fs::remove_dir_all(&store).with_context(|| format!("remove {}", store.display()))?;
        copy(from, &store)
    }

    /// Waits until its API server says that it is ready, and lets its controllers begin. An API server that gave up
    /// because its store was late is started again.
    pub async fn until_ready(&mut self) -> Result<()> {
        let begun = std::time::Instant::now();
        while !self.is_ready().await {
            if begun.elapsed() > READY_TIMEOUT {
                bail!(
                    "{} is not ready after {} s:\n{}",
                    self.name,
                    READY_TIMEOUT.as_secs(),
                    self.server.last_words()
                );
            }
            self.start()?;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.controllers.start()
    }

    /// Where its API server listens on this machine.
    pub fn port(&self) -> Result<u16> {
        let port = self.endpoint.rsplit(':').next().unwrap_or_default();
        port.parse().with_context(|| format!("find the port in {}", self.endpoint))
    }

    async fn is_ready(&self) -> bool {
        let Ok(mut connection) = ApiClient::open(&self.kubeconfig).connect().await else { return false };
        let answer = connection.raw(http::Method::GET, "/readyz", "").await;
        answer.is_ok_and(|(status, _)| status.is_success())
    }

    /// Where its store listens.
    pub(super) fn store_port(&self) -> u16 {
        self.store_port
    }

    /// A small client with the administrator's rights.
    pub fn api_client(&self) -> ApiClient {
        ApiClient::open(&self.kubeconfig)
    }

    /// Every request that was made to change something, as the API server wrote it down.
    pub fn audit(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.directory.join("audit.log")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status();
    let copied = status.with_context(|| format!("copy {}", from.display()))?;
    ensure!(copied.success(), "copy {} to {}", from.display(), to.display());
    Ok(())
}

/// Every write is written down, and nothing else.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
";

fn server_arguments(directory: &Path, port: u16, store: &str) -> Result<Vec<String>> {
    std::fs::write(directory.join("audit.yaml"), AUDIT_POLICY)?;
    let file = |name: &str| directory.join(name).display().to_string();
    Ok(vec![
        format!("--etcd-servers={store}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--audit-policy-file={}", file("audit.yaml")),
        format!("--audit-log-path={}", file("audit.log")),
    ])
}

fn controllers_arguments(directory: &Path, kubeconfig: &Path, role: Role) -> Vec<String> {
    let file = |name: &str| directory.join(name).display().to_string();
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--controllers={}", role.controllers()),
        format!("--root-ca-file={}", file("ca.crt")),
        format!("--service-account-private-key-file={}", file("accounts.key")),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--use-service-account-credentials=false".to_owned(),
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
    ]
}

fn kubeconfig_text(name: &str, endpoint: &str, certificates: &Certificates) -> String {
    let authority = STANDARD.encode(&certificates.authority);
    let certificate = STANDARD.encode(&certificates.administrator.certificate);
    let key = STANDARD.encode(&certificates.administrator.key);
    format!(
        "apiVersion: v1
kind: Config
current-context: {name}
clusters:
- name: {name}
  cluster:
    server: {endpoint}
    certificate-authority-data: {authority}
users:
- name: administrator
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: administrator
"
    )
}
