//! Panics in background tasks: they are counted, and the work is done all the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use apiserver::Limits;
use serde_json::json;
use store::{Measured, Options, Store};
use supervise::Injector;

use crate::client::{Ask, Server};
use crate::front::Listening;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Panics the first times that each of these points is passed.
fn panicking(times: u32, points: &'static [&'static str]) -> Injector {
    let passed: Arc<Mutex<BTreeMap<&str, u32>>> = Arc::default();
    Injector::new(move |point, subject| {
        let mut passed = passed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let passed = passed.entry(point).or_default();
        *passed += 1;
        assert!(*passed > times || !points.contains(&point), "injected at {point}: {subject:?}");
    })
}

async fn panics(server: &Server, task: &str) -> u64 {
    let text = server.ask(Ask::get("/metrics")).await.text;
    let series = format!("apiserver_task_panics_total{{task=\"{task}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&series));
    line.map_or(0, |count| count.parse().expect("a number"))
}

#[tokio::test(start_paused = true)]
async fn controllers_that_panic_finish_their_work_items() {
    let server = Server::on(Store::in_memory()).await;
    if let Server::InProcess { server, .. } = &server {
        server.inject_faults(panicking(10, &["controllers", "compaction"]));
    }
    server.start_controllers();
    let owner = server.ask(Ask::post(MAPS, json!({ "metadata": { "name": "owner" } }))).await.expect(201);
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    let child = json!({ "metadata": { "name": "child", "ownerReferences": reference } });
    server.ask(Ask::post(MAPS, child)).await.expect(201);
    server.ask(Ask::delete(&format!("{MAPS}/owner"))).await.expect(200);
    server.until_gone(&format!("{MAPS}/child")).await;
    assert_eq!(panics(&server, "controllers").await, 10);
    assert!(panics(&server, "compaction").await >= 1);
}

#[tokio::test]
async fn a_task_that_cannot_go_on_fails_liveness() {
    let server = Server::on(Store::in_memory()).await;
    assert_eq!(server.ask(Ask::get("/livez")).await.code, 200);
    if let Server::InProcess { server, .. } = &server {
        server.add_liveness(|| Some("task x panicked".to_owned()));
    }
    for probe in ["/livez", "/readyz", "/healthz"] {
        let answer = server.ask(Ask::get(probe)).await;
        assert_eq!(answer.code, 500, "{probe}");
        assert!(answer.text.contains("[-]tasks failed: task x panicked"), "{answer:?}");
    }
}

/// Panics over one object, on the thread that writes.
fn panicking_measure(value: &[u8]) -> Measured {
    assert!(!String::from_utf8_lossy(value).contains("panic now"), "injected into the writer");
    Measured::default()
}

#[tokio::test]
async fn a_writer_of_the_store_that_panics_fails_liveness_and_reads_go_on() {
    let folder = tempfile::tempdir().expect("there is room for a temporary directory");
    let store = Store::open(folder.path(), Options::default()).expect("a store");
    store.measure("/configmaps", panicking_measure);
    let server = Server::on(store).await;
    server.ask(Ask::post(MAPS, json!({ "metadata": { "name": "kept" } }))).await.expect(201);
    assert_eq!(server.ask(Ask::get("/livez")).await.code, 200);
    let fatal = json!({ "metadata": { "name": "fatal" }, "data": { "k": "panic now" } });
    server.ask(Ask::post(MAPS, fatal)).await.expect(500);
    server.until("/livez", |answer| answer.code == 500).await;
    for probe in ["/livez", "/readyz", "/healthz"] {
        let answer = server.ask(Ask::get(probe)).await;
        assert_eq!(answer.code, 500, "{probe}");
        assert!(answer.text.contains("[-]store failed: the writer thread panicked"), "{answer:?}");
    }
    server.ask(Ask::get(&format!("{MAPS}/kept"))).await.expect(200);
    let refused = server.ask(Ask::post(MAPS, json!({ "metadata": { "name": "late" } }))).await;
    assert!(refused.refusal().2.contains("the writer thread panicked"), "{refused:?}");
}

#[tokio::test]
async fn connections_are_accepted_again_after_a_panic() {
    let listening = Listening::new(Limits::default()).await;
    if let Server::InProcess { server, .. } = &listening.server {
        server.inject_faults(panicking(3, &["accept"]));
    }
    for _ in 0..3 {
        let refused = tokio::net::TcpStream::connect(listening.address).await.expect("the port is open");
        let mut byte = [0];
        // Closed without a word, in an orderly way or not.
        assert_eq!(tokio::io::AsyncReadExt::read(&mut { refused }, &mut byte).await.unwrap_or(0), 0);
    }
    assert_eq!(listening.get("/livez", None, "").await, 200);
    assert_eq!(panics(&listening.server, "accept").await, 3);
}
