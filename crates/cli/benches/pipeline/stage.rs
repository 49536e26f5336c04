//! A control plane with three members on disk, as the benchmark drives it.

use std::path::Path;
use std::time::{Duration, Instant};

use checks::client::{ApiClient, Connection};
use checks::drive::Drive;
use checks::process::Longshore;
use http::Method;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
pub const ALL: [&str; 3] = ["member1", "member2", "member3"];

/// A running control plane and its members.
pub struct Stage {
    pub server: Longshore,
    directory: TempDir,
    /// Who acts on them.
    pub drive: Drive,
}

impl Stage {
    /// Starts an empty one and waits until its members are ready.
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (server, drive) = run(directory.path());
        let stage = Self { server, directory, drive };
        stage.steady(Duration::from_millis(500)).await;
        stage
    }

    /// Ends it as it is meant to end, and starts it again.
    pub fn restart(&mut self) {
        (self.server, self.drive) = tokio::task::block_in_place(|| {
            self.server.stop();
            run(self.directory.path())
        });
    }

    /// Waits until nothing has been written and nothing was left to do for so long.
    pub async fn steady(&self, quiet: Duration) {
        let mut connections = self.connect().await;
        let (mut last, mut since) = (None, Instant::now());
        while last.is_none() || since.elapsed() < quiet {
            let now = look(&mut connections).await;
            if now != last || now.is_none() {
                (last, since) = (now, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The revisions of the control plane's and the members' stores.
    pub async fn revisions(&self) -> Vec<u64> {
        look(&mut self.connect().await).await.expect("it is steady")
    }

    async fn connect(&self) -> Vec<Connection> {
        let doors = std::iter::once(&self.drive.control).chain(&self.drive.members);
        futures::future::try_join_all(doors.map(ApiClient::connect)).await.expect("connections")
    }
}

fn run(directory: &Path) -> (Longshore, Drive) {
    let directory = directory.to_str().expect("a readable path");
    let server =
        Longshore::start(Path::new(BINARY), &["--data-dir", directory, "--port=0"]).expect("it starts");
    let control = ApiClient::open(&server.kubeconfig);
    let members = ALL.map(|name| ApiClient::of_context(&server.kubeconfig, name)).to_vec();
    (server, Drive { control, members })
}

/// The revisions of all stores, if every member is ready and every queue is empty.
async fn look(connections: &mut [Connection]) -> Option<Vec<u64>> {
    let mut revisions = Vec::new();
    for (index, connection) in connections.iter_mut().enumerate() {
        let (_, text) = connection.raw(Method::GET, "/metrics", "").await.expect("an answer");
        let text = String::from_utf8_lossy(&text);
        let busy = |line: &str| {
            let counts = line.starts_with("workqueue_depth{") || line.starts_with("workqueue_working{");
            // Members are asked how they are all the time.
            counts && !line.contains("\"cluster-status\"") && !line.ends_with(" 0")
        };
        let ready = |line: &&str| line.starts_with("cluster_ready_state{") && line.ends_with(" 1");
        if index == 0 && (text.lines().any(busy) || text.lines().filter(ready).count() < ALL.len()) {
            return None;
        }
        let revision = text.lines().find_map(|line| line.strip_prefix("longshore_store_revision "));
        revisions.push(revision.and_then(|text| text.parse().ok()).expect("a revision"));
    }
    Some(revisions)
}
