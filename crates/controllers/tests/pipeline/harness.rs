//! A control plane and members in one process, on real API servers in memory. Every request that controllers
//! make passes a gate, which counts and can be shut; the tests' own requests do not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use apiserver::auth::Identity;
use apiserver::{ApiServer, Config, InProcess};
use controllers::ctx::{Ctx, Members};
use controllers::gates::Switches;
use controllers::members::Settings;
use controllers::rest::{Collection, Rest};
use controllers::start::{self, Controllers};
use decide::readiness::Thresholds;
use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

/// What controllers asked of one API server, and whether it answers them.
#[derive(Clone)]
pub struct Gate {
    asked: Arc<Mutex<Vec<String>>>,
    open: Arc<watch::Sender<bool>>,
}

impl Gate {
    fn new() -> Self {
        Self { asked: Arc::default(), open: Arc::new(watch::Sender::new(true)) }
    }

    /// Lets nothing through: requests hang.
    pub fn shut(&self) {
        self.open.send_replace(false);
    }

    /// Lets requests through again, also those that hang.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Forgets what was asked.
    pub fn forget(&self) {
        self.asked.lock().expect("no one panics while holding it").clear();
    }

    /// Requests that went through, as method and path.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no one panics while holding it").clone()
    }

    /// Requests that change something.
    pub fn writes(&self) -> Vec<String> {
        self.asked().into_iter().filter(|asked| !asked.starts_with("GET ")).collect()
    }
}

/// An API server behind a gate.
#[derive(Clone)]
struct Gated {
    server: InProcess,
    gate: Gate,
}

impl tower::Service<Request<Body>> for Gated {
    type Response = Response<apiserver::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { mut server, gate } = self.clone();
        Box::pin(async move {
            let _ = gate.open.subscribe().wait_for(|open| *open).await;
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            gate.asked.lock().expect("no one panics while holding it").push(format!("{method} {path}"));
            server.call(request).await
        })
    }
}

/// An API server: for the test, and for the controllers.
pub struct Place {
    _server: ApiServer,
    /// For the test.
    pub rest: Rest,
    /// For the controllers.
    through: Rest,
    /// What controllers ask.
    pub gate: Gate,
}

impl Place {
    async fn new(admission: apiserver::admission::Admission) -> Self {
        let config = Config {
            store: store::Store::in_memory(),
            now: Arc::new(jiff::Timestamp::now),
            random: Arc::new(random),
            admission,
            root_ca: String::new(),
        };
        let server = ApiServer::new(config).await.expect("the server answers");
        server.start_housekeeping();
        let gate = Gate::new();
        let own = server.trusting(Identity::internal("test"));
        let gated = Gated { server: server.trusting(Identity::internal("longshore")), gate: gate.clone() };
        Self {
            _server: server,
            rest: Rest::new(kube::Client::new(own, "default")),
            through: Rest::new(kube::Client::new(gated, "default")),
            gate,
        }
    }

    /// One object.
    pub async fn get(&self, path: &str) -> Option<Value> {
        self.rest.get(path).await.expect("the server answers")
    }

    /// Waits until an object is as it should be.
    pub async fn until(&self, what: &str, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..1500 {
            last = self.get(path).await.unwrap_or_default();
            if is(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never: {what}; {path} is {last:#}");
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, path: &str) {
        self.until("gone", path, Value::is_null).await;
    }
}

/// A control plane, its members and its controllers.
pub struct Stack {
    pub control: Place,
    pub members: BTreeMap<String, Place>,
    pub ctx: Ctx,
    settings: Settings,
    running: Option<Controllers>,
}

/// Changes are believed at once, and a busy machine is no outage.
pub fn quick() -> Settings {
    Settings {
        status_every: Duration::from_millis(100),
        status_patience: Duration::from_secs(30),
        health: Thresholds { success: Duration::ZERO, failure: Duration::ZERO },
        patience: Duration::from_secs(30),
        failures_max: 3,
        pause_min: Duration::from_millis(100),
        pause_max: Duration::from_millis(400),
    }
}

/// Patience ends soon, for tests whose members fall silent.
pub fn impatient() -> Settings {
    let soon = Duration::from_millis(500);
    Settings { status_patience: soon, patience: soon, ..quick() }
}

impl Stack {
    /// A control plane with these members, all running.
    pub async fn new(members: &[&str], settings: Settings) -> Self {
        let control = Place::new(admission()).await;
        let definitions = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
        for definition in api::crd::crds() {
            control.rest.create(&definitions, &definition).await.expect("the server answers");
        }
        let ctx = ctx(&control, settings);
        let mut stack = Self { control, members: BTreeMap::new(), ctx, settings, running: None };
        for name in members {
            stack.join(name).await;
        }
        stack.start();
        stack
    }

    /// Adds a member.
    pub async fn join(&mut self, name: &str) {
        let place = Place::new(apiserver::admission::admit_all()).await;
        self.ctx.members.insert(name, place.through.clone());
        self.members.insert(name.to_owned(), place);
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name }, "spec": { "syncMode": "Push" },
        });
        self.control
            .rest
            .create(&Collection::of(&api::kinds::CLUSTER, ""), &cluster)
            .await
            .expect("the server answers");
    }

