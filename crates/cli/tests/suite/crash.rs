//! `kill -9` again and again while clients write and watch: whatever was acknowledged is there after each
//! restart, whole and in order, and watches go on where they were. `LONGSHORE_KILLS` says how often,
//! `LONGSHORE_CRASH_SEED` repeats a run as far as timing allows.

use std::path::Path;
use std::time::Duration;

use checks::client::ApiClient;
use checks::process::Longshore;
use checks::random::SeededRandom;
use http::Method;
use serde_json::Value;

mod watcher;
mod writer;

use watcher::Watcher;
use writer::Writer;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
const SELECTED: &str = "/api/v1/namespaces/default/configmaps?labelSelector=crash";
const WRITERS: usize = 4;
const WATCHERS: usize = 2;

fn kills() -> usize {
    std::env::var("LONGSHORE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

fn start(directory: &Path) -> (Longshore, ApiClient) {
    let directory = directory.to_str().expect("a readable path");
    let server = Longshore::start(Path::new(BINARY), &["--data-dir", directory, "--port=0", "--members=0"])
        .expect("it starts on what the last one left");
    let api_client = ApiClient::open(&server.kubeconfig);
    (server, api_client)
}

fn revision(metadata: &Value) -> u64 {
    metadata["resourceVersion"].as_str().expect("a version").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_ever_lost() {
    let mut random = SeededRandom::from_environment("LONGSHORE_CRASH_SEED");
    let directory = tempfile::tempdir().expect("a directory");
    let mut writers: Vec<Writer> = (0..WRITERS).map(|index| Writer::new(index, random.fork())).collect();
    let (mut server, mut api_client) = start(directory.path());
    let mut newest = revision(&list(&api_client).await["metadata"]);
    let mut watchers: Vec<Watcher> = (0..WATCHERS).map(|_| Watcher::new(newest)).collect();
    for round in 0..kills() {
        let load = Duration::from_millis(5 + random.below(120));
        let running = tokio::spawn(work(api_client.clone(), writers, watchers));
        tokio::time::sleep(load).await;
        // Killing blocks until the process is gone, which ends every request.
        tokio::task::block_in_place(|| server.kill());
        (writers, watchers) = running.await.expect("clients survive the death of a server");
        (server, api_client) = tokio::task::block_in_place(|| start(directory.path()));
        let found = list(&api_client).await;
        let now = revision(&found["metadata"]);
        assert!(now >= newest, "round {round}: revisions only grow, {newest} was seen before {now}");
        newest = now;
        for writer in &mut writers {
            writer.check(&found, round);
        }
    }
    finish(&api_client, &writers, watchers).await;
    let acknowledged: usize = writers.iter().map(|writer| writer.acknowledged.len()).sum();
    assert!(acknowledged > kills(), "there was hardly any load: {acknowledged} writes");
}

/// Everybody works until the server is gone.
async fn work(
    api_client: ApiClient,
    writers: Vec<Writer>,
    watchers: Vec<Watcher>,
) -> (Vec<Writer>, Vec<Watcher>) {
    let writing = writers.into_iter().map(|mut writer| {
        let api_client = api_client.clone();
        tokio::spawn(async move {
            writer.work(&api_client).await;
            writer
        })
    });
    let writing: Vec<_> = writing.collect();
    let watching = watchers.into_iter().map(|mut watcher| {
        let api_client = api_client.clone();
        tokio::spawn(async move {
            watcher.follow(&api_client, None).await;
            watcher
        })
    });
    let watching: Vec<_> = watching.collect();
    let (mut writers, mut watchers) = (Vec::new(), Vec::new());
    for task in writing {
        writers.push(task.await.expect("a writer that ends"));
    }
    for task in watching {
        watchers.push(task.await.expect("a watcher that ends"));
    }
    (writers, watchers)
}

/// The watches catch up, and have then seen everything that was acknowledged, once.
async fn finish(api_client: &ApiClient, writers: &[Writer], watchers: Vec<Watcher>) {
    let last = list(api_client).await;
    let newest = revision(&last["metadata"]);
    for mut watcher in watchers {
        watcher.follow(api_client, Some(newest)).await;
        watcher.check(&last);
        for (revision, name) in writers.iter().flat_map(|writer| &writer.acknowledged) {
            assert_eq!(watcher.seen.get(revision), Some(name), "an acknowledged write was not watched");
        }
    }
}

async fn list(api_client: &ApiClient) -> Value {
    let (status, list) = api_client.request(Method::GET, SELECTED, "").await;
    assert_eq!(status, 200, "{list}");
    list
}
