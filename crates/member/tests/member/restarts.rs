//! Members that stop at any point and continue after a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use apiserver::authn::Identity;
use member::{Member, Options};
use serde_json::{Value, json};
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, DEPLOYMENTS, PODS, REPLICA_SETS, clock, deployment, node, options, template};

fn nodes() -> Vec<member::NodeSpec> {
    vec![node("n1", "8", 110), node("n2", "8", 110)]
}

/// What is the same however often a member was started: everything but times, uids and versions.
async fn outcome(cluster: &Cluster) -> Value {
    let mut seen = Vec::new();
    for path in [DEPLOYMENTS, REPLICA_SETS, PODS] {
        for object in cluster.list(path).await {
            let containers = object["spec"]["containers"].clone();
            let mut status = object["status"].clone();
            for conditions in status["conditions"].as_array_mut().into_iter().flatten() {
                for time in ["lastTransitionTime", "lastUpdateTime"] {
                    conditions[time] = Value::Null;
                }
            }
            let size = [&object["spec"]["replicas"], &status["replicas"], &status["readyReplicas"]]
                .map(Value::clone);
            let annotations = object["metadata"]["annotations"].clone();
            seen.push(json!([
                object["kind"],
                containers,
                size,
                annotations,
                status["phase"],
                status["conditions"]
            ]));
        }
    }
    seen.sort_by_key(Value::to_string);
    seen.into()
}

/// The life that is interrupted: a Deployment becomes ready.
async fn live(cluster: &Cluster) {
    cluster.create(DEPLOYMENTS, deployment("nginx", "nginx:1", 2)).await;
    cluster.settle().await;
}

