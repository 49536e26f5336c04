//! Leader election: one of several replicas writes, and never two, whatever happens to the leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apiserver::authn::Identity;
use controllers::ctx::{Ctx, Members};
use controllers::gates::FeatureGates;
use controllers::leader_election::{Ended, LeaderElector, Terms};
use controllers::rest::{Collection, Error, LeaderFence, Rest};
use controllers::scrape;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::stack::{Place, at};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/one";

fn candidate(place: &Place, identity: &str, gated: bool) -> LeaderElector {
    LeaderElector {
        control: if gated { place.through.clone() } else { place.rest.clone() },
        namespace: "default".to_owned(),
        name: "one".to_owned(),
        identity: identity.to_owned(),
        terms: Terms::of(Duration::from_secs(15)),
        fence: LeaderFence::default(),
    }
}

fn run(
    candidate: LeaderElector,
    stop: &CancellationToken,
) -> tokio::task::JoinHandle<(LeaderElector, Ended)> {
    let stop = stop.clone();
    tokio::spawn(async move {
        let ended = candidate.run(&stop).await;
        (candidate, ended)
    })
}

/// One that leads, by way of the gate or not, and another that waits.
struct Rivals {
    place: Place,
    first: LeaderFence,
    second: LeaderFence,
    stop: CancellationToken,
    tasks: [tokio::task::JoinHandle<(LeaderElector, Ended)>; 2],
}

impl Rivals {
    async fn start(gated: bool) -> Self {
        let place = Place::alone().await;
        let (one, other) = (candidate(&place, "one", gated), candidate(&place, "other", false));
        let (first, second) = (one.fence.clone(), other.fence.clone());
        let stop = CancellationToken::new();
        let one = run(one, &stop);
        first.held().await;
        let tasks = [one, run(other, &stop)];
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(first.is_held() && !second.is_held());
        Self { place, first, second, stop, tasks }
    }

    async fn end(self) {
        self.stop.cancel();
        for task in self.tasks {
            task.await.expect("it was told to stop, or gave up");
        }
    }
}

