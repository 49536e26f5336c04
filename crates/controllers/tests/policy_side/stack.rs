//! A control plane and members in memory, with everything running on them, and ways to wait for what should be.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apiserver::auth::Identity;
use apiserver::{ApiServer, Config};
use controllers::ctx::{Ctx, Members};
use controllers::gates::Switches;
use controllers::rest::{Collection, Rest};
use controllers::start::{self, Controllers};
use serde_json::{Value, json};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long nothing may happen before things count as settled; longer than anybody gathers news.
const QUIET: Duration = Duration::from_millis(400);

pub struct Stack {
    pub control: Rest,
    pub ctx: Ctx,
    switches: Switches,
    members: Vec<(&'static str, Rest)>,
    running: Option<Controllers>,
    _servers: Vec<ApiServer>,
}

async fn server(admission: apiserver::admission::Admission) -> (ApiServer, Rest) {
    let config = Config {
        store: store::Store::in_memory(),
        now: Arc::new(jiff::Timestamp::now),
        random: Arc::new(random),
        admission,
        root_ca: String::new(),
    };
    let server = ApiServer::new(config).await.expect("an empty store opens");
    server.start_housekeeping();
    let client = kube::Client::new(server.trusting(Identity::internal("test")), "default");
    (server, Rest::new(client))
}

fn random() -> u128 {
    use std::hash::{BuildHasher as _, Hasher as _};
    let number = || std::collections::hash_map::RandomState::new().build_hasher().finish();
    u128::from(number()) << 64 | u128::from(number())
}

fn admission() -> apiserver::admission::Admission {
    use apiserver::admission::Operation;
    Arc::new(|attributes, object| {
        let operation = match attributes.operation {
            Operation::Create => decide::admission::Operation::Create,
            Operation::Update => decide::admission::Operation::Update,
            Operation::Delete => return Ok(Vec::new()),
        };
        decide::admission::defaults(object, operation, random().to_be_bytes());
        Ok(Vec::new())
    })
}

impl Stack {
    /// Two members, default gates, everything running.
    pub async fn new() -> Self {
        Self::with(Switches::default()).await
    }

    pub async fn with(switches: Switches) -> Self {
        let (control_server, control) = server(admission()).await;
        let mut servers = vec![control_server];
        let definitions = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
        for definition in api::crd::crds() {
            control.create(&definitions, &definition).await.expect("the server answers");
        }
        let mut members = Vec::new();
        for name in ["member1", "member2"] {
            let (server, member) = server(apiserver::admission::admit_all()).await;
            servers.push(server);
            members.push((name, member));
            let cluster = json!({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
                "metadata": { "name": name }, "spec": { "syncMode": "Push" },
            });
            control
                .create(&Collection::of(&api::kinds::CLUSTER, ""), &cluster)
                .await
                .expect("the server answers");
        }
        let ctx = context(&control, &members, switches);
        let running = Some(start::start(ctx.clone()));
        let stack = Self { control, ctx, switches, members, running, _servers: servers };
        stack
            .until("clusters are ready", async |stack| {
                let clusters = stack.get("/apis/cluster.karmada.io/v1alpha1/clusters").await;
                let free = |cluster: &Value| cluster["spec"]["taints"].as_array().is_none_or(Vec::is_empty);
                let ready = |cluster: &Value| condition(cluster, "Ready") == "True" && free(cluster);
                clusters["items"].as_array().is_some_and(|all| all.len() == 2 && all.iter().all(ready))
            })
            .await;
        stack
    }

