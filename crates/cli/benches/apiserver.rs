//! How fast the API server is, measured from outside: the real binary over HTTPS, with clients in another
//! process. `cargo bench -p cli --bench apiserver [-- SECTION…]` prints one line per measurement.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use checks::client::ApiClient;
use checks::process::Longshore;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
const SECONDS: u64 = 5;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    if run("start") {
        runtime.block_on(start_times());
    }
    if run("create") {
        for clients in [1, 16, 64] {
            runtime.block_on(creates(clients));
        }
    }
    if run("other") {
        runtime.block_on(updates_and_gets());
    }
    if run("list") {
        runtime.block_on(lists());
    }
    if run("watch") {
        for watchers in [100, 1_000] {
            runtime.block_on(watches(watchers));
        }
    }
    if run("memory") {
        runtime.block_on(memory(41_000));
        runtime.block_on(memory(100_000));
    }
}

fn report(what: &str, figure: f64, unit: &str) {
    // A closed stdout cannot be reported anywhere.
    let _ = writeln!(std::io::stdout(), "{what:<56} {figure:>12.1} {unit}");
}

fn start(directory: &Path) -> (Longshore, ApiClient) {
    let directory = directory.to_str().expect("a readable path");
    let server = Longshore::start(Path::new(BINARY), &["--data-dir", directory, "--port=0", "--members=0"])
        .expect("it starts");
    let api_client = ApiClient::open(&server.kubeconfig);
    (server, api_client)
}

/// A ConfigMap of 1.8 KB with text that does not compress well.
fn config_map(name: &str, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(1_700);
    while text.len() < 1_700 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:016x}"));
    }
    let body = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"{name}\"}},\"data\":{{\"payload\":\"{text}\"}}}}"
    );
    Bytes::from(body)
}

