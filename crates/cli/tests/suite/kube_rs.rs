//! kube-rs and client-go-style clients on the real binary over TLS, while objects churn, the process is
//! killed and started again, and history is kept for one second only.

use std::path::Path;
use std::time::Duration;

use checks::churn::Churn;
use checks::followers;
use checks::process::Longshore;
use checks::random::SeededRandom;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const LABEL: &str = "churn";

fn start(directory: &Path, port: &str) -> Longshore {
    let directory = directory.to_str().expect("a readable path");
    let arguments = ["--data-dir", directory, "--port", port, "--history-seconds=1", "--members=0"];
    Longshore::start(Path::new(BINARY), &arguments).expect("it starts on what the last one left")
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_agree_through_kills_and_compaction() {
    let mut random = SeededRandom::from_environment("LONGSHORE_FOLLOW_SEED");
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = start(directory.path(), "0");
    let port = server.address.rsplit(':').next().expect("an address has a port").to_owned();
    let client = client(&server.kubeconfig).await;
    let followers = followers::all(&client, LABEL, &mut random);
    let churn = Churn::start(&client, LABEL, &mut random);
    for _ in 0..5 {
        // Long enough for compaction, so that a paused client gets 410 Gone and has to relist.
        tokio::time::sleep(Duration::from_millis(1_500 + random.below(1_000))).await;
        server = tokio::task::block_in_place(|| {
            server.kill();
            start(directory.path(), &port)
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    churn.check(&followers).await;
    let lists: usize = followers.iter().map(|follower| follower.with_state(|seen| seen.lists)).sum();
    assert!(lists > followers.len(), "whoever dozes while history goes has to list again");
    drop(followers);
    assert_eq!(server.interrupt(), Some(0), "it ends in peace when it is asked to");
}
