//! A control plane and members in memory with all controllers running, and helpers to wait for a state. tokio's clock
//! is paused while any task has work, so waiting costs nothing and runs are reproducible.

mod gate;
mod objects;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use apiserver::authn::Identity;
use apiserver::{ApiServer, Config};
use controllers::ctx::{Ctx, Members};
use controllers::gates::FeatureGates;
use controllers::members::Settings;
use controllers::rest::{Collection, Path, Rest};
use controllers::runtime::QueueStats;
use controllers::start::{self, Controllers};
use jiff::Timestamp;
use plane::policy_impact::PolicyImpact;
use serde_json::{Value, json};
use supervise::Injector;
use tokio::time::Instant;

pub use gate::Gate;
use gate::Gated;
pub use objects::*;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long nothing may happen before things count as settled; longer than any debounce interval.
const QUIET: Duration = Duration::from_secs(1);

/// A wall clock that follows the paused one.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

fn clock() -> Clock {
    let (start, epoch) = (Instant::now(), Timestamp::from_second(1_800_000_000).expect("a time"));
    Arc::new(move || epoch + start.elapsed())
}

/// Numbers that look random and are the same in every run.
#[derive(Clone, Default)]
struct Dice(Arc<AtomicU64>);

impl Dice {
    fn roll(&self) -> u128 {
        let next =
            || self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        u128::from(next()) << 64 | u128::from(next())
    }
}

/// A path as tests write it, which are all well known.
pub fn at(path: &str) -> Path {
    Path::fixed(path.to_owned().leak())
}

/// An API server: for the test, and for the controllers.
pub struct Place {
    /// The server itself.
    pub server: ApiServer,
    /// For the test.
    pub rest: Rest,
    /// For the controllers.
    pub through: Rest,
    /// What controllers ask.
    pub gate: Gate,
}

impl Place {
    /// One without any rules, with no other client.
    pub async fn alone() -> Self {
        Self::new(apiserver::admission::admit_all(), &clock(), &Dice::default()).await
    }

    async fn new(admission: apiserver::admission::Admission, clock: &Clock, dice: &Dice) -> Self {
        let dice = dice.clone();
        let config = Config {
            store: store::Store::in_memory(),
            now: clock.clone(),
            random: Arc::new(move || dice.roll()),
            admission,
            root_ca: String::new(),
        };
        let server = ApiServer::new(config).await.expect("an empty store opens");
        server.start_controllers();
        let gate = Gate::new();
        let own = server.trusting(Identity::internal("test"));
        let gated = Gated { server: server.trusting(Identity::internal("longshore")), gate: gate.clone() };
        Self {
            rest: Rest::new(kube::Client::new(own, "default")),
            through: Rest::new(kube::Client::new(gated, "default")),
            server,
            gate,
        }
    }

    /// One object.
    pub async fn get(&self, path: &str) -> Option<Value> {
        self.rest.get(&at(path)).await.expect("the server answers")
    }

    /// Waits until an object is as it should be.
    pub async fn until(&self, what: &str, path: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        eventually(&format!("{what}: {path}"), async || {
            last = self.get(path).await.unwrap_or_default();
            is(&last)
        })
        .await
        .unwrap_or_else(|never| panic!("{never}; it is {last:#}"));
        last
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, path: &str) {
        self.until("gone", path, Value::is_null).await;
    }

    /// The revision of the store: it moves with every write.
    pub async fn revision(&self) -> String {
        let list = self.get("/api/v1/namespaces").await.unwrap_or_default();
        list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
    }
}

