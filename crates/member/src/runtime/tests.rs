//! A member continues after a panic.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use apiserver::authn::Identity;
use apiserver::{ApiServer, Config, admission};
use serde_json::json;
use supervise::Injector;

use super::*;
use crate::client::{Client, Passage};
use crate::key::{Key, Kind, Named};
use crate::plan::Write;
use crate::stages::Stages;

/// A member whose worker panics the first three times at a point.
async fn panics_at(point: &'static str) {
    let now = Arc::new(jiff::Timestamp::now);
    let numbers = AtomicU32::new(1);
    let config = Config {
        store: store::Store::in_memory(),
        now: now.clone(),
        random: Arc::new(move || u128::from(numbers.fetch_add(1, Ordering::Relaxed)) << 64),
        admission: admission::admit_all(),
        root_ca: String::new(),
    };
    let server = ApiServer::new(config).await.expect("an empty store opens");
    let names: BTreeMap<Kind, Named> = Stages::builtin().kinds().chain(Kind::built_in()).collect();
    let kinds: Vec<Kind> = names.keys().copied().collect();
    let client = Client::new(Passage::new(server.trusting(Identity::untracked("test"))), names);
    let passed = Arc::new(AtomicU32::new(0));
    let counted = passed.clone();
    let injector = Injector::new(move |at, _| {
        assert!(at != point || counted.fetch_add(1, Ordering::Relaxed) >= 3, "injected");
    });
    let asking = client.clone();
    let worker = move || {
        let worker = Worker::new(client.clone(), kinds.iter().copied(), Stages::builtin(), now.clone());
        worker.with_faults(injector.clone())
    };
    let (asks, asked) = mpsc::channel(IDLE_WAITERS_MAX);
    let stop = CancellationToken::new();
    let task = start("member1", worker, None, asked, stop.clone());
    let selector = json!({ "matchLabels": { "app": "web" } });
    let pod = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "web" }] },
    });
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "replicas": 1, "selector": selector, "template": pod },
    });
    let created = asking.write(&Write::Create { kind: Kind::Deployment, object }).await;
    assert!(created.is_ok(), "{created:?}");
    let key = Key::new(Kind::Deployment, "default", "web");
    let begun = Instant::now();
    loop {
        let (ask, answer) = oneshot::channel();
        asks.send(ask).await.expect("it runs");
        answer.await.expect("it answers");
        let found = asking.get(&key).await.expect("the server answers").expect("it is there");
        if found["status"]["observedGeneration"] == 1 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_mins(5), "{found:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(passed.load(Ordering::Relaxed) > 3);
    stop.cancel();
    task.await.expect("it ends when it is told to");
}

#[tokio::test(start_paused = true)]
async fn an_object_over_which_it_panics_is_tried_again() {
    panics_at("plan").await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_panics_begins_anew_and_answers_who_asked() {
    panics_at("work").await;
}
