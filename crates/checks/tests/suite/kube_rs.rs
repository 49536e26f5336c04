//! kube-rs and client-go-style clients on a server in this process, while objects churn, the server is replaced by
//! another one on the same store, and history is compacted during their watches.

use std::sync::Arc;
use std::time::Duration;

use apiserver::authn::Identity;
use apiserver::{ApiServer, Config, InProcess};
use arc_swap::ArcSwapOption;
use checks::churn::Churn;
use checks::followers;
use checks::random::SeededRandom;
use kube::Client;
use kube::client::Body;
use store::Store;
use tower::ServiceExt as _;

const LABEL: &str = "churn";

async fn start(store: &Store, seed: u64) -> ApiServer {
    let random = std::sync::Mutex::new(SeededRandom::new(seed));
    let random = move || {
        let mut random = random.lock().expect("no one panics while holding it");
        u128::from(random.below(u64::MAX)) << 64 | u128::from(random.below(u64::MAX))
    };
    let config = Config {
        store: store.clone(),
        now: Arc::new(jiff::Timestamp::now),
        random: Arc::new(random),
        admission: apiserver::admission::admit_all(),
        root_ca: "certificate".to_owned(),
    };
    ApiServer::new(config).await.expect("a server on this store")
}

/// A client of whichever server is there; while none is, every request fails.
fn client(current: &Arc<ArcSwapOption<InProcess>>) -> Client {
    let current = current.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let server = current.load_full();
        async move {
            match server {
                Some(server) => {
                    Ok((*server).clone().oneshot(request).await.unwrap_or_else(|never| match never {}))
                }
                None => Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)),
            }
        }
    });
    Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_agree_through_restarts_and_compaction() {
    let mut random = SeededRandom::from_environment("LONGSHORE_FOLLOW_SEED");
    let store = Store::in_memory();
    let current = Arc::new(ArcSwapOption::empty());
    let enter =
        |server: &ApiServer| current.store(Some(Arc::new(server.trusting(Identity::internal("test")))));
    let mut server = start(&store, 0).await;
    enter(&server);
    let client = client(&current);
    let followers = followers::all(&client, LABEL, &mut random);
    let churn = Churn::start(&client, LABEL, &mut random);
    for round in 1..=40 {
        tokio::time::sleep(Duration::from_millis(50 + random.below(150))).await;
        match random.below(3) {
            0 => {
                current.store(None);
                server.shut_down();
                server = start(&store, round).await;
                tokio::time::sleep(Duration::from_millis(random.below(50))).await;
                enter(&server);
            }
            1 => {
                let revision = store.revision() - random.below(30).min(store.revision());
                store.compact(revision.max(store.compacted())).await.expect("memory can be compacted");
            }
            _ => {}
        }
    }
    churn.check(&followers).await;
    let dozing = followers.iter().find(|follower| follower.name == "list and watch that dozes");
    let lists = dozing.expect("one that dozes").with_state(|seen| seen.lists);
    assert!(lists > 1, "whoever dozes while history is compacted has to list again");
    server.shut_down();
}
