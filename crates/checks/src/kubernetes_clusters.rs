//! Test clusters: real Kubernetes API servers with etcd and kube-controller-manager, as processes on this machine, for
//! a control plane and its members. Only nodes are simulated, by `member::Nodes`. All processes end when it is dropped.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use tempfile::TempDir;

mod account;
mod certificates;
mod clock;
mod cluster;
mod history;
mod host;
mod machines;
mod plane;
mod process;
mod relay;
mod suite;

pub use account::collection;
pub use cluster::{Cluster, Role};
pub use machines::Machines;
pub use plane::Plane;
pub use process::Process;
pub use relay::Relay;
pub use suite::play;

/// Names the directory of the servers that `checks/kubernetes/build` made.
const PROGRAMS: &str = "LONGSHORE_KUBERNETES";

/// Where the servers are.
#[derive(Debug, Clone)]
pub struct Programs(PathBuf);

impl Programs {
    /// Those that the environment names; nothing where it names none: it takes Go and minutes to build them.
    pub fn find() -> Option<Self> {
        let Some(directory) = std::env::var_os(PROGRAMS).map(PathBuf::from) else {
            let what = "there is no real Kubernetes to test with";
            let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {PROGRAMS} does not name it");
            return None;
        };
        assert!(
            directory.join("kube-apiserver").is_file(),
            "{PROGRAMS} names no kube-apiserver: {directory:?}"
        );
        Some(Self(directory))
    }

    /// A program to be started.
    fn command(&self, name: &str) -> Command {
        Command::new(self.0.join(name))
    }
}

/// A control plane and its members.
pub struct KubernetesClusters {
    directory: TempDir,
    /// The cluster that the controllers work on.
    pub control: Cluster,
    /// The clusters that are to be joined: member1 and so on.
    pub members: Vec<Cluster>,
    /// What plays the machines of each member, and for which description.
    machines: Vec<(Machines, scenario::Cluster)>,
    programs: Programs,
}

impl KubernetesClusters {
    /// Starts a control plane and so many members, and waits until all of them are ready.
    pub async fn start(programs: &Programs, members: usize) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("longshore-bed-").tempdir()?;
        let place = |name: &str| directory.path().join(name);
        let mut control = Cluster::prepare(programs, "control", Role::Control, &place("control"))?;
        let mut others = Vec::new();
        for number in 1..=members {
            let name = format!("member{number}");
            others.push(Cluster::prepare(programs, &name, Role::Member, &place(&name))?);
        }
        // All at once: most of the time each of them waits for itself.
        for cluster in std::iter::once(&mut control).chain(&mut others) {
            cluster.start()?;
        }
        for cluster in std::iter::once(&mut control).chain(&mut others) {
            cluster.until_ready().await?;
        }
        let programs = programs.clone();
        let mut bed = Self { directory, control, members: others, machines: Vec::new(), programs };
        for number in 0..members {
            bed.furnish_new(number).await?;
        }
        Ok(bed)
    }

    /// Starts another member, and waits until it is ready.
    async fn grow(&mut self) -> Result<()> {
        let name = format!("member{}", self.members.len() + 1);
        let place = self.directory.path().join(&name);
        let mut cluster = Cluster::prepare(&self.programs, &name, Role::Member, &place)?;
        cluster.start()?;
        cluster.until_ready().await?;
        self.members.push(cluster);
        self.furnish_new(self.members.len() - 1).await
    }

    async fn furnish_new(&mut self, number: usize) -> Result<()> {
        let wanted = scenario::Cluster::named(&self.members[number].name);
        let machines = Machines::start(&self.members[number], &wanted).await?;
        self.machines.push((machines, wanted));
        Ok(())
    }

    /// Gives a member the machines that a description asks for.
    async fn furnish(&mut self, number: usize, wanted: &scenario::Cluster) -> Result<()> {
        if self.machines[number].1 == *wanted {
            return Ok(());
        }
        let member = &self.members[number];
        let (old, before) = self.machines.remove(number);
        old.remove_nodes(member, &before.name).await;
        self.machines.insert(number, (Machines::start(member, wanted).await?, wanted.clone()));
        Ok(())
    }

    /// Where everything of it is kept while it lives.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Everything that servers say, by names that tell them apart.
    fn logs(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut found = Vec::new();
        let root = self.directory.path();
        let places =
            std::iter::once(&self.control).chain(&self.members).map(|cluster| root.join(&cluster.name));
        for place in places.chain([root.to_owned()]) {
            for entry in std::fs::read_dir(&place)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "log") {
                    let name = path.strip_prefix(root)?.display().to_string().replace('/', "-");
                    found.push((name, path));
                }
            }
        }
        Ok(found)
    }

    /// Ends it in order.
    pub async fn shut_down(self) {
        for (machines, _) in self.machines {
            machines.shut_down().await;
        }
    }
}

/// How often is asked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Asks again and again until the answer is yes.
pub async fn until(what: &str, patience: Duration, mut ask: impl AsyncFnMut() -> bool) -> Result<()> {
    // Counted in polls, so that a pause of the whole machine does not use up the timeout.
    for _ in 0..patience.as_millis() / POLL_INTERVAL.as_millis() {
        if ask().await {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    bail!("{what} did not happen within {} s", patience.as_secs())
}

/// Where ports for servers are looked for: below those that the system gives to connections, one of which could take a
/// port before its server does.
const PORTS: std::ops::Range<u32> = 10_000..32_000;

/// A free TCP port that was not handed out in this process lately.
fn free_port() -> Result<u16> {
    /// How many were looked at.
    static TRIED: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time begin far from each other.
    let start = std::process::id().wrapping_mul(997);
    for _ in PORTS {
        let next = start.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % (PORTS.end - PORTS.start);
        let port = u16::try_from(PORTS.start + next)?;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("there is no free port from {} to {}", PORTS.start, PORTS.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice_or_could_be_a_connection_s() {
        let ports: Vec<u16> = (0..200).map(|_| free_port().expect("there are ports")).collect();
        let different: std::collections::BTreeSet<&u16> = ports.iter().collect();
        assert_eq!(different.len(), ports.len());
        assert!(ports.iter().all(|port| PORTS.contains(&u32::from(*port))));
    }
}
