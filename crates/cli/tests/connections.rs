//! Ten thousand hostile connections against the real binary: an administrator still gets an answer, and where nothing
//! else runs within a second.

use std::path::Path;
use std::time::{Duration, Instant};

use checks::client::ApiClient;
use checks::process::Longshore;
use http::Method;
use tokio::net::TcpStream;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const HOSTILE_CONNECTIONS: usize = 10_000;
/// Of those, so many have shaken hands.
const HANDSHAKES_DONE: usize = 500;

/// How many connections this process can open, where its limit of open files is lower than the test's wish.
fn allowed() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let limit = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    limit.map_or(HOSTILE_CONNECTIONS, |limit| HOSTILE_CONNECTIONS.min(limit.saturating_sub(200)))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_gets_in_among_ten_thousand_hostile_connections() {
    get_in_within(Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time"]
async fn an_administrator_gets_in_within_a_second() {
    get_in_within(Duration::from_secs(1)).await;
}

async fn get_in_within(limit: Duration) {
    let server = Longshore::start(Path::new(BINARY), &["--port=0", "--members=0", "--ephemeral"]);
    let server = server.expect("it starts");
    let (root, stranger) = (ApiClient::open(&server.kubeconfig), ApiClient::anonymous(&server.kubeconfig));
    let mut shaken = Vec::new();
    for _ in 0..HANDSHAKES_DONE {
        shaken.push(stranger.connect().await.expect("the server accepts connections"));
    }
    let mut bare = Vec::new();
    for _ in 0..allowed() - HANDSHAKES_DONE {
        bare.push(TcpStream::connect(&server.address).await.expect("the server accepts connections"));
    }
    for _ in 0..5 {
        let begun = Instant::now();
        let (status, answer) = root.request(Method::GET, "/api/v1/namespaces", "").await;
        assert!(status.is_success(), "{answer}");
        assert!(begun.elapsed() < limit, "it took {:?}", begun.elapsed());
    }
    let (status, _) = stranger.request(Method::GET, "/healthz", "").await;
    assert!(status.is_success(), "a probe gets in too");
}
