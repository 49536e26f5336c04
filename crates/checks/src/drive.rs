//! Load driver for benchmarks: creates, changes and deletes policies and Deployments on a control plane, and waits
//! until members show the result. Knows nothing of how the servers run.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::client::{ApiClient, Connection};
use crate::random::SeededRandom;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";
const CLIENTS: usize = 16;
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1_800);

/// The ways to a control plane and to its three members.
pub struct Drive {
    /// The control plane.
    pub control: ApiClient,
    /// Its members.
    pub members: Vec<ApiClient>,
}

impl Drive {
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
        let (sender, mut shown) = mpsc::channel(64);
        let mut watches = Vec::new();
        for api_client in &self.members {
            watches.push(tokio::spawn(images(watch(api_client).await, sender.clone())));
        }
        let mut random = SeededRandom::new(1);
        let mut connection = self.control.connect().await.expect("a connection");
        let mut times = Vec::new();
        for change in 0..changes {
            let name = name(usize::try_from(random.below(count as u64)).expect("an index"));
            let image = format!("nginx:{}", change + 1);
            let containers = json!([{ "name": "main", "image": image }]);
            let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
            let begun = Instant::now();
            let path = format!("{DEPLOYMENTS}/{name}");
            let (status, _) =
                connection.raw(Method::PATCH, &path, patch.to_string()).await.expect("an answer");
            assert_eq!(status, StatusCode::OK);
            for _ in &self.members {
                let found = tokio::time::timeout(DELIVERY_TIMEOUT, shown.recv()).await.expect("it arrives");
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
        for (api_client, wanted) in self.members.iter().zip(wanted) {
            let mut connection = api_client.connect().await.expect("a connection");
            while count(&mut connection).await != wanted {
                assert!(begun.elapsed() < DELIVERY_TIMEOUT, "it takes too long");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

fn name(number: usize) -> String {
    format!("web-{number:05}")
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

/// A watch on what happens to a member's Deployments from now on.
async fn watch(api_client: &ApiClient) -> (Connection, hyper::body::Incoming) {
    let mut connection = api_client.connect().await.expect("a connection");
    let (_, list) =
        connection.json(Method::GET, &format!("{DEPLOYMENTS}?limit=1"), "").await.expect("an answer");
    let revision = list["metadata"]["resourceVersion"].as_str().expect("a revision");
    let path = format!("{DEPLOYMENTS}?watch=true&timeoutSeconds=3600&resourceVersion={revision}");
    let request = http::Request::get(path).header(http::header::HOST, "localhost");
    let request = request.body(Full::new(Bytes::new())).expect("a well-formed request");
    let body = connection.send(request).await.expect("an answer").into_body();
    (connection, body)
}

/// Sends name and image whenever the image of a watched Deployment changes.
async fn images(
    (_connection, mut body): (Connection, hyper::body::Incoming),
    sender: mpsc::Sender<(String, String)>,
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
                && sender.send((name, image)).await.is_err()
            {
                return;
            }
        }
    }
}
