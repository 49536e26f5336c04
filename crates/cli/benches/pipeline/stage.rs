//! A control plane with three members on disk, and what a benchmark asks of it.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use checks::client::{Connection, Door};
use checks::dice::Dice;
use checks::process::Longshore;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";
pub const ALL: [&str; 3] = ["member1", "member2", "member3"];
const CLIENTS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(1_800);

/// A running control plane and its members.
pub struct Stage {
    pub server: Longshore,
    directory: TempDir,
    control: Door,
    members: Vec<Door>,
}

impl Stage {
    /// Starts an empty one and waits until its members are ready.
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (server, control, members) = run(directory.path());
        let stage = Self { server, directory, control, members };
        stage.steady(Duration::from_millis(500)).await;
        stage
    }

    /// Ends it as it is meant to end, and starts it again.
    pub fn restart(&mut self) {
        let (server, control, members) = tokio::task::block_in_place(|| {
            self.server.stop();
            run(self.directory.path())
        });
        (self.server, self.control, self.members) = (server, control, members);
    }

    /// Makes a policy for one Deployment or for all of them.
    pub async fn policy(&self, name: &str, one: Option<usize>, members: &[&str], priority: u32) {
        let mut selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
        if let Some(number) = one {
            selector["name"] = self::name(number).into();
        }
        let policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": name },
            "spec": {
                "resourceSelectors": [selector], "priority": priority,
                "preemption": if one.is_some() { "Always" } else { "Never" },
                "placement": { "clusterAffinity": { "clusterNames": members } },
            },
        });
        let (status, answer) = self.control.request(Method::POST, POLICIES, policy.to_string()).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }

    /// Sends everything of a policy elsewhere.
    pub async fn retarget(&self, policy: &str, members: &[&str]) {
        let placement = json!({ "clusterAffinity": { "clusterNames": members } });
        let patch = json!({ "spec": { "placement": placement } }).to_string();
        let (status, answer) =
            self.control.request(Method::PATCH, &format!("{POLICIES}/{policy}"), patch).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    /// Creates so many Deployments, from several clients at once.
    pub async fn create(&self, count: usize) {
        self.control.crowd(CLIENTS, count, |number| {
            let name = name(number);
            let labels = json!({ "app": name });
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "labels": labels },
                "spec": {
                    "replicas": 1,
                    "selector": { "matchLabels": labels },
                    "template": {
                        "metadata": { "labels": labels },
                        "spec": { "containers": [{
                            "name": "main", "image": "nginx:0", "ports": [{ "containerPort": 80 }],
                            "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } },
                        }] },
                    },
                },
            });
            (Method::POST, DEPLOYMENTS.to_owned(), deployment.to_string(), StatusCode::CREATED)
        })
        .await;
    }

    /// Deletes them again.
    pub async fn delete(&self, count: usize) {
        self.control
            .crowd(CLIENTS, count, |number| {
                (Method::DELETE, format!("{DEPLOYMENTS}/{}", name(number)), String::new(), StatusCode::OK)
            })
            .await;
    }

    /// Changes images one after the other; how long each took until all members showed it.
    pub async fn change_images(&self, count: usize, changes: usize) -> Vec<Duration> {
        let (told, mut shown) = mpsc::channel(64);
        let mut watches = Vec::new();
        for door in &self.members {
            watches.push(tokio::spawn(images(watch(door).await, told.clone())));
        }
        let mut dice = Dice::new(1);
        let mut connection = self.control.connect().await.expect("a connection");
        let mut times = Vec::new();
        for change in 0..changes {
            let name = name(usize::try_from(dice.below(count as u64)).expect("an index"));
            let image = format!("nginx:{}", change + 1);
            let containers = json!([{ "name": "main", "image": image }]);
            let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
            let begun = Instant::now();
            let path = format!("{DEPLOYMENTS}/{name}");
            let (status, _) =
                connection.raw(Method::PATCH, &path, patch.to_string()).await.expect("an answer");
            assert_eq!(status, StatusCode::OK);
            for _ in &self.members {
                let found = tokio::time::timeout(PATIENCE, shown.recv()).await.expect("it arrives");
                assert_eq!(found, Some((name.clone(), image.clone())));
            }
            times.push(begun.elapsed());
        }
        watches.iter().for_each(tokio::task::JoinHandle::abort);
        times
    }

    /// Waits until the members have so many Deployments.
    pub async fn until_counts(&self, wanted: [usize; 3]) {
        let begun = Instant::now();
        for (door, wanted) in self.members.iter().zip(wanted) {
            let mut connection = door.connect().await.expect("a connection");
            while count(&mut connection).await != wanted {
                assert!(begun.elapsed() < PATIENCE, "it takes too long");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
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
        let doors = std::iter::once(&self.control).chain(&self.members);
        futures::future::try_join_all(doors.map(Door::connect)).await.expect("connections")
    }
}

fn name(number: usize) -> String {
    format!("web-{number:05}")
}

fn run(directory: &Path) -> (Longshore, Door, Vec<Door>) {
    let directory = directory.to_str().expect("a readable path");
    let server =
        Longshore::start(Path::new(BINARY), &["--data-dir", directory, "--port=0"]).expect("it starts");
    let control = Door::open(&server.kubeconfig);
    let members = ALL.map(|name| Door::of_context(&server.kubeconfig, name)).to_vec();
    (server, control, members)
}

/// How many Deployments a member has.
async fn count(connection: &mut Connection) -> usize {
    let path = format!("{DEPLOYMENTS}?limit=1");
    let (status, list) = connection.json(Method::GET, &path, "").await.expect("an answer");
    assert_eq!(status, StatusCode::OK, "{list}");
    let shown = list["items"].as_array().map_or(0, Vec::len);
    let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    shown + usize::try_from(more).expect("a count")
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

/// A watch on what happens to a member's Deployments from now on.
async fn watch(door: &Door) -> (Connection, hyper::body::Incoming) {
    let mut connection = door.connect().await.expect("a connection");
    let (_, list) =
        connection.json(Method::GET, &format!("{DEPLOYMENTS}?limit=1"), "").await.expect("an answer");
    let revision = list["metadata"]["resourceVersion"].as_str().expect("a revision");
    let path = format!("{DEPLOYMENTS}?watch=true&timeoutSeconds=3600&resourceVersion={revision}");
    let request = http::Request::get(path).header(http::header::HOST, "localhost");
    let request = request.body(Full::new(Bytes::new())).expect("a well-formed request");
    let body = connection.send(request).await.expect("an answer").into_body();
    (connection, body)
}

/// Tells names and images whenever the image of a Deployment is new.
async fn images(
    (_connection, mut body): (Connection, hyper::body::Incoming),
    told: mpsc::Sender<(String, String)>,
) {
    let mut known = std::collections::HashMap::new();
    let mut rest: Vec<u8> = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        rest.extend_from_slice(frame.data_ref().map_or(&[], |bytes| bytes));
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).expect("an event");
            let object = &event["object"];
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let image = object.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str);
            let image = image.unwrap_or_default().to_owned();
            if known.insert(name.clone(), image.clone()).as_ref() != Some(&image)
                && told.send((name, image)).await.is_err()
            {
                return;
            }
        }
    }
}
