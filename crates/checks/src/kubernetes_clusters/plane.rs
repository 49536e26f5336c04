//! Longshore on a test bed: replicas of `longshore controllers` on its control plane, its members joined with
//! `longshore join`, and the scenarios played on it with `longshore test`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Method;
use scenario::Cluster;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::account::account;
use super::clock::Clock;
use super::process::Process;
use super::relay::Relay;
use super::{KubernetesClusters, free_port, until};

mod joined;

/// How long controllers and members may take to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
/// The lease of the replica that leads.
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/longshore-controllers";

/// A test bed on which Longshore runs.
pub struct Plane {
    /// What it runs on.
    pub bed: KubernetesClusters,
    /// Its replicas; one of them leads.
    pub replicas: Vec<Process>,
    binary: PathBuf,
    /// Which of the members have joined, and as what.
    joined: Vec<Option<Cluster>>,
    /// The way of the controllers to each member.
    ways: Vec<Relay>,
    /// What the controllers go by, if not by the clock of the machine.
    clock: Option<Clock>,
    /// What stands before the webhooks of all replicas, as a Service does.
    relay: Option<Relay>,
    /// The health port of each replica.
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
    pub async fn start(
        bed: KubernetesClusters,
        binary: &Path,
        replicas: usize,
        arguments: &[&str],
    ) -> Result<Self> {
        let mut plane = Self::without_controllers(bed, binary);
        plane.run_replicas(replicas, arguments).await?;
        plane.join_without_waiting().await?;
        plane.until_ready().await?;
        Ok(plane)
    }

    /// A bed on which nothing of ours runs yet.
    pub fn without_controllers(bed: KubernetesClusters, binary: &Path) -> Self {
        let (replicas, binary, health) = (Vec::new(), binary.to_owned(), Vec::new());
        let (joined, ways, clock) = (Vec::new(), Vec::new(), None);
        Self { bed, replicas, binary, joined, ways, clock, relay: None, health }
    }

    /// Lets controllers that are started from now on go by a clock that can be put forward.
    pub fn with_clock(mut self) -> Result<Self> {
        self.clock = Some(Clock::new(self.bed.directory())?);
        Ok(self)
    }

    /// What time it is for the controllers.
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.as_ref().map_or_else(jiff::Timestamp::now, Clock::now)
    }

    /// Lets time pass for the controllers: quickly, if they have a clock of their own.
    pub async fn pass(&mut self, time: Duration) -> Result<()> {
        match &mut self.clock {
            Some(clock) => {
                clock.pass(time).await?;
                self.until_recovered().await;
                Ok(())
            }
            None => {
                tokio::time::sleep(time).await;
                Ok(())
            }
        }
    }

    /// Ends every replica and starts so many with these arguments; waits until one of them knows everything.
    pub async fn run_replicas(&mut self, replicas: usize, arguments: &[&str]) -> Result<()> {
        // After SIGTERM a replica releases the lease; otherwise others would have to wait until it expires.
        self.replicas.iter_mut().for_each(Process::end);
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
                .arg("--drain-seconds=0")
                .env("KUBECONFIG", &account)
                .args(arguments);
            if let Some(clock) = &self.clock {
                clock.rule(&mut command);
            }
            let log = self.bed.directory().join(format!("controllers{number}.log"));
            self.replicas.push(Process::new(&format!("longshore controllers {number}"), command, &log));
        }
        self.relay = Some(relay);
        self.health = health;
        self.start_all()?;
        let ready =
            until("that a replica is ready", READY_TIMEOUT, async || self.ready_replicas().await > 0).await;
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

    /// Restarts replicas that exited by themselves, so that no test has to wait until the lease of a dead one expires.
    pub async fn revive(&mut self) -> Result<()> {
        if self.replicas.iter_mut().all(Process::is_running) {
            return Ok(());
        }
        self.bed.control.api_client().request(Method::DELETE, LEASE, "").await;
        self.restart().await
    }

    /// Copies everything that was said to the directory that LONGSHORE_BED_LOGS names, if it names one.
    pub fn keep_logs(&self) -> Result<()> {
        let Some(target) = std::env::var_os("LONGSHORE_BED_LOGS") else { return Ok(()) };
        let directory = self.bed.directory();
        let target = Path::new(&target).join(directory.file_name().unwrap_or_default());
        for (name, log) in self.bed.logs()? {
            std::fs::create_dir_all(&target)?;
            std::fs::copy(&log, target.join(name)).with_context(|| format!("keep {}", log.display()))?;
        }
        Ok(())
    }

    /// Ends every replica in order and starts it again; waits until one of them knows everything.
    pub async fn restart(&mut self) -> Result<()> {
        self.replicas.iter_mut().for_each(Process::end);
        self.start_all()?;
        until("that a replica is ready", READY_TIMEOUT, async || self.ready_replicas().await > 0).await
    }

    /// Starts every replica that does not run.
    pub fn start_all(&mut self) -> Result<()> {
        self.replicas.iter_mut().try_for_each(Process::start)
    }

    /// Restarts every replica that exited by itself, as a kubelet would; those that a test killed stay dead.
    pub fn start_ended(&mut self) -> Result<()> {
        self.replicas.iter_mut().try_for_each(Process::start_again)
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
        for (name, kubeconfig) in self.members() {
            let mut named = OsString::from(name);
            named.push("=");
            named.push(kubeconfig);
            command.arg("--member").arg(named);
        }
        command
    }

    /// The members that have joined, each with what lets an administrator in.
    pub fn members(&self) -> Vec<(String, PathBuf)> {
        let all = self.joined.iter().zip(&self.bed.members);
        let joined = all.filter_map(|(joined, member)| Some((joined.as_ref()?, member)));
        joined.map(|(cluster, member)| (cluster.name.clone(), member.kubeconfig.clone())).collect()
    }

    /// Plays these scenarios and answers with what came of it.
    pub fn play(&self, files: &[PathBuf]) -> Result<Output> {
        self.test(files).output().context("start longshore test")
    }
}
