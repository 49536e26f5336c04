//! A simulated control plane with its members inside this process: real API servers, real controllers, stores in
//! memory, and virtual time that advances only when nothing is left to do. So minutes take milliseconds, and "at rest"
//! is a fact instead of a guess.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiserver::authn::Identity;
use apiserver::{ApiServer, Config};
use controllers::ctx::{Ctx, Members};
use controllers::gates::FeatureGates;
use controllers::members::Settings;
use controllers::rest::Rest;
use controllers::start::{Controllers, start};
use jiff::Timestamp;
use kube::Client;
use member::{Member, NodeSpec, Options, Stages};
use plane::policy_impact::PolicyImpact;
use serde_json::json;
use store::Store;
use tokio::time::Instant;

use crate::api_client::ApiClient;
use crate::error::PlayError;
use crate::faults::Faults;
use crate::random::SeededRandom;
use crate::step::Cluster;
use crate::way::Way;

/// The place of the control plane in the record of writes.
pub const CONTROL: &str = "control";
/// When simulations begin.
const EPOCH: &str = "2026-01-01T00:00:00Z";
/// How often is looked whether everything rests.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long nothing may happen until that is called rest.
const IDLE_PERIOD: Duration = Duration::from_secs(3);
/// The same where failures are retried with growing pauses.
const IDLE_PERIOD_WITH_FAILURES: Duration = Duration::from_secs(25);
/// What does not rest within this time never will.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(900);

type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;
type Random = Arc<dyn Fn() -> u128 + Send + Sync>;

/// A simulated control plane.
pub struct Simulated {
    control: ApiServer,
    control_store: Store,
    members: BTreeMap<String, (Member, Store)>,
    faults: Faults,
    way: Way,
    feature_gates: FeatureGates,
    now: Now,
    random: Random,
    ctx: Ctx,
    /// What admission sees of the world.
    policy_impact: PolicyImpact,
    running: Option<Controllers>,
    /// What controllers counted before they were restarted.
    counted: BTreeMap<String, f64>,
}

impl Simulated {
    /// A control plane with these clusters, at rest. Has to be called where time is paused.
    pub async fn start(
        clusters: &[Cluster],
        feature_gates: FeatureGates,
        way: Way,
        seed: u64,
    ) -> Result<Self, PlayError> {
        let (now, random) = (clock(), ids(seed));
        let (control_store, policy_impact) = (Store::in_memory(), PolicyImpact::default());
        let config = Config {
            store: control_store.clone(),
            now: now.clone(),
            random: random.clone(),
            admission: plane::admission::rules(
                feature_gates.gates.clone(),
                random.clone(),
                now.clone(),
                policy_impact.clone(),
            ),
            root_ca: String::new(),
        };
        let control = ApiServer::new(config).await.map_err(|error| PlayError(error.to_string()))?;
        drop(control.start_controllers());
        let faults = Faults::new(way, seed);
        let direct = Rest::new(client(&control, "scenario"));
        plane::install_kinds(&direct).await.map_err(|error| PlayError(error.to_string()))?;
        let through = Rest::new(Client::new(faults.before(CONTROL, connection(&control)), "default"));
        let ctx = Ctx::new(through, Members::new(Settings::default()), feature_gates.clone(), now.clone());
        policy_impact.see(ctx.cache.clone());
        let mut simulated = Self {
            policy_impact,
            control,
            control_store,
            members: BTreeMap::new(),
            faults,
            way,
            feature_gates,
            now,
            random,
            ctx,
            running: None,
            counted: BTreeMap::new(),
        };
        for cluster in clusters {
            simulated.join(cluster).await?;
        }
        simulated.running = Some(start(simulated.ctx.clone()));
        simulated.settle().await?;
        Ok(simulated)
    }

    /// The control plane, as a user reaches it.
    pub fn control(&self) -> ApiClient {
        ApiClient::new(client(&self.control, "scenario"))
    }

    /// The same with a client that lists many objects at once.
    pub fn rest(&self) -> Rest {
        Rest::new(client(&self.control, "scenario"))
    }

    /// A member, as a user reaches it.
    pub fn member(&self, name: &str) -> Option<ApiClient> {
        self.members.get(name).map(|(member, _)| ApiClient::new(client(member.server(), "scenario")))
    }

