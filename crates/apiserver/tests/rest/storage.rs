//! Storage limits: a full namespace and a full store refuse writes, and both can be emptied.

use apiserver::authn::StaticTokens;
use apiserver::{Security, StorageLimits};
use serde_json::{Value, json};
use store::Store;

use crate::client::{Ask, Server};

const TOKENS: &str = "t-root,root,u-0,\"system:masters\"\n";

async fn limited(store: Store, storage: StorageLimits) -> Server {
    let tokens = StaticTokens::parse(TOKENS).expect("tokens");
    let security = Security { tokens, roles: Some(Vec::new()), storage, ..Security::bare().expect("keys") };
    Server::with(store, Some(security)).await
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn map(name: &str, bytes: usize) -> Value {
    json!({ "metadata": { "name": name }, "data": { "k": "x".repeat(bytes) } })
}

async fn code(server: &Server, ask: Ask) -> u16 {
    server.ask_bare(ask.token("t-root")).await.code
}

async fn namespaces(server: &Server, names: &[&str]) {
    for name in names {
        let namespace = json!({ "metadata": { "name": name } });
        assert_eq!(code(server, Ask::post("/api/v1/namespaces", namespace)).await, 201);
    }
}

#[tokio::test]
async fn a_namespace_has_so_many_objects_and_no_more() {
    let limits = StorageLimits { namespace_objects: 5, ..StorageLimits::default() };
    let server = limited(Store::in_memory(), limits).await;
    namespaces(&server, &["team-a", "team-b", "kube-public-tools"]).await;
    let mut made = 0;
    let refused = loop {
        let ask = Ask::post(&maps("team-a"), map(&format!("m{made}"), 1)).token("t-root");
        let answer = server.ask_bare(ask).await;
        if answer.code != 201 {
            break answer;
        }
        made += 1;
        assert!(made < 6, "more objects than are allowed");
    };
    assert_eq!(refused.code, 403);
    let message = refused.body["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("namespace team-a is full: 5 of 5 objects are stored"), "{message}");
    assert!(message.contains("hint: ") && message.contains("--namespace-max-objects"), "{message}");
    let dry = Ask::post(&format!("{}?dryRun=All", maps("team-a")), map("dry", 1));
    assert_eq!(code(&server, dry).await, 403, "a dry run says the same");
    assert_eq!(code(&server, Ask::post(&maps("team-b"), map("m", 1))).await, 201, "others go on");
    let own = format!("{}/m0", maps("team-a"));
    assert_eq!(code(&server, Ask::merge(&own, json!({ "data": { "k": "larger" } }))).await, 200);
    assert_eq!(code(&server, Ask::delete(&own)).await, 200);
    assert_eq!(code(&server, Ask::post(&maps("team-a"), map("again", 1))).await, 201);
    for number in 0..10 {
        let ask = Ask::post(&maps("kube-public-tools"), map(&format!("m{number}"), 1));
        assert_eq!(code(&server, ask).await, 201, "the system's namespaces have no limit");
    }
    // Clients in the process have none either.
    server.ask(Ask::post(&maps("team-a"), map("internal", 1))).await.expect(201);
}

#[tokio::test]
async fn a_namespace_has_so_many_bytes_and_no_more() {
    let limits = StorageLimits { namespace_bytes: 20_000, ..StorageLimits::default() };
    let server = limited(Store::in_memory(), limits).await;
    namespaces(&server, &["team-a"]).await;
    assert_eq!(code(&server, Ask::post(&maps("team-a"), map("m", 10_000))).await, 201);
    assert_eq!(code(&server, Ask::post(&maps("team-a"), map("n", 10_000))).await, 403);
    let own = format!("{}/m", maps("team-a"));
    let sized = |bytes: usize| Ask::merge(&own, json!({ "data": { "k": "x".repeat(bytes) } }));
    assert_eq!(code(&server, sized(30_000)).await, 403, "an update that grows too much");
    assert_eq!(code(&server, sized(100)).await, 200, "an update that shrinks");
    assert_eq!(code(&server, Ask::post(&maps("team-a"), map("n", 10_000))).await, 201);
}

/// Also after a restart, from what is on disk.
#[tokio::test]
async fn a_store_has_so_many_bytes_and_no_more_and_can_be_emptied() {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    let open = || Store::open(folder.path(), store::Options::default()).expect("a store");
    let store = open();
    let server = limited(store.clone(), StorageLimits::default()).await;
    namespaces(&server, &["team-a"]).await;
    assert_eq!(code(&server, Ask::post(&maps("team-a"), map("m", 100_000))).await, 201);
    let finalized = json!({ "metadata": { "name": "kept", "finalizers": ["example.com/wait"] } });
    assert_eq!(code(&server, Ask::post(&maps("team-a"), finalized)).await, 201);
    let used = store.total_usage();
    drop(server);
    store.close().await.expect("it closes");
    let store = open();
    assert_eq!(store.total_usage(), used, "counted anew from disk");
    assert_eq!(store.usage("team-a").keys, used_keys(&store));
    let limits = StorageLimits { total_bytes: used.bytes + 1_000, ..StorageLimits::default() };
    let server = limited(store, limits).await;
    let refused = server.ask_bare(Ask::post(&maps("team-a"), map("n", 10_000)).token("t-root")).await;
    assert_eq!(refused.code, 507);
    assert_eq!(refused.body["reason"], "InsufficientStorage");
    let ready = server.ask(Ask::get("/readyz")).await;
    assert_eq!((ready.code, server.ask(Ask::get("/livez")).await.code), (500, 200));
    assert!(ready.text.contains("[-]storage-limit failed: writes are refused: 99 % of "), "{ready:?}");
    let message = refused.body["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("--storage-max-bytes"), "{message}");
    let own = format!("{}/m", maps("team-a"));
    let larger = json!({ "data": { "k": "y".repeat(110_000) } });
    assert_eq!(code(&server, Ask::merge(&own, larger)).await, 507);
    server.ask(Ask::post(&maps("team-a"), map("internal", 2_000))).await.expect(201);
    let metrics = server.ask_bare(Ask::get("/metrics").token("t-root")).await.text;
    for name in ["apiserver_storage_size_bytes ", "apiserver_storage_size_limit_bytes "] {
        assert!(metrics.contains(&format!("\n{name}")), "{metrics}");
    }
    assert!(metrics.contains("apiserver_storage_namespace_objects{namespace=\"team-a\"} "), "{metrics}");
    // What is being deleted grows by its marks; what shrinks and what goes is taken.
    assert_eq!(code(&server, Ask::delete(&format!("{}/kept", maps("team-a")))).await, 200);
    assert_eq!(code(&server, Ask::merge(&own, json!({ "data": { "k": "small" } }))).await, 200);
    assert_eq!(code(&server, Ask::post(&maps("team-a"), map("n", 10_000))).await, 201);
    assert_eq!(server.ask(Ask::get("/readyz")).await.code, 200, "there is room again");
}

/// Before anything is refused, health and metrics tell how full it is.
#[tokio::test]
async fn how_full_it_is_is_told() {
    let limits = StorageLimits { namespace_objects: 10, total_bytes: 1 << 20, ..StorageLimits::default() };
    let server = limited(Store::in_memory(), limits).await;
    namespaces(&server, &["team-a", "kube-tools"]).await;
    for number in 0..9 {
        let name = format!("m{number}");
        assert_eq!(code(&server, Ask::post(&maps("team-a"), map(&name, 1))).await, 201);
        assert_eq!(code(&server, Ask::post(&maps("kube-tools"), map(&name, 60_000))).await, 201);
    }
    let ready = server.ask(Ask::get("/readyz?verbose")).await;
    assert_eq!(ready.code, 200);
    let line = ready.text.lines().find(|line| line.starts_with("[+]storage-limit ok: ")).expect("a line");
    let used = server.store().total_usage().bytes * 100 / (1 << 20);
    assert_eq!(line, format!("[+]storage-limit ok: {used} % of 1048576 bytes are used"));
    assert!((51..60).contains(&used), "{used}");
    let metrics = server.ask_bare(Ask::get("/metrics").token("t-root")).await.text;
    let fullest = "apiserver_storage_namespace_used_ratio{limit=\"objects\",namespace=\"team-a\"} 0.9000\n";
    assert!(metrics.contains(fullest), "{metrics}");
    let system = "apiserver_storage_namespace_used_ratio{limit=\"objects\",namespace=\"kube-tools\"}";
    assert!(!metrics.contains(system), "namespaces without a limit are not full");
    assert!(metrics.contains("apiserver_storage_namespace_bytes{namespace=\"kube-tools\"} "), "{metrics}");
}

fn used_keys(store: &Store) -> u64 {
    let tables = store.tables();
    let range = || store::Range { prefix: "team-a/", ..store::Range::default() };
    let count = |table: &std::sync::Arc<str>| store.range(table, range()).expect("readable").entries.len();
    tables.iter().map(|table| count(table) as u64).sum()
}
