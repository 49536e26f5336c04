//! Longshore on a test bed: replicas of `longshore controllers` on its control plane, its members joined with
//! `longshore join`, and the scenarios played on it with `longshore test`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;

use super::process::Process;
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
}

impl Plane {
    /// Starts so many replicas of this binary with these further arguments, joins every member and waits until all are
    /// ready.
    pub async fn start(bed: Bed, binary: &Path, replicas: usize, arguments: &[&str]) -> Result<Self> {
        let mut plane = Self { bed, replicas: Vec::new(), binary: binary.to_owned(), joined: 0 };
        plane.run_replicas(replicas, arguments).await?;
        let all = plane.bed.members.len();
        plane.join_first(all).await?;
        Ok(plane)
    }

    /// Ends every replica and starts so many with these arguments.
    pub async fn run_replicas(&mut self, replicas: usize, arguments: &[&str]) -> Result<()> {
        self.replicas.clear();
        for number in 0..replicas {
            let replica = self.replica(number, arguments)?;
            self.replicas.push(replica);
        }
        self.start_all()?;
        let door = self.bed.control.door();
        until("the definition of Cluster", PATIENCE, async || {
            let Ok(mut connection) = door.connect().await else { return false };
            connection.raw(Method::GET, CLUSTERS, "").await.is_ok_and(|(status, _)| status.is_success())
        })
        .await
        .with_context(|| self.last_words())
    }

    /// Joins members, or lets them go, until the first so many have joined; waits until they are ready.
    pub async fn join_first(&mut self, count: usize) -> Result<()> {
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
        self.until_ready().await
    }

    fn replica(&self, number: usize, arguments: &[&str]) -> Result<Process> {
        let mut command = self.longshore(["controllers".into()]);
        command
            .args(["--webhook-host=127.0.0.1", "--webhook-listen"])
            .arg(format!("127.0.0.1:{}", free_port()?))
            .arg("--listen")
            .arg(format!("127.0.0.1:{}", free_port()?))
            .args(arguments);
        let log = self.bed.directory().join(format!("controllers{number}.log"));
        Ok(Process::new(&format!("longshore controllers {number}"), command, &log))
    }

    /// Starts every replica that does not run.
    pub fn start_all(&mut self) -> Result<()> {
        self.replicas.iter_mut().try_for_each(Process::start)
    }

    /// Waits until every member is ready.
    pub async fn until_ready(&self) -> Result<()> {
        let door = self.bed.control.door();
        let count = self.joined;
        until("that every member is ready", PATIENCE, async || {
            let Ok(mut connection) = door.connect().await else { return false };
            let answer = connection.raw(Method::GET, CLUSTERS, "").await;
            answer.is_ok_and(|(_, body)| String::from_utf8_lossy(&body).matches("ClusterReady").count() >= count)
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
