//! The cost of plans: `longshore plan` from start to end over many templates, and what admission warnings add to a
//! small write. The real binary, on disk, with one member.
//! `cargo bench -p cli --bench plan [-- 10000]` prints one line per measurement.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use checks::client::{ApiClient, Connection};
use checks::process::Longshore;
use http::{Method, StatusCode};
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_longshore");
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const POLICIES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies";
const OVERRIDES: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies";
const CLIENTS: usize = 16;
const PLANS: usize = 5;
const WRITES: usize = 300;
const READY_TIMEOUT: Duration = Duration::from_secs(1_800);

fn main() {
    let counts: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for count in if counts.is_empty() { vec![10_000] } else { counts } {
        runtime.block_on(story(count));
    }
}

async fn story(count: usize) {
    let _ = writeln!(std::io::stdout(), "\n{count} Deployments, 2 members");
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("data");
    let data = data.to_str().expect("a readable path");
    let server = Longshore::start(Path::new(BINARY), &["--data-dir", data, "--port=0", "--members=2"]);
    let server = server.expect("it starts");
    let api_client = ApiClient::open(&server.kubeconfig);
    until("the members are ready", || {
        let said = longshore(home.path(), &server, &["status", "-o", "json"]).1;
        said.matches("\"ready\": \"True\"").count() == 2
    });
    create(&api_client, POLICIES, &policy("all", json!({}), "member1")).await;
    create(&api_client, POLICIES, &policy("one", json!({ "name": name(0) }), "member1")).await;
    create(&api_client, OVERRIDES, &overriding("member1")).await;
    templates(&api_client, count).await;
    until("everything rests", || {
        let said = longshore(home.path(), &server, &["status", "-o", "json"]).1;
        let report: Value = serde_json::from_str(&said).unwrap_or_default();
        let policies = report["policies"].as_array().into_iter().flatten();
        let claimed: u64 = policies.filter_map(|policy| policy["claimed"].as_u64()).sum();
        claimed == count as u64 && longshore(home.path(), &server, &["plan", "--restart"]).0 == Some(0)
    });

    plans(home.path(), &server, "plan that moves all", &policy("all", json!({}), "member2"));
    plans(home.path(), &server, "plan that moves one", &policy("one", json!({ "name": name(0) }), "member2"));
    let mut connection = api_client.connect().await.expect("a connection");
    let (mut told, mut silent) = (Vec::new(), Vec::new());
    for _ in 0..WRITES {
        told.push(
            tried(
                &mut connection,
                &format!("{POLICIES}/one"),
                &policy("one", json!({ "name": name(0) }), "member2"),
            )
            .await,
        );
        silent.push(tried(&mut connection, &format!("{OVERRIDES}/op"), &overriding("member2")).await);
    }
    let told = report("tried write of a policy that moves one", told, 1e3, "ms");
    let silent = report("tried write of the same size, no warnings", silent, 1e3, "ms");
    let _ = writeln!(
        std::io::stdout(),
        "  {:<44} {:>10.2} ms",
        "what warnings add, median",
        (told - silent) * 1e3
    );
}

fn name(number: usize) -> String {
    format!("web-{number:05}")
}

fn policy(name: &str, more: Value, cluster: &str) -> Value {
    let mut selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default" });
    for (key, value) in more.as_object().into_iter().flatten() {
        selector[key] = value.clone();
    }
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "resourceSelectors": [selector],
            "placement": { "clusterAffinity": { "clusterNames": [cluster] } },
        },
    })
}

/// An object of about the same size that causes no admission warnings.
fn overriding(value: &str) -> Value {
    let label = json!({ "path": "/metadata/labels/at", "operator": "add", "value": value });
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": { "name": "op", "namespace": "default" },
        "spec": {
            "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "nothing" }],
            "overrideRules": [{ "overriders": { "plaintext": [label] } }],
        },
    })
}

async fn create(api_client: &ApiClient, path: &str, object: &Value) {
    let (status, answer) = api_client.request(Method::POST, path, object.to_string()).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
}

async fn templates(api_client: &ApiClient, count: usize) {
    let request = |number| {
        let labels = json!({ "app": name(number) });
        let container = json!({ "name": "main", "image": "nginx:1" });
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": name(number), "labels": labels },
            "spec": {
                "replicas": 1 + number % 3,
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
            },
        });
        (Method::POST, DEPLOYMENTS.to_owned(), deployment.to_string(), StatusCode::CREATED)
    };
    api_client.crowd(CLIENTS, count, request).await;
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < READY_TIMEOUT, "it takes too long until {what}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Types `longshore` and these words; the exit code, what was printed, and how long it took.
fn longshore(home: &Path, server: &Longshore, words: &[&str]) -> (Option<i32>, String, Duration) {
    let begun = Instant::now();
    let output = Command::new(BINARY)
        .args(words)
        .arg("--kubeconfig")
        .arg(&server.kubeconfig)
        .current_dir(home)
        .output()
        .expect("it runs");
    let took = begun.elapsed();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), took)
}

fn plans(home: &Path, server: &Longshore, what: &str, policy: &Value) {
    std::fs::write(home.join("policy.yaml"), policy.to_string()).expect("it can be written");
    let planned = (0..PLANS).map(|_| longshore(home, server, &["plan", "-f", "policy.yaml"]));
    let mut times = Vec::new();
    for (code, said, took) in planned {
        assert_eq!(code, Some(2), "{said}");
        if times.is_empty() {
            let _ = writeln!(std::io::stdout(), "  {}", said.lines().next().unwrap_or_default());
        }
        times.push(took);
    }
    report(what, times, 1.0, "s");
}

/// How long a write takes that is only tried, so that no disk is in it.
async fn tried(connection: &mut Connection, path: &str, object: &Value) -> Duration {
    let begun = Instant::now();
    let sent = connection.raw(Method::PATCH, &format!("{path}?dryRun=All"), object.to_string()).await;
    let (status, answer) = sent.expect("an answer");
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&answer));
    begun.elapsed()
}

/// Prints the median and the slowest but one in a hundred; the median in seconds.
fn report(what: &str, mut times: Vec<Duration>, scale: f64, unit: &str) -> f64 {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64();
    let (median, slow) = (at(0.5), at(0.99));
    // A closed stdout cannot be reported anywhere.
    let _ = writeln!(
        std::io::stdout(),
        "  {what:<44} {:>10.2} {unit}   p99 {:.2} {unit}",
        median * scale,
        slow * scale
    );
    median
}