/// Waits until something is so; fails with what never was.
async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(5);
    while !check().await {
        if Instant::now() > deadline {
            return Err(format!("never: {what}"));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
    Ok(())
}

/// A control plane, its members and its controllers.
pub struct Stack {
    pub control: Place,
    pub members: BTreeMap<String, Place>,
    pub ctx: Ctx,
    pub clock: Clock,
    /// While true, the control plane accepts what its own rules refuse: another control plane wrote it before.
    pub is_lenient: Arc<AtomicBool>,
    dice: Dice,
    settings: Settings,
    feature_gates: FeatureGates,
    running: Option<Controllers>,
}

/// Patience ends soon and changes are believed at once, for tests whose members fall silent.
pub fn impatient() -> Settings {
    let at_once = decide::readiness::Thresholds { success: Duration::ZERO, failure: Duration::ZERO };
    Settings { health: at_once, ..Settings::default() }
}

impl Stack {
    /// A control plane with these members, all ready.
    pub async fn new(members: &[&str]) -> Self {
        Self::with(members, Settings::default(), FeatureGates::default()).await
    }

    /// The same with other settings.
    pub async fn with(members: &[&str], settings: Settings, feature_gates: FeatureGates) -> Self {
        let (clock, dice) = (clock(), Dice::default());
        let is_lenient = Arc::new(AtomicBool::new(false));
        let admission = admission(dice.clone(), clock.clone(), is_lenient.clone());
        let control = Place::new(admission, &clock, &dice).await;
        let definitions = Collection::new("apiextensions.k8s.io/v1", "customresourcedefinitions", "");
        for definition in api::crd::crds() {
            control.rest.create(&definitions, &definition).await.expect("the server answers");
        }
        let ctx =
            Ctx::new(control.through.clone(), Members::new(settings), feature_gates.clone(), clock.clone());
        let members_by_name = BTreeMap::new();
        let mut stack = Self {
            control,
            members: members_by_name,
            ctx,
            clock,
            is_lenient,
            dice,
            settings,
            feature_gates,
            running: None,
        };
        for name in members {
            stack.join(name).await;
        }
        stack.start();
        for name in members {
            let path = cluster_path(name);
            let free = |cluster: &Value| cluster["spec"]["taints"].as_array().is_none_or(Vec::is_empty);
            let ready = |cluster: &Value| condition(cluster, "Ready") == "True" && free(cluster);
            stack.control.until("ready", &path, ready).await;
        }
        stack
    }

    /// Adds a member that the composition root knows how to reach.
    pub async fn join(&mut self, name: &str) {
        let place = self.place().await;
        self.join_at(name, place).await;
    }

    /// The same, with an API server that is there already.
    pub async fn join_at(&mut self, name: &str, place: Place) {
        self.ctx.members.insert(name, place.through.clone());
        self.members.insert(name.to_owned(), place);
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": name }, "spec": { "syncMode": "Push" },
        });
        self.create(cluster).await;
    }

    /// An API server that is not registered as a member yet.
    pub async fn place(&self) -> Place {
        Place::new(apiserver::admission::admit_all(), &self.clock, &self.dice).await
    }

    fn start(&mut self) {
        self.running = Some(start::start(self.ctx.clone()));
    }

    /// Stops every controller; whatever they remember is lost.
    pub async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down().await;
        }
    }

    /// Stops every controller and starts new ones that are set otherwise.
    pub async fn restart_with(&mut self, feature_gates: FeatureGates) {
        self.feature_gates = feature_gates;
        self.restart().await;
    }

    /// Stops every controller and starts new ones that know nothing.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.ctx = self.fresh();
        self.start();
    }

    /// A context that knows nothing but how to reach members.
    fn fresh(&self) -> Ctx {
        let members = Members::new(self.settings);
        self.members.iter().for_each(|(name, place)| members.insert(name, place.through.clone()));
        Ctx::new(self.control.through.clone(), members, self.feature_gates.clone(), self.clock.clone())
    }

    /// Stops every controller and starts new ones in which things fail.
    pub async fn restart_with_faults(&mut self, injector: Injector) {
        self.stop().await;
        self.ctx = self.fresh().with_faults(injector);
        self.start();
    }

    /// Waits until no task has work.
    pub async fn settle(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < QUIET {
            assert!(Instant::now() < deadline, "never settles: {:?}", self.ctx.queues.stats());
            let busy = |(name, stats): &(String, QueueStats)| {
                let gathers =
                    matches!(name.as_str(), "policy-status" | "binding-status") && stats.delayed > 0;
                stats.depth > 0 || stats.working > 0 || gathers
            };
            if self.ctx.queues.stats().iter().any(busy) {
                quiet_since = Instant::now();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until something is so.
    pub async fn until(&self, what: &str, mut is: impl AsyncFnMut(&Self) -> bool) {
        if let Err(never) = eventually(what, async || is(self).await).await {
            let bindings = self.get("/apis/work.karmada.io/v1alpha2/resourcebindings").await;
            panic!("{never}; bindings are {bindings}");
        }
    }

    /// A member.
    pub fn member(&self, name: &str) -> &Place {
        &self.members[name]
    }

    /// An object of the control plane; null if there is none.
    pub async fn get(&self, path: &str) -> Value {
        self.control.get(path).await.unwrap_or_default()
    }

    /// Creates an object; its path follows from its type.
    pub async fn create(&self, object: Value) -> String {
        let collection = collection(&object);
        self.control.rest.create(&collection, &object).await.expect("the server answers");
        collection.object(object["metadata"]["name"].as_str().expect("it has a name")).to_string()
    }

    /// Changes an object of the control plane.
    pub async fn merge(&self, path: &str, patch: Value) {
        self.control.rest.merge(&at(path), &patch).await.expect("the server answers");
    }

    /// Changes an object of the control plane without its rules, as another control plane may have left it.
    pub async fn leave(&self, path: &str, patch: Value) {
        self.is_lenient.store(true, Ordering::Relaxed);
        self.merge(path, patch).await;
        self.is_lenient.store(false, Ordering::Relaxed);
    }

    /// Deletes an object of the control plane.
    pub async fn delete(&self, path: &str) {
        self.control.rest.delete(&at(path), None).await.expect("the server answers");
    }

    /// The members that have an object at this path.
    pub async fn members_with(&self, path: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for (name, member) in &self.members {
            if member.get(path).await.is_some() {
                found.push(name.as_str());
            }
        }
        found
    }

    /// Waits until exactly these members have an object at this path.
    pub async fn until_in(&self, path: &str, members: &[&str]) {
        let what = format!("{path} in {members:?}");
        self.until(&what, async |stack| stack.members_with(path).await == members).await;
    }

    /// The binding of a template in `default`.
    pub async fn binding(&self, name: &str) -> Value {
        self.get(&format!("/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/{name}")).await
    }

    /// What was told about an object, wherever it is, and how often; one item per Event.
    pub async fn told(&self, object: &str, reason: &str) -> Vec<(String, u64)> {
        let events = self.get("/api/v1/events").await;
        let all = events["items"].as_array().cloned().unwrap_or_default();
        let about = |event: &&Value| event["involvedObject"]["name"] == object && event["reason"] == reason;
        let told = |event: &Value| {
            (event["message"].as_str().unwrap_or_default().to_owned(), event["count"].as_u64().unwrap_or(0))
        };
        all.iter().filter(about).map(told).collect()
    }

    /// The revision of every store.
    pub async fn revisions(&self) -> Vec<String> {
        let mut revisions = vec![self.control.revision().await];
        for member in self.members.values() {
            revisions.push(member.revision().await);
        }
        revisions
    }

    /// A stack with `nginx` on its way to these members.
    pub async fn with_nginx(members: &[&str], more: Value) -> Self {
        Self::nginx_with(Settings::default(), members, more).await
    }

    /// The same with other settings.
    pub async fn nginx_with(settings: Settings, members: &[&str], more: Value) -> Self {
        let stack = Self::with(members, settings, FeatureGates::default()).await;
        stack.create(policy("pp", ("Deployment", "nginx"), members, more)).await;
        stack.create(nginx()).await;
        stack
    }

    /// Changes the spec of the policy `pp`.
    pub async fn edit_policy(&self, spec: Value) {
        self.merge(POLICY, json!({ "spec": spec })).await;
    }

    /// Waits until the Work of `nginx` says so.
    pub async fn until_work(&self, cluster: &str, kind: &str, status: &str) -> Value {
        self.control.until(kind, &work_path(cluster), |work| condition(work, kind) == status).await
    }
}

fn admission(dice: Dice, clock: Clock, is_lenient: Arc<AtomicBool>) -> apiserver::admission::Admission {
    let rules = plane::admission::rules(
        decide::Gates::default(),
        Arc::new(move || dice.roll()),
        clock,
        PolicyImpact::default(),
    );
    Arc::new(move |attributes, object| match is_lenient.load(Ordering::Relaxed) {
        true => Ok(Vec::new()),
        false => rules(attributes, object),
    })
}
