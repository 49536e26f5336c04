//! `longshore up` without a word more: three clusters in their zones, joined and ready, and where nothing else runs
//! within two seconds.

use std::path::Path;
use std::time::{Duration, Instant};

use checks::client::ApiClient;
use checks::process::Longshore;
use http::Method;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const READY_WITHIN: Duration = Duration::from_secs(2);

fn is_ready(cluster: &Value) -> bool {
    let conditions = cluster["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}

/// Starts it and says how long it took until every cluster was ready.
async fn time_to_ready(directory: &Path) -> (Duration, Longshore, Vec<Value>) {
    let begun = Instant::now();
    let directory = directory.to_str().expect("a readable path");
    let server =
        Longshore::start(Path::new(BINARY), &["--port=0", "--data-dir", directory]).expect("it starts");
    let api_client = ApiClient::open(&server.kubeconfig);
    loop {
        let (_, list) = api_client.request(Method::GET, CLUSTERS, "").await;
        let clusters = list["items"].as_array().cloned().unwrap_or_default();
        if clusters.len() == 3 && clusters.iter().all(is_ready) {
            return (begun.elapsed(), server, clusters);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "never ready: {clusters:#?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn three_members_are_in_their_zones_and_ready() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_, server, clusters) = time_to_ready(home.path()).await;
    let places: Vec<Value> = clusters
        .iter()
        .map(|one| json!([one["metadata"]["name"], one["spec"]["region"], one["spec"]["zones"]]))
        .collect();
    let expected = [
        json!(["member1", "east", ["east-1"]]),
        json!(["member2", "west", ["west-1"]]),
        json!(["member3", "west", ["west-2"]]),
    ];
    assert_eq!(places, expected);
    let last = server.said().last().expect("it says something").clone();
    assert!(last.starts_with("Ctrl-C"), "{last}");
}

#[tokio::test]
#[ignore = "measures time"]
async fn three_members_are_ready_within_two_seconds() {
    // A machine that does something else for a moment says nothing about us; three times would.
    let mut fastest = Duration::MAX;
    for _ in 0..3 {
        let home = tempfile::tempdir().expect("a temporary directory");
        fastest = fastest.min(time_to_ready(home.path()).await.0);
        if fastest < READY_WITHIN {
            return;
        }
    }
    panic!("it took {fastest:?} at best");
}
