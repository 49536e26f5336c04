//! One control plane with three members: requests to it, kills and restarts.

use std::path::Path;
use std::time::Duration;

use checks::client::{ApiClient, Connection};
use checks::process::Longshore;
use http::{Method, StatusCode};
use serde_json::Value;
use tempfile::TempDir;

use super::actions::Action;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
pub const MEMBERS: [&str; 3] = ["member1", "member2", "member3"];
/// How many polls in a row have to find everything idle.
const IDLE_POLLS: usize = 3;

/// A running control plane and its members.
pub struct Side {
    directory: TempDir,
    server: Option<Longshore>,
    pub control: ApiClient,
    pub members: Vec<ApiClient>,
}

impl Side {
    /// Starts a fresh one.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (server, control, members) = run(directory.path());
        Self { directory, server: Some(server), control, members }
    }

    /// Kills it without warning and starts it again on what it left.
    pub fn restart(&mut self) {
        tokio::task::block_in_place(|| {
            if let Some(server) = self.server.take() {
                server.kill();
            }
            let (server, control, members) = run(self.directory.path());
            (self.server, self.control, self.members) = (Some(server), control, members);
        });
    }

    /// Does something that must succeed.
    pub async fn act(&self, action: &Action) {
        self.doing(action.clone()).await.unwrap_or_else(|error| panic!("{action:?}: {error}"));
    }

    /// Something that is being done; the server may go away meanwhile.
    pub fn doing(&self, action: Action) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let api_client = match action.member {
            Some(member) => self.members[member].clone(),
            None => self.control.clone(),
        };
        async move {
            let mut connection = api_client.connect().await.map_err(|error| error.to_string())?;
            let body = action.body.to_string();
            let answer = connection.json(action.method.clone(), &action.path, body).await;
            let (status, answer) = answer.map_err(|error| error.to_string())?;
            // What was done before the server went away is there, or gone, already.
            let done_before = match action.method {
                Method::POST => status == StatusCode::CONFLICT,
                Method::DELETE => status == StatusCode::NOT_FOUND,
                // The member's object may have been taken away while it was to be changed.
                _ => action.member.is_some() && status == StatusCode::NOT_FOUND,
            };
            match status.is_success() || done_before {
                true => Ok(()),
                false => Err(answer.to_string()),
            }
        }
    }

    /// Whether the work queues are empty and no store of the control plane or a member is written any more.
    pub async fn settled(&self) -> bool {
        let mut connections = self.connect().await;
        let first = look(&mut connections).await;
        for _ in 0..IDLE_POLLS {
            tokio::time::sleep(Duration::from_millis(15)).await;
            if first.is_none() || look(&mut connections).await != first {
                return false;
            }
        }
        true
    }

    /// Connections to the control plane and to every member.
    async fn connect(&self) -> Vec<Connection> {
        let doors = std::iter::once(&self.control).chain(&self.members);
        futures::future::try_join_all(doors.map(ApiClient::connect)).await.expect("connections")
    }

    /// The newest revisions of the control plane's and the members' stores.
    pub async fn revisions(&self) -> Vec<String> {
        look(&mut self.connect().await).await.expect("it has come to rest")
    }
}

/// The revisions of the stores, if every member is ready and every queue of the controllers is empty.
async fn look(connections: &mut [Connection]) -> Option<Vec<String>> {
    let mut revisions = Vec::new();
    for (index, connection) in connections.iter_mut().enumerate() {
        let (_, text) = connection.raw(Method::GET, "/metrics", "").await.expect("an answer");
        let text = String::from_utf8_lossy(&text);
        if index == 0 && !is_idle(&text) {
            return None;
        }
        let revision = text.lines().find_map(|line| line.strip_prefix("longshore_store_revision "));
        revisions.push(revision.expect("a revision").to_owned());
    }
    Some(revisions)
}

fn is_idle(metrics: &str) -> bool {
    let busy = |line: &str| {
        let counts = line.starts_with("workqueue_depth{") || line.starts_with("workqueue_working{");
        // Members are asked how they are all the time.
        counts && !line.contains("\"cluster-status\"") && !line.ends_with(" 0")
    };
    let ready = |line: &&str| line.starts_with("cluster_ready_state{") && line.ends_with(" 1");
    metrics.lines().filter(ready).count() == MEMBERS.len() && !metrics.lines().any(busy)
}

/// Reads a document that must be there.
pub async fn get(connection: &mut Connection, path: &str) -> Value {
    let (status, answer) = connection.json(Method::GET, path, "").await.expect("an answer");
    assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    answer
}

fn run(directory: &Path) -> (Longshore, ApiClient, Vec<ApiClient>) {
    let directory = directory.to_str().expect("a readable path");
    let arguments = ["--data-dir", directory, "--port=0", "--members=3"];
    let server =
        Longshore::start(Path::new(BINARY), &arguments).expect("it starts on what the last one left");
    let control = ApiClient::open(&server.kubeconfig);
    let members = MEMBERS.map(|name| ApiClient::of_context(&server.kubeconfig, name)).to_vec();
    (server, control, members)
}