/// A clock that works so many times and then takes everything that asks down with it.
fn failing_clock(uses: usize, out: CancellationToken) -> Arc<dyn Fn() -> jiff::Timestamp + Send + Sync> {
    let (clock, used) = (clock(), AtomicUsize::new(0));
    Arc::new(move || match used.fetch_add(1, Ordering::SeqCst) < uses {
        true => clock(),
        false => {
            out.cancel();
            panic!("the power is out")
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing() {
    let store = Store::in_memory();
    let cluster = Cluster::with_options(options(&store, nodes())).await;
    live(&cluster).await;
    let (before, seen) = (store.revision(), outcome(&cluster).await);
    cluster.member.shut_down().await;
    let cluster = Cluster::with_options(options(&store, nodes())).await;
    assert_eq!(store.revision(), before);
    assert_eq!(outcome(&cluster).await, seen);
}

/// Every use of the clock is a write or the beginning of a round, so that every point between two writes
/// is a point where the member ends.
#[tokio::test(start_paused = true)]
async fn a_member_that_ends_anywhere_goes_on_without_duplicates() {
    let cluster = Cluster::with_options(options(&Store::in_memory(), nodes())).await;
    live(&cluster).await;
    let expected = outcome(&cluster).await;
    let mut lives = 0;
    for uses in 0.. {
        let store = Store::in_memory();
        // The Deployment is there before the member is: everything it does is in the interrupted life.
        let first = Cluster::with_options(options(&store, nodes())).await;
        first.member.shut_down().await;
        let server = bare_server(&store).await;
        server.create().await;
        let out = CancellationToken::new();
        let now = failing_clock(uses, out.clone());
        let options_failing = Options { now, ..options(&store, nodes()) };
        let survived = match Member::start(options_failing).await {
            Ok(member) => {
                // A member that panics would begin anew; this one has no power to.
                let survived = tokio::select! {
                    biased;
                    () = out.cancelled() => false,
                    settled = tokio::time::timeout(Duration::from_secs(5), member.settle()) => {
                        matches!(settled, Ok(Ok(())))
                    }
                };
                member.shut_down().await;
                survived
            }
            Err(_) => false,
        };
        let second = Cluster::with_options(options(&store, nodes())).await;
        assert_eq!(outcome(&second).await, expected, "after {uses} uses of the clock");
        second.member.shut_down().await;
        lives += 1;
        if survived {
            break;
        }
        assert!(uses < 200, "the life ends");
    }
    assert!(lives > 10, "{lives} lives");
}

struct Bare(apiserver::InProcess);

async fn bare_server(store: &Store) -> Bare {
    let config = apiserver::Config {
        store: store.clone(),
        now: clock(),
        random: Arc::new(|| 77),
        admission: apiserver::admission::admit_all(),
        root_ca: String::new(),
    };
    let server = apiserver::ApiServer::new(config).await.unwrap();
    Bare(server.trusting(Identity::internal("tester")))
}

impl Bare {
    async fn create(mut self) {
        use tower::Service as _;
        let body = deployment("nginx", "nginx:1", 2).to_string();
        let request = http::Request::post(DEPLOYMENTS).body(http_body_util::Full::from(body)).unwrap();
        assert_eq!(self.0.call(request).await.unwrap().status(), 201);
    }
}

/// A disk takes real time, so this clock is not paused.
#[tokio::test]
async fn a_member_on_disk_is_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), store::Options::default()).unwrap();
    let cluster = Cluster::with_options(options(&store, nodes())).await;
    live(&cluster).await;
    let seen = outcome(&cluster).await;
    cluster.member.shut_down().await;
    drop(cluster.store);
    store.close().await.unwrap();
    let store = Store::open(directory.path(), store::Options::default()).unwrap();
    let before = store.revision();
    let cluster = Cluster::with_options(options(&store, nodes())).await;
    assert_eq!(store.revision(), before);
    assert_eq!(outcome(&cluster).await, seen);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_fell_behind_lists_again() {
    let store = Store::in_memory();
    let cluster = Cluster::with_options(options(&store, nodes())).await;
    for round in 0..5 {
        let name = format!("d{round}");
        cluster.create(DEPLOYMENTS, deployment(&name, "nginx", 1)).await;
        if round > 0 {
            cluster.delete(&format!("{DEPLOYMENTS}/d{}", round - 1)).await;
        }
        // What the feeds have not taken yet is forgotten by the store.
        store.compact(store.revision()).await.unwrap();
        cluster.settle().await;
        let deployments = cluster.list(DEPLOYMENTS).await;
        assert_eq!(deployments.len(), 1);
        assert_eq!(deployments[0]["status"]["availableReplicas"], 1);
        assert_eq!(cluster.pods().await.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_work_panics_goes_on_when_it_can() {
    let broken = Arc::new(AtomicBool::new(false));
    let (clock, is_broken) = (clock(), broken.clone());
    let now = Arc::new(move || match is_broken.load(Ordering::SeqCst) {
        false => clock(),
        true => panic!("the power is out"),
    });
    let cluster = Cluster::with_options(Options { now, ..options(&Store::in_memory(), nodes()) }).await;
    let mut template = template("work");
    template["spec"]["restartPolicy"] = "Never".into();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "task" }, "spec": { "template": template },
    });
    cluster.create("/apis/batch/v1/namespaces/default/jobs", job).await;
    // The pod runs, and will be looked at again in a second.
    tokio::time::sleep(Duration::from_millis(500)).await;
    broken.store(true, Ordering::SeqCst);
    let settled = tokio::time::timeout(Duration::from_secs(10), cluster.member.settle()).await;
    assert!(settled.is_err(), "there is work that cannot be done: {settled:?}");
    broken.store(false, Ordering::SeqCst);
    cluster.settle().await;
    let job = cluster.get("/apis/batch/v1/namespaces/default/jobs/task").await;
    assert_eq!(job["status"]["succeeded"], 1, "{job}");
    cluster.member.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_member_ends_at_once() {
    let cluster = Cluster::start().await;
    for number in 0..50 {
        cluster.create(DEPLOYMENTS, deployment(&format!("d{number}"), "nginx", 1)).await;
    }
    let before = tokio::time::Instant::now();
    cluster.member.shut_down().await;
    assert_eq!(before.elapsed(), Duration::ZERO);
}
