//! Longshore on a test bed: replicas of `longshore controllers` on its control plane, its members joined with
//! `longshore join`, and the scenarios played on it with `longshore test`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::account::account;
use super::process::Process;
use super::relay::Relay;
use super::{Bed, free_port, until};

/// How long members may take to be ready.
const PATIENCE: Duration = Duration::from_secs(90);
/// Where the clusters of a control plane are listed.
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

/// A test bed on which Longshore runs.
pub struct Plane {
    /// What it runs on.
    pub bed: Bed,
    /// Its replicas; one of them leads.
    pub replicas: Vec<Process>,
    binary: PathBuf,
    /// How many of the members have joined.
    joined: usize,
    /// What stands before the webhooks of all replicas, as a Service does.
    relay: Option<Relay>,
    /// Where each replica tells how it is.
    health: Vec<u16>,
}

/// The answer to a plain request, head and all.
async fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

impl Plane {
    /// Starts so many replicas of this binary with these further arguments, joins every member and waits until all are
    /// ready.
    pub async fn start(bed: Bed, binary: &Path, replicas: usize, arguments: &[&str]) -> Result<Self> {
        let mut plane = Self::without_controllers(bed, binary);
        plane.run_replicas(replicas, arguments).await?;
        let all = plane.bed.members.len();
        plane.join_first(all).await?;
        Ok(plane)
    }

    /// A bed on which nothing of ours runs yet.
    pub fn without_controllers(bed: Bed, binary: &Path) -> Self {
        let (replicas, binary, health) = (Vec::new(), binary.to_owned(), Vec::new());
        Self { bed, replicas, binary, joined: 0, relay: None, health }
    }

    /// Ends every replica and starts so many with these arguments; waits until one of them knows everything.
    pub async fn run_replicas(&mut self, replicas: usize, arguments: &[&str]) -> Result<()> {
        self.replicas.clear();
        let webhooks: Vec<u16> = (0..replicas).map(|_| free_port()).collect::<Result<_>>()?;
        let health: Vec<u16> = (0..replicas).map(|_| free_port()).collect::<Result<_>>()?;
        let relay = Relay::start(&webhooks).await?;
        let account = account(&self.bed.control, self.bed.directory()).await?;
        for number in 0..replicas {
            let mut command = self.longshore(["controllers".into(), "--webhook-url".into()]);
            command
                .arg(format!("https://127.0.0.1:{}", relay.port()))
                .arg(format!("--webhook-listen=127.0.0.1:{}", webhooks[number]))
                .arg(format!("--listen=127.0.0.1:{}", health[number]))
                .env("KUBECONFIG", &account)
                .args(arguments);
            let log = self.bed.directory().join(format!("controllers{number}.log"));
            self.replicas.push(Process::new(&format!("longshore controllers {number}"), command, &log));
        }
        self.relay = Some(relay);
        self.health = health;
        self.start_all()?;
        let ready =
            until("that a replica is ready", PATIENCE, async || self.ready_replicas().await > 0).await;
        ready.with_context(|| self.last_words())
    }

    /// How many replicas know everything.
    pub async fn ready_replicas(&self) -> usize {
        let mut ready = 0;
        for port in &self.health {
            let answer = get(*port, "/readyz").await;
            ready += usize::from(answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200")));
        }
        ready
    }

    /// What a replica counts.
    pub async fn metrics(&self, replica: usize) -> String {
        get(self.health[replica], "/metrics").await.unwrap_or_default()
    }

    /// Joins every member, which nobody need look after yet.
    pub fn join_without_waiting(&mut self) -> Result<()> {
        self.join_or_leave(self.bed.members.len())
    }

    /// Joins members, or lets them go, until the first so many have joined; waits until they are ready.
    pub async fn join_first(&mut self, count: usize) -> Result<()> {
        self.join_or_leave(count)?;
        self.until_ready().await
    }

    fn join_or_leave(&mut self, count: usize) -> Result<()> {
        for (number, member) in self.bed.members.iter().enumerate() {
            let verb = match (number < self.joined, number < count) {
                (false, true) => "join",
                (true, false) => "unjoin",
                _ => continue,
            };
            let mut command =
                self.longshore([verb.into(), member.name.clone().into(), "--cluster-kubeconfig".into()]);
            let done = command.arg(&member.kubeconfig).output()?;
            let said = String::from_utf8_lossy(&done.stderr);
            ensure!(done.status.success(), "{verb} {}: {said}\n{}", member.name, self.last_words());
        }
        self.joined = count;
        Ok(())
    }

    /// Starts every replica that does not run.
    pub fn start_all(&mut self) -> Result<()> {
        self.replicas.iter_mut().try_for_each(Process::start)
    }

    /// Starts every replica again that ended by itself, as whoever runs them does; those that were killed stay dead.
    pub fn start_ended(&mut self) -> Result<()> {
        self.replicas.iter_mut().try_for_each(Process::start_again)
    }

    /// Waits until every member is ready.
    pub async fn until_ready(&self) -> Result<()> {
        let door = self.bed.control.door();
        let count = self.joined;
        until("that every member is ready", PATIENCE, async || {
            let Ok(mut connection) = door.connect().await else { return false };
            let answer = connection.raw(Method::GET, CLUSTERS, "").await;
            answer.is_ok_and(|(_, body)| {
                String::from_utf8_lossy(&body).matches("ClusterReady").count() >= count
            })
        })
        .await
        .with_context(|| self.last_words())
    }

    /// What the replicas said last.
    pub fn last_words(&self) -> String {
        let words: Vec<String> = self.replicas.iter().map(Process::last_words).collect();
        words.join("\n")
    }

    /// A command line of the binary that is about the control plane.
    pub fn longshore<const N: usize>(&self, words: [OsString; N]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words).env("KUBECONFIG", &self.bed.control.kubeconfig);
        command
    }

    /// The command that plays these scenarios.
    pub fn test(&self, files: &[PathBuf]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("test").args(files).arg("--control").arg(&self.bed.control.kubeconfig);
        for member in self.bed.members.iter().take(self.joined) {
            let mut named = OsString::from(&member.name);
            named.push("=");
            named.push(&member.kubeconfig);
            command.arg("--member").arg(named);
        }
        command
    }

    /// Plays these scenarios and answers with what came of it.
    pub fn play(&self, files: &[PathBuf]) -> Result<Output> {
        self.test(files).output().context("start longshore test")
    }
}