    /// Names of all members.
    pub fn members(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// What happens on the way to API servers.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// What controllers hold.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// A new cluster comes up and joins.
    pub async fn join(&mut self, cluster: &Cluster) -> Result<(), PlayError> {
        let store = Store::in_memory();
        let options = Options {
            name: cluster.name.clone(),
            nodes: vec![node(cluster)],
            store: store.clone(),
            now: self.now.clone(),
            random: self.random.clone(),
            root_ca: String::new(),
            stages: Stages::builtin(),
        };
        let member = Member::start(options).await.map_err(|error| PlayError(error.to_string()))?;
        self.reach(&cluster.name, &member);
        self.members.insert(cluster.name.clone(), (member, store));
        let mut spec = json!({ "syncMode": "Push", "apiEndpoint": format!("https://{}", cluster.name) });
        for (key, text) in [("provider", &cluster.provider), ("region", &cluster.region)] {
            if !text.is_empty() {
                spec[key] = text.as_str().into();
            }
        }
        if !cluster.zone.is_empty() {
            spec["zones"] = json!([cluster.zone]);
        }
        let object = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": cluster.name, "labels": cluster.labels }, "spec": spec,
        });
        plane::join(&self.rest(), &object).await.map_err(|error| PlayError(error.to_string()))
    }

    fn reach(&self, name: &str, member: &Member) {
        let connection = self.faults.before(name, connection(member.server()));
        self.ctx.members.insert(name, Rest::new(Client::new(connection, "default")));
    }

    /// Stops all controllers; whatever they remember is lost. Then starts new ones.
    pub async fn restart(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down().await;
        }
        self.counted = self.metrics();
        let members = Members::new(Settings::default());
        self.ctx = Ctx::new(self.ctx.control.clone(), members, self.feature_gates.clone(), self.now.clone());
        self.policy_impact.see(self.ctx.cache.clone());
        for (name, (member, _)) in &self.members {
            self.reach(name, member);
        }
        self.running = Some(start(self.ctx.clone()));
    }

    /// What was counted since the beginning, by name and labels.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let mut sum = self.counted.clone();
        for line in controllers::scrape::render(&self.ctx).lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            *sum.entry(name.to_owned()).or_default() += value;
        }
        sum
    }

    /// Lets time pass until nothing happens any more.
    pub async fn settle(&self) -> Result<(), PlayError> {
        let rest = match self.way {
            Way::Failures => IDLE_PERIOD_WITH_FAILURES,
            Way::Plain | Way::Restarts | Way::Delays => IDLE_PERIOD,
        };
        let begun = Instant::now();
        let mut last = (self.revisions(), Instant::now());
        while begun.elapsed() < SETTLE_TIMEOUT {
            tokio::time::sleep(POLL_INTERVAL).await;
            let revisions = self.revisions();
            let is_kept_back = !self.ctx.coalescer.is_empty();
            if revisions != last.0 || self.faults.is_under_way() || is_kept_back {
                last = (revisions, Instant::now());
            } else if last.1.elapsed() >= rest {
                return Ok(());
            }
        }
        Err(PlayError(format!(
            "the control plane does not come to rest within {} s",
            SETTLE_TIMEOUT.as_secs()
        )))
    }

    fn revisions(&self) -> Vec<u64> {
        let members = self.members.values().map(|(_, store)| store.revision());
        std::iter::once(self.control_store.revision()).chain(members).collect()
    }

    /// Ends everything.
    pub async fn end(mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down().await;
        }
        for (_, (member, _)) in std::mem::take(&mut self.members) {
            member.shut_down().await;
        }
        self.control.shut_down();
    }
}

fn client(server: &ApiServer, who: &str) -> Client {
    Client::new(server.trusting(Identity::internal(who)), "default")
}

fn connection(server: &ApiServer) -> apiserver::InProcess {
    server.trusting(Identity::untracked("longshore"))
}

/// A clock that goes with the paused time.
fn clock() -> Now {
    let epoch: Timestamp = EPOCH.parse().expect("it is a time");
    let begun = Instant::now();
    Arc::new(move || {
        let passed = jiff::SignedDuration::try_from(begun.elapsed()).unwrap_or(jiff::SignedDuration::MAX);
        epoch.saturating_add(passed).unwrap_or(epoch)
    })
}

/// Ids that follow from a seed.
fn ids(seed: u64) -> Random {
    let random = SeededRandom::new(seed ^ u64::MAX);
    Arc::new(move || u128::from(random.next_number()) << 64 | u128::from(random.next_number()))
}

fn node(cluster: &Cluster) -> NodeSpec {
    let places =
        [("topology.kubernetes.io/region", &cluster.region), ("topology.kubernetes.io/zone", &cluster.zone)];
    let labels = places.into_iter().filter(|(_, place)| !place.is_empty());
    NodeSpec {
        name: format!("{}-node1", cluster.name),
        cpu: cluster.cpu.clone(),
        memory: "1Ti".to_owned(),
        pods: cluster.pods,
        labels: labels.map(|(key, place)| (key.to_owned(), place.clone())).collect(),
    }
}
