//! Benchmark of Deployments in members: `cargo bench -p member -- 10000 3` makes ten thousand of them in each of three
//! members, changes every image, and deletes them all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use apiserver::InProcess;
use apiserver::authn::Identity;
use http::{Method, Request};
use http_body_util::Full;
use member::{Member, NodeSpec, Options, Stages};
use serde_json::{Value, json};
use store::Store;
use tower::Service as _;

/// The allocator that the program has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

struct Cluster {
    member: Member,
    store: Store,
    client: InProcess,
}

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let count = numbers.first().copied().unwrap_or(1000);
    let members = numbers.get(1).copied().unwrap_or(1);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("start the runtime");
    runtime.block_on(run(count, members));
}

#[expect(clippy::print_stdout, reason = "this is what the benchmark answers")]
async fn run(count: usize, members: usize) {
    let mut clusters = Vec::new();
    for number in 0..members {
        clusters.push(Arc::new(start(number, Store::in_memory(), count).await));
    }
    println!("{count} Deployments with 1 replica in each of {members} members");
    measure("create", &clusters, count, |cluster, name| {
        let body = deployment(&name, "nginx:1");
        async move { cluster.ask(Method::POST, DEPLOYMENTS, "application/json", body).await }
    })
    .await;
    measure("change image", &clusters, count, |cluster, name| {
        let containers = json!([{ "name": "main", "image": "nginx:2" }]);
        let body = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        let media = "application/strategic-merge-patch+json";
        async move { cluster.ask(Method::PATCH, &format!("{DEPLOYMENTS}/{name}"), media, body).await }
    })
    .await;
    restart(&mut clusters, count).await;
    measure("delete", &clusters, count, |cluster, name| async move {
        cluster.ask(Method::DELETE, &format!("{DEPLOYMENTS}/{name}"), "application/json", Value::Null).await
    })
    .await;
}

async fn start(number: usize, store: Store, pods: usize) -> Cluster {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let random = || {
        u128::from(NUMBERS.fetch_add(1, Ordering::Relaxed))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    };
    let node = |place: usize| NodeSpec {
        name: format!("n{place}"),
        cpu: "10000".to_owned(),
        memory: "10000Gi".to_owned(),
        pods: u32::try_from(pods * 2).unwrap_or(u32::MAX),
        labels: BTreeMap::new(),
    };
    let options = Options {
        name: format!("member{number}"),
        nodes: (0..3).map(node).collect(),
        store: store.clone(),
        now: Arc::new(jiff::Timestamp::now),
        random: Arc::new(random),
        root_ca: String::new(),
        stages: Stages::builtin(),
    };
    let member = Member::start(options).await.expect("the member starts");
    member.settle().await.expect("the member runs");
    let client = member.server().trusting(Identity::internal("bench"));
    Cluster { member, store, client }
}

async fn restart(clusters: &mut Vec<Arc<Cluster>>, count: usize) {
    let before = Spent::now(clusters);
    for number in 0..clusters.len() {
        let old = clusters.remove(0);
        let store = old.store.clone();
        let Some(old) = Arc::into_inner(old) else { return };
        old.member.shut_down().await;
        clusters.push(Arc::new(start(number, store, count).await));
    }
    before.print("restart", clusters, count);
}

async fn measure<F: Future<Output = ()> + Send + 'static>(
    what: &str,
    clusters: &[Arc<Cluster>],
    count: usize,
    act: impl Fn(Arc<Cluster>, String) -> F + Copy + Send + 'static,
) {
    let before = Spent::now(clusters);
    let tasks = clusters.iter().cloned().map(|cluster| {
        tokio::spawn(async move {
            for number in 0..count {
                act(cluster.clone(), format!("d{number}")).await;
                tokio::task::yield_now().await;
            }
            cluster.member.settle().await.expect("the member runs");
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("nothing panics");
    }
    before.print(what, clusters, count);
}

struct Spent {
    start: Instant,
    cpu_seconds: f64,
    revisions: u64,
}

impl Spent {
    fn now(clusters: &[Arc<Cluster>]) -> Spent {
        let revisions = clusters.iter().map(|cluster| cluster.store.revision()).sum();
        Spent { start: Instant::now(), cpu_seconds: cpu_seconds(), revisions }
    }

    #[expect(clippy::print_stdout, reason = "this is what the benchmark answers")]
    fn print(&self, what: &str, clusters: &[Arc<Cluster>], count: usize) {
        let now = Spent::now(clusters);
        let objects = (count * clusters.len()) as f64;
        let (cpu, seconds) = (now.cpu_seconds - self.cpu_seconds, self.start.elapsed().as_secs_f64());
        println!(
            "{what:>13}: {seconds:6.2} s, {cpu:6.2} CPU s, {:4.0} µs CPU and {:.1} writes each, {} MB resident",
            cpu / objects * 1e6,
            (now.revisions - self.revisions) as f64 / objects,
            resident_megabytes(),
        );
    }
}

impl Cluster {
    async fn ask(&self, method: Method, path: &str, media: &str, body: Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let request = request.body(Full::from(body)).expect("the request is well-formed");
        let response = self.client.clone().call(request).await.expect("the server answers");
        assert!(response.status().is_success(), "{path}: {}", response.status());
    }
}

fn deployment(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": image }] },
            },
        },
    })
}

/// Processor time of this process so far; Linux counts it in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn resident_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}