    /// Stops every controller and starts new ones that know nothing.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.ctx = context(&self.control, &self.members, self.switches);
        self.running = Some(start::start(self.ctx.clone()));
    }

    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down().await;
        }
    }

    /// Waits until nobody has anything to do.
    pub async fn settle(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < QUIET {
            assert!(Instant::now() < deadline, "never settles: {:?}", self.ctx.queue_stats());
            let stats = self.ctx.queue_stats();
            let seen = stats.iter().any(|(name, stats)| name == "detector" && stats.adds > 0);
            let busy = |(name, stats): &(String, controllers::runtime::QueueStats)| {
                let gathers = name == "policy-status" && stats.delayed > 0;
                stats.depth > 0 || stats.working > 0 || gathers
            };
            if !seen || stats.iter().any(busy) {
                quiet_since = Instant::now();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until something is so.
    pub async fn until(&self, what: &str, mut is: impl AsyncFnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is(self).await {
            if Instant::now() > deadline {
                let bindings = self.get("/apis/work.karmada.io/v1alpha2/resourcebindings").await;
                panic!("never: {what}; bindings are {bindings}");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn get(&self, path: &str) -> Value {
        self.control.get(path).await.expect("the server answers").unwrap_or_default()
    }

    /// Creates an object; its path follows from its type.
    pub async fn create(&self, object: Value) -> String {
        let collection = collection(&object);
        self.control.create(&collection, &object).await.expect("the server answers");
        collection.object(object["metadata"]["name"].as_str().expect("it has a name"))
    }

    pub async fn merge(&self, path: &str, patch: Value) {
        self.control.merge(path, &patch).await.expect("the server answers");
    }

    pub async fn delete(&self, path: &str) {
        self.control.delete(path, None).await.expect("the server answers");
    }

    /// The members that have an object at this path.
    pub async fn members_with(&self, path: &str) -> Vec<&'static str> {
        let mut found = Vec::new();
        for (name, member) in &self.members {
            if member.get::<Value>(path).await.expect("the server answers").is_some() {
                found.push(*name);
            }
        }
        found
    }

    pub async fn until_in(&self, path: &str, members: &[&str]) {
        self.until(&format!("{path} in {members:?}"), async |stack| {
            stack.members_with(path).await == members
        })
        .await;
    }

    /// The binding of a template in `default`.
    pub async fn binding(&self, name: &str) -> Value {
        self.get(&format!("/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/{name}")).await
    }

    /// How often this was told about an object in `default`; one number per Event.
    pub async fn told(&self, object: &str, reason: &str) -> Vec<(String, u64)> {
        let events = self.get("/api/v1/namespaces/default/events").await;
        let all = events["items"].as_array().cloned().unwrap_or_default();
        let about = |event: &&Value| event["involvedObject"]["name"] == object && event["reason"] == reason;
        let told = |event: &Value| {
            (event["message"].as_str().unwrap_or_default().to_owned(), event["count"].as_u64().unwrap_or(0))
        };
        all.iter().filter(about).map(told).collect()
    }

    /// The revision of the control plane's store: it moves with every write.
    pub async fn revision(&self) -> String {
        let list = self.get("/api/v1/namespaces").await;
        list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
    }
}

fn context(control: &Rest, members: &[(&'static str, Rest)], switches: Switches) -> Ctx {
    let reachable = Members::default();
    members.iter().for_each(|(name, member)| reachable.insert(name, member.clone()));
    Ctx::new(control.clone(), reachable, switches, Arc::new(jiff::Timestamp::now))
}

fn collection(object: &Value) -> Collection {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&object["kind"]).to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    Collection::new(&text(&object["apiVersion"]), &plural, &text(&object["metadata"]["namespace"]))
}

/// The status of a condition, empty if there is none.
pub fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|one| one["type"] == kind);
    found.and_then(|one| one["status"].as_str()).unwrap_or_default().to_owned()
}

/// A Deployment in `default` that mounts this ConfigMap.
pub fn deployment(name: &str, config: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": "default", "name": name },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "containers": [{ "name": "main", "image": "nginx:1" }],
                    "volumes": [{ "name": "config", "configMap": { "name": config } }],
                },
            },
        },
    })
}

pub fn config_map(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": namespace, "name": name },
        "data": { "key": "one" },
    })
}

/// A PropagationPolicy in `default` for one name, with more in its spec.
pub fn policy(name: &str, selects: (&str, &str), clusters: &[&str], more: Value) -> Value {
    let api_version = if selects.0 == "Deployment" { "apps/v1" } else { "v1" };
    let mut spec = json!({
        "resourceSelectors": [{ "apiVersion": api_version, "kind": selects.0, "name": selects.1 }],
        "placement": { "clusterAffinity": { "clusterNames": clusters } },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "namespace": "default", "name": name }, "spec": spec,
    })
}
