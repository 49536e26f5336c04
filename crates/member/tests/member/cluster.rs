//! A member under test, and the few requests that tests make.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apiserver::InProcess;
use apiserver::authn::Identity;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use jiff::{SignedDuration, Timestamp};
use member::{Member, NodeSpec, Options, Stages};
use serde_json::{Value, json};
use store::Store;
use tower::Service as _;

pub struct Cluster {
    pub member: Member,
    pub store: Store,
    client: InProcess,
}

pub fn node(name: &str, cpu: &str, pods: u32) -> NodeSpec {
    NodeSpec {
        name: name.to_owned(),
        cpu: cpu.to_owned(),
        memory: "8Gi".to_owned(),
        pods,
        labels: BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), name.to_owned())]),
    }
}

/// A wall clock that follows the test's own clock.
pub fn clock() -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
    let (start, begin) = (Timestamp::from_second(1_767_225_600).unwrap(), tokio::time::Instant::now());
    Arc::new(move || start + SignedDuration::try_from(begin.elapsed()).unwrap())
}

pub fn options(store: &Store, nodes: Vec<NodeSpec>) -> Options {
    // Each life of a member continues with other numbers, as a real one does.
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let number = || {
        u128::from(NUMBERS.fetch_add(1, Ordering::Relaxed))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    };
    Options {
        name: "member1".to_owned(),
        nodes,
        store: store.clone(),
        now: clock(),
        random: Arc::new(number),
        root_ca: "pem".to_owned(),
        stages: Stages::builtin(),
    }
}

impl Cluster {
    pub async fn start() -> Cluster {
        Cluster::with_nodes(vec![node("n1", "8", 110), node("n2", "8", 110)]).await
    }

    pub async fn with_nodes(nodes: Vec<NodeSpec>) -> Cluster {
        Cluster::with_options(options(&Store::in_memory(), nodes)).await
    }

    pub async fn with_options(options: Options) -> Cluster {
        let store = options.store.clone();
        let member = Member::start(options).await.unwrap();
        let client = member.server().trusting(Identity::internal("tester"));
        let cluster = Cluster { member, store, client };
        cluster.settle().await;
        cluster
    }

    pub async fn settle(&self) {
        let settled = tokio::time::timeout(std::time::Duration::from_secs(3600), self.member.settle());
        settled.await.expect("the member settles").unwrap();
    }

    pub async fn ask(&self, method: Method, path: &str, media: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let response = self.client.clone().call(request.body(Full::new(body)).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }

    pub async fn create(&self, path: &str, object: Value) -> Value {
        let (code, answer) = self.ask(Method::POST, path, "application/json", object).await;
        assert_eq!(code, 201, "{answer}");
        answer
    }

    pub async fn patch(&self, path: &str, patch: Value) -> Value {
        let (code, answer) =
            self.ask(Method::PATCH, path, "application/strategic-merge-patch+json", patch).await;
        assert_eq!(code, 200, "{answer}");
        answer
    }

    pub async fn delete(&self, path: &str) {
        let (code, answer) = self.ask(Method::DELETE, path, "application/json", Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    }

    pub async fn get(&self, path: &str) -> Value {
        let (code, answer) = self.ask(Method::GET, path, "application/json", Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        answer
    }

    pub async fn list(&self, path: &str) -> Vec<Value> {
        self.get(path).await["items"].as_array().unwrap().clone()
    }

    pub async fn pods(&self) -> Vec<Value> {
        self.list(PODS).await
    }

    /// The writes that something took.
    pub async fn writes<T>(&self, work: impl Future<Output = T>) -> u64 {
        let before = self.store.revision();
        work.await;
        self.settle().await;
        self.store.revision() - before
    }
}

pub const PODS: &str = "/api/v1/namespaces/default/pods";
pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

pub fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "nginx" } },
        "spec": { "containers": [{ "name": "main", "image": image }] },
    })
}

pub fn deployment(name: &str, image: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": "nginx" } }, "template": template(image),
        },
    })
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().expect("the object has conditions");
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

pub fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect()
}
