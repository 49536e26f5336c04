//! Of several replicas one writes, and never two, whatever happens to the one that does.

use std::time::Duration;

use controllers::leadership::{Candidate, Terms};
use controllers::rest::{Collection, Error, Warrant};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::stack::Place;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/one";

fn candidate(place: &Place, identity: &str, gated: bool) -> Candidate {
    Candidate {
        control: if gated { place.through.clone() } else { place.rest.clone() },
        namespace: "default".to_owned(),
        name: "one".to_owned(),
        identity: identity.to_owned(),
        terms: Terms::of(Duration::from_secs(15)),
        warrant: Warrant::default(),
    }
}

fn run(candidate: Candidate, stop: &CancellationToken) -> tokio::task::JoinHandle<Candidate> {
    let stop = stop.clone();
    tokio::spawn(async move {
        candidate.run(&stop).await;
        candidate
    })
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_stops_before_another_begins() {
    let place = Place::alone().await;
    let (one, other) = (candidate(&place, "one", true), candidate(&place, "other", false));
    let (first, second) = (one.warrant.clone(), other.warrant.clone());
    let stop = CancellationToken::new();
    let one = run(one, &stop);
    first.held().await;
    let other = run(other, &stop);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(first.is_held() && !second.is_held());
    place.gate.shut();
    let begun = Instant::now();
    first.lost().await;
    let lost = begun.elapsed();
    second.held().await;
    let taken = begun.elapsed();
    assert!(lost <= Duration::from_secs(10), "{lost:?}");
    assert!(taken >= Duration::from_secs(13) && taken - lost >= Duration::from_secs(4), "{lost:?} {taken:?}");
    one.await.expect("it gave up");
    let lease = place.get(LEASE).await.unwrap_or_default();
    assert_eq!(
        (&lease["spec"]["holderIdentity"], &lease["spec"]["leaseTransitions"]),
        (&json!("other"), &json!(1))
    );
    stop.cancel();
    other.await.expect("it was told to stop");
}

#[tokio::test(start_paused = true)]
async fn who_resigns_is_followed_at_once() {
    let place = Place::alone().await;
    let (one, other) = (candidate(&place, "one", false), candidate(&place, "other", false));
    let second = other.warrant.clone();
    let (stop_one, stop) = (CancellationToken::new(), CancellationToken::new());
    let first = one.warrant.clone();
    let one = run(one, &stop_one);
    first.held().await;
    let other = run(other, &stop);
    stop_one.cancel();
    let one = one.await.expect("it was told to stop");
    assert!(!first.is_held());
    one.resign().await.expect("the server answers");
    let begun = Instant::now();
    second.held().await;
    assert!(begun.elapsed() <= Duration::from_secs(3), "{:?}", begun.elapsed());
    stop.cancel();
    other.await.expect("it was told to stop");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_a_warrant_not_even_what_is_under_way() {
    let place = Place::alone().await;
    let warrant = Warrant::default();
    let rest = place.through.clone().under(warrant.clone());
    let maps = Collection::new("v1", "configmaps", "default");
    let map = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    assert!(matches!(rest.create(&maps, &map("a")).await, Err(Error::Unwarranted { .. })));
    warrant.extend(Instant::now() + Duration::from_secs(10));
    rest.create(&maps, &map("b")).await.expect("it may write");
    place.gate.shut();
    let begun = Instant::now();
    assert!(matches!(rest.create(&maps, &map("c")).await, Err(Error::Unwarranted { .. })));
    assert_eq!(begun.elapsed().as_secs(), 10);
    for (name, expected) in [("a", false), ("b", true), ("c", false)] {
        assert_eq!(place.get(&maps.object(name)).await.is_some(), expected, "{name}");
    }
}
