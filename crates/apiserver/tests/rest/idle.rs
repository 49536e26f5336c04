//! Ten thousand idle watches over TLS: 250 connections of ten users, forty watches on each, as HTTP/2 carries them.
//! Measures their memory; then checks that each of them is alive. What they cost a concurrent reader is measured where
//! nothing else runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apiserver::Limits;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;

use crate::attacks::resident;
use crate::client::Ask;
use crate::front::Listening;
use crate::latency::{Line, allow, threads};
use crate::tls;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const USERS: usize = 10;
const CONNECTIONS: usize = 250;
const WATCHES_OF_EACH: usize = 40;
/// What one may hold, in the server and in the client together: both are in this process.
const BYTES_MAX: u64 = 32 * 1024;
/// How often reads are measured, because other processes on the machine distort the measurement.
const ATTEMPTS: usize = 20;

/// The watches, and the connections that carry them.
struct Idle {
    watches: Vec<Incoming>,
    /// A connection ends with its last sender.
    senders: Vec<SendRequest<Full<Bytes>>>,
}

async fn watch(sender: &mut SendRequest<Full<Bytes>>, user: usize) -> http::Response<Incoming> {
    let request = Request::get(format!("https://localhost{MAPS}?watch=1"));
    let request = request.header("authorization", format!("Bearer t-{user}"));
    let request = request.body(Full::new(Bytes::new())).expect("a request");
    sender.ready().await.expect("the connection stays");
    sender.send_request(request).await.expect("an answer")
}

async fn open(listening: Arc<Listening>) -> Idle {
    let mut idle = Idle { watches: Vec::new(), senders: Vec::new() };
    for number in 0..CONNECTIONS {
        let stream = tls::connect_http2(listening.address, &listening.authority).await;
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .expect("HTTP/2");
        tokio::spawn(connection);
        for _ in 0..WATCHES_OF_EACH {
            let response = watch(&mut sender, number % USERS).await;
            assert_eq!(response.status(), 200);
            idle.watches.push(response.into_body());
        }
        idle.senders.push(sender);
    }
    assert_eq!(watch(&mut idle.senders[0], 0).await.status(), 429, "a user has so many watches and no more");
    idle
}

/// Every watch delivers the change that was made last.
async fn read_all(mut idle: Idle) {
    for watch in &mut idle.watches {
        let mut read = Vec::new();
        while !read.ends_with(b"\n") || !String::from_utf8_lossy(&read).contains("told to all") {
            let frame = watch.frame().await.expect("a watch goes on").expect("it tells more");
            read.extend_from_slice(frame.data_ref().expect("lines"));
        }
    }
}

#[test]
fn ten_thousand_watches_over_tls_hold_little_and_are_told() {
    open_and_tell();
}

#[test]
#[ignore = "measures time"]
fn ten_thousand_watches_over_tls_delay_nobody() {
    let (alone, among) = open_and_tell();
    assert!(among < alone * 2, "a read took {alone:?} alone and {among:?} among idle watches");
}

/// How long a read takes alone and among the watches.
#[expect(clippy::print_stdout, reason = "the measured values")]
fn open_and_tell() -> (Duration, Duration) {
    let (serving, watching, behaving) = (threads(2), threads(1), threads(1));
    let listening = serving.block_on(async {
        let tokens: String = (0..USERS).map(|user| format!("t-{user},user-{user},u-{user}\n")).collect();
        let tokens = format!("{tokens}t-bob,bob,u-bob\n");
        let listening = Listening::with(Limits::default(), &tokens, Duration::from_secs(90)).await;
        let names: Vec<String> = (0..USERS).map(|user| format!("user-{user}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).chain(["bob"]).collect();
        allow(&listening.server, &names).await;
        listening.server.ask(Ask::post(MAPS, json!({ "metadata": { "name": "honest" } }))).await.expect(201);
        Arc::new(listening)
    });
    let mut honest =
        behaving.block_on(async { Line::open(listening.address, &listening.authority, "t-bob").await });
    let alone = (0..3).map(|_| behaving.block_on(honest.median_of_reads())).min().expect("three");
    let (before, begun) = (resident(), Instant::now());
    let idle = watching.block_on(watching.spawn(open(listening.clone()))).expect("all watches begin");
    let (opened, each) = (begun.elapsed(), resident().saturating_sub(before) / idle.watches.len() as u64);
    let mut among = Duration::MAX;
    for _ in 0..ATTEMPTS {
        among = among.min(behaving.block_on(honest.median_of_reads()));
        if among < alone * 2 {
            break;
        }
    }
    let begun = Instant::now();
    let change = json!({ "data": { "k": "told to all" } });
    serving
        .block_on(async { listening.server.ask(Ask::merge(&format!("{MAPS}/honest"), change)).await })
        .expect(200);
    watching.block_on(watching.spawn(read_all(idle))).expect("all are told");
    println!(
        "watches over TLS: begun in {opened:?}, {each} bytes each, a read takes {alone:?} alone and {among:?} among \
         them, one change told to all in {:?}",
        begun.elapsed()
    );
    assert!(each < BYTES_MAX, "a watch holds {each} bytes");
    (alone, among)
}