/// Runs `request` from so many connections for a while; answers requests per second and the latencies.
async fn load(
    api_client: &ApiClient,
    clients: usize,
    request: impl Fn(u64) -> (Method, String, Bytes, StatusCode) + Send + Sync + 'static,
) -> (f64, Vec<Duration>) {
    let request = Arc::new(request);
    let counter = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let workers: Vec<_> = (0..clients)
        .map(|_| {
            let (api_client, request, counter) = (api_client.clone(), request.clone(), counter.clone());
            tokio::spawn(async move {
                let mut connection = api_client.connect().await.expect("a connection");
                let mut latencies = Vec::new();
                while begun.elapsed() < Duration::from_secs(SECONDS) {
                    let (method, path, body, expected) = request(counter.fetch_add(1, Ordering::Relaxed));
                    let sent = Instant::now();
                    let (status, _) = connection.raw(method, &path, body).await.expect("an answer");
                    assert_eq!(status, expected, "{path}");
                    latencies.push(sent.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for worker in workers {
        latencies.extend(worker.await.expect("no client fails"));
    }
    let rate = latencies.len() as f64 / begun.elapsed().as_secs_f64();
    latencies.sort();
    (rate, latencies)
}

fn report_load(what: &str, (rate, latencies): &(f64, Vec<Duration>)) {
    report(what, *rate, "requests/s");
    for (name, share) in [("p50", 0.50), ("p99", 0.99)] {
        let index = ((latencies.len() - 1) as f64 * share) as usize;
        report(&format!("  {name}"), latencies[index].as_secs_f64() * 1e3, "ms");
    }
}

async fn creates(clients: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, api_client) = start(directory.path());
    let result = load(&api_client, clients, |number| {
        let name = format!("bench-{number}");
        (Method::POST, COLLECTION.to_owned(), config_map(&name, number), StatusCode::CREATED)
    })
    .await;
    report_load(&format!("durable creates of 1.8 KB, {clients} clients"), &result);
    drop(server);
}

async fn fill(api_client: &ApiClient, count: usize) {
    let request = |number| {
        let body = config_map(&format!("bench-{number}"), number as u64);
        (Method::POST, COLLECTION.to_owned(), body, StatusCode::CREATED)
    };
    api_client.crowd(64, count, request).await;
}

async fn updates_and_gets() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, api_client) = start(directory.path());
    fill(&api_client, 1_000).await;
    for clients in [1, 16, 64] {
        let result = load(&api_client, clients, |number| {
            let name = format!("bench-{}", number % 1_000);
            let body = config_map(&name, number + 1_000_000);
            (Method::PUT, format!("{COLLECTION}/{name}"), body, StatusCode::OK)
        })
        .await;
        report_load(&format!("durable updates of 1.8 KB, {clients} clients"), &result);
    }
    for clients in [1, 16, 64] {
        let result = load(&api_client, clients, |number| {
            (Method::GET, format!("{COLLECTION}/bench-{}", number % 1_000), Bytes::new(), StatusCode::OK)
        })
        .await;
        report_load(&format!("gets, {clients} clients"), &result);
    }
    drop(server);
}

async fn lists() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, api_client) = start(directory.path());
    fill(&api_client, 10_000).await;
    let mut connection = api_client.connect().await.expect("a connection");
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..10 {
        let begun = Instant::now();
        let (_, body) = connection.raw(Method::GET, COLLECTION, Bytes::new()).await.expect("an answer");
        times.push(begun.elapsed());
        bytes = body.len();
    }
    times.sort();
    report("list of 10,000 objects, median of 10", times[5].as_secs_f64() * 1e3, "ms");
    report("  body", bytes as f64 / 1e6, "MB");
    drop(server);
}

async fn watches(watchers: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, api_client) = start(directory.path());
    let delivered = Arc::new(AtomicU64::new(0));
    let mut open = Vec::new();
    for _ in 0..watchers {
        let mut connection = api_client.connect().await.expect("a connection");
        let path = format!("{COLLECTION}?watch=true&resourceVersion=0&timeoutSeconds=600");
        let request = http::Request::builder()
            .uri(path)
            .header(http::header::HOST, "localhost")
            .body(http_body_util::Full::new(Bytes::new()))
            .expect("a well-formed request");
        let mut body = connection.send(request).await.expect("an answer").into_body();
        let delivered = delivered.clone();
        open.push(tokio::spawn(async move {
            let _kept = connection;
            while let Some(Ok(frame)) = body.frame().await {
                let lines =
                    frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
                delivered.fetch_add(lines as u64, Ordering::Relaxed);
            }
        }));
    }
    let before = delivered.load(Ordering::Relaxed);
    let begun = Instant::now();
    let (rate, _) = load(&api_client, 16, |number| {
        let name = format!("bench-{number}");
        (Method::POST, COLLECTION.to_owned(), config_map(&name, number), StatusCode::CREATED)
    })
    .await;
    let events = delivered.load(Ordering::Relaxed) - before;
    report(
        &format!("events to {watchers} watchers"),
        events as f64 / begun.elapsed().as_secs_f64(),
        "events/s",
    );
    report("  while creating, 16 clients", rate, "requests/s");
    open.iter().for_each(tokio::task::JoinHandle::abort);
    drop(server);
}

async fn memory(count: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, api_client) = start(directory.path());
    let empty = server.resident_bytes();
    fill(&api_client, count).await;
    let full = server.resident_bytes();
    report(&format!("resident memory with {count} objects of 1.8 KB"), full as f64 / 1e6, "MB");
    report("  per object", (full - empty) as f64 / count as f64, "bytes");
    server.kill();
    let (server, api_client) = start(directory.path());
    let (status, _) = api_client.request(Method::GET, "/readyz", "").await;
    assert_eq!(status, StatusCode::OK);
    report(
        &format!("cold start with {count} objects, after kill -9"),
        server.started_in.as_secs_f64() * 1e3,
        "ms",
    );
    report("  resident memory then", server.resident_bytes() as f64 / 1e6, "MB");
}

async fn start_times() {
    let mut times = Vec::new();
    for _ in 0..10 {
        let directory = tempfile::tempdir().expect("a directory");
        let (server, _) = start(directory.path());
        times.push(server.started_in);
    }
    times.sort();
    report("cold start, empty, median of 10", times[5].as_secs_f64() * 1e3, "ms");
}
