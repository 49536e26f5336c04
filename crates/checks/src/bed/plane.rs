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
}

impl Plane {
    /// Starts so many replicas of this binary with these further arguments, joins every member and waits until all are
    /// ready.
    pub async fn start(bed: Bed, binary: &Path, replicas: usize, arguments: &[&str]) -> Result<Self> {
        let mut plane = Self { bed, replicas: Vec::new(), binary: binary.to_owned() };
        for number in 0..replicas {
            let replica = plane.replica(number, arguments)?;
            plane.replicas.push(replica);
        }
        plane.start_all()?;
        let door = plane.bed.control.door();
        until("the definition of Cluster", PATIENCE, async || {
            let Ok(mut connection) = door.connect().await else { return false };
            connection.raw(Method::GET, CLUSTERS, "").await.is_ok_and(|(status, _)| status.is_success())
        })
        .await
        .with_context(|| plane.last_words())?;
        for member in &plane.bed.members {
            let joined = plane
                .longshore(["join".into(), member.name.clone().into(), "--cluster-kubeconfig".into()])
                .arg(&member.kubeconfig)
                .output()?;
            ensure!(joined.status.success(), "join {}: {}", member.name, String::from_utf8_lossy(&joined.stderr));
        }
        plane.until_ready().await?;
        Ok(plane)
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
        let count = self.bed.members.len();
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
        for member in &self.bed.members {
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