/// The leader becomes unreachable, and a client changes the Lease; returns its final state.
async fn check_handover(meddle: impl AsyncFn(&Place)) -> Value {
    let rivals = Rivals::start(true).await;
    rivals.place.gate.shut();
    let begun = Instant::now();
    meddle(&rivals.place).await;
    rivals.first.lost().await;
    assert!(!rivals.second.is_held(), "both would have written");
    let lost = begun.elapsed();
    rivals.second.held().await;
    let taken = begun.elapsed();
    assert!(lost <= Duration::from_secs(10), "{lost:?}");
    assert!(taken >= Duration::from_secs(13) && taken - lost >= Duration::from_secs(4), "{lost:?} {taken:?}");
    assert!(taken <= Duration::from_secs(33), "{taken:?}");
    let lease = rivals.place.get(LEASE).await.unwrap_or_default();
    assert_eq!(lease["spec"]["holderIdentity"], "other");
    rivals.end().await;
    lease
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_another_starts() {
    let lease = check_handover(async |_| {}).await;
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_immediately() {
    let place = Place::alone().await;
    let (one, other) = (candidate(&place, "one", false), candidate(&place, "other", false));
    let second = other.fence.clone();
    let (stop_one, stop) = (CancellationToken::new(), CancellationToken::new());
    let first = one.fence.clone();
    let one = run(one, &stop_one);
    first.held().await;
    let other = run(other, &stop);
    stop_one.cancel();
    let (one, _) = one.await.expect("it was told to stop");
    assert!(!first.is_held());
    one.resign().await.expect("the server answers");
    let begun = Instant::now();
    second.held().await;
    assert!(begun.elapsed() <= Duration::from_secs(3), "{:?}", begun.elapsed());
    stop.cancel();
    other.await.expect("it was told to stop");
}

async fn edit(place: &Place, spec: Value) {
    place.rest.merge(&at(LEASE), &json!({ "spec": spec })).await.expect("the server answers");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_not_taken_before_it_expires() {
    check_handover(async |place| place.rest.delete(&at(LEASE), None).await.expect("the server answers"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_emptied_lease_is_not_taken_before_it_expires() {
    check_handover(async |place| edit(place, json!({ "holderIdentity": null })).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_shortened_lease_is_not_taken_before_it_expires() {
    check_handover(async |place| edit(place, json!({ "leaseDurationSeconds": 1 })).await).await;
}

#[tokio::test(start_paused = true)]
async fn the_leader_repairs_its_lease() {
    let rivals = Rivals::start(false).await;
    let Rivals { place, first, second, .. } = &rivals;
    for emptied in [false, true] {
        match emptied {
            false => place.rest.delete(&at(LEASE), None).await.expect("the server answers"),
            true => edit(place, json!({ "holderIdentity": null })).await,
        }
        place.until("held again", LEASE, |lease| lease["spec"]["holderIdentity"] == "one").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(first.is_held() && !second.is_held());
    }
    rivals.end().await;
}

/// A server that never answers one request while `swallow` is set, as over a dead connection.
fn swallowing(place: &Place, swallow: &Arc<AtomicBool>) -> Rest {
    let (server, swallow) = (place.server.trusting(Identity::internal("longshore")), swallow.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (mut server, swallowed) = (server.clone(), swallow.swap(false, Ordering::Relaxed));
        async move {
            if swallowed {
                std::future::pending::<()>().await;
            }
            server.call(request).await
        }
    });
    Rest::new(kube::Client::new(service, "default"))
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_dies_does_not_cost_the_lead() {
    let place = Place::alone().await;
    let swallow = Arc::new(AtomicBool::new(false));
    let one = LeaderElector { control: swallowing(&place, &swallow), ..candidate(&place, "one", false) };
    let first = one.fence.clone();
    let stop = CancellationToken::new();
    let one = run(one, &stop);
    first.held().await;
    swallow.store(true, Ordering::Relaxed);
    let lost = tokio::time::timeout(Duration::from_secs(60), first.lost()).await;
    assert!(lost.is_err() && !swallow.load(Ordering::Relaxed), "it leads, though a request was swallowed");
    stop.cancel();
    let (_, ended) = one.await.expect("it was told to stop");
    assert_eq!(ended, Ended::Shutdown);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_reported_with_the_last_failure() {
    let place = Place::alone().await;
    let one = candidate(&place, "one", true);
    let first = one.fence.clone();
    let one = run(one, &CancellationToken::new());
    first.held().await;
    place.gate.refuse("PUT /apis/coordination.k8s.io", StatusCode::FORBIDDEN);
    let (_, ended) = one.await.expect("it gave up");
    let expected = format!("it was not renewed in time: put {LEASE}: refused by the test");
    assert_eq!(ended.to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn metrics_say_who_leads() {
    let place = Place::alone().await;
    let fence = LeaderFence::default();
    let control = place.rest.clone().under(fence.clone());
    let ctx = Ctx::new(control, Members::default(), FeatureGates::default(), Arc::new(jiff::Timestamp::now));
    let check = |leads: u8| {
        let line = format!("leader_election_master_status{{name=\"longshore-controllers\"}} {leads}\n");
        let text = scrape::render(&ctx);
        assert!(text.contains(&line), "{line}{text}");
    };
    check(0);
    fence.extend(Instant::now() + Duration::from_secs(10));
    check(1);
    tokio::time::sleep(Duration::from_secs(10)).await;
    check(0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_fence_stops_writes_even_those_in_flight() {
    let place = Place::alone().await;
    let fence = LeaderFence::default();
    let rest = place.through.clone().under(fence.clone());
    let maps = Collection::new("v1", "configmaps", "default");
    let map = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    assert!(matches!(rest.create(&maps, &map("a")).await, Err(Error::Fenced { .. })));
    fence.extend(Instant::now() + Duration::from_secs(10));
    rest.create(&maps, &map("b")).await.expect("it may write");
    place.gate.shut();
    let begun = Instant::now();
    assert!(matches!(rest.create(&maps, &map("c")).await, Err(Error::Fenced { .. })));
    assert_eq!(begun.elapsed().as_secs(), 10);
    for (name, expected) in [("a", false), ("b", true), ("c", false)] {
        assert_eq!(place.get(&maps.object(name).to_string()).await.is_some(), expected, "{name}");
    }
}