    fn start(&mut self) {
        self.running = Some(start::start(self.ctx.clone()));
    }

    /// Stops all controllers; whatever they remember is lost.
    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down().await;
        }
    }

    /// Stops all controllers and starts new ones.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.ctx = ctx(&self.control, self.settings);
        for (name, place) in &self.members {
            self.ctx.members.insert(name, place.through.clone());
        }
        self.start();
    }

    /// Waits until no queue has anything to do.
    pub async fn settle(&self) {
        let queues = &self.ctx.queues;
        eventually("nothing is left to do", async || {
            let idle = |stats: controllers::runtime::QueueStats| stats.depth == 0 && stats.working == 0;
            idle(queues.templates.stats())
                && idle(queues.placements.stats())
                && idle(queues.works.stats())
                && idle(queues.statuses.stats())
                && idle(queues.clusters.stats())
                && idle(queues.namespaces.stats())
                && idle(queues.news.stats())
                && self.members.keys().all(|name| idle(queues.execution.of(name).stats()))
        })
        .await;
    }

    /// A member.
    pub fn member(&self, name: &str) -> &Place {
        &self.members[name]
    }

    /// Creates an object in the control plane.
    pub async fn create(&self, collection: &Collection, object: &Value) -> Value {
        self.control.rest.create(collection, object).await.expect("the server answers")
    }

    /// Creates a policy that sends all Deployments of `default` to these members.
    pub async fn policy(&self, clusters: &[&str], more: Value) {
        let mut policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": "pp" },
            "spec": {
                "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment" }],
                "placement": { "clusterAffinity": { "clusterNames": clusters } },
            },
        });
        for (key, value) in more.as_object().expect("fields of the spec") {
            policy["spec"][key] = value.clone();
        }
        self.create(&policies(), &policy).await;
    }

    /// Changes the policy's spec.
    pub async fn edit_policy(&self, spec: Value) {
        self.control
            .rest
            .merge(&policies().object("pp"), &json!({ "spec": spec }))
            .await
            .expect("the server answers");
    }

    /// A stack with `nginx` running in these members.
    pub async fn with_nginx(members: &[&str], more: Value) -> Self {
        Self::nginx_with(quick(), members, more).await
    }

    /// The same with other settings.
    pub async fn nginx_with(settings: Settings, members: &[&str], more: Value) -> Self {
        let stack = Self::new(members, settings).await;
        stack.policy(members, more).await;
        stack.create(&Collection::new("apps/v1", "deployments", "default"), &deployment("nginx")).await;
        stack
    }

    /// Waits until a Work says so.
    pub async fn until_work(&self, cluster: &str, condition: &str, status: &str) -> Value {
        let path = work_path(cluster);
        self.control.until(condition, &path, |work| has_condition(work, condition, status)).await
    }
}

fn ctx(control: &Place, settings: Settings) -> Ctx {
    let now = Arc::new(jiff::Timestamp::now);
    Ctx::new(control.through.clone(), Members::new(settings), Switches::default(), now)
}

/// The path of `nginx`.
pub const NGINX: &str = "/apis/apps/v1/namespaces/default/deployments/nginx";
/// The path of its binding.
pub const BINDING: &str =
    "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/nginx-deployment";

/// The path of its Work.
pub fn work_path(cluster: &str) -> String {
    let name = api::names::work_name("Deployment", "nginx", "default");
    Collection::of(&api::kinds::WORK, &api::names::execution_namespace(cluster)).object(&name)
}

/// The path of a Cluster.
pub fn cluster_path(name: &str) -> String {
    Collection::of(&api::kinds::CLUSTER, "").object(name)
}

fn policies() -> Collection {
    Collection::of(&api::kinds::PROPAGATION_POLICY, "default")
}

pub fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx" }] },
            },
        },
    })
}

pub fn has_condition(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|one| one["type"] == kind && one["status"] == status)
}

pub async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    for _ in 0..1500 {
        if check().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
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
