//! The latency of well-behaved users under attack: one user reads an object over TLS in a loop, alone and while
//! another client attacks over its own connections. Medians are compared, several times, because other processes on
//! the machine distort the measurement. What measures time is ignored by `cargo test`, and run alone by `.ci/run`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use apiserver::Limits;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;

use crate::client::{Ask, DEFINITIONS, Server};
use crate::front::Listening;
use crate::tls::{self, Authority};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const BOMBS: &str = "/apis/attacks.example.com/v1/namespaces/default/bombs";
/// How long reads are measured at a time, and how many at least.
const WINDOW: Duration = Duration::from_millis(150);
const READS_MIN: usize = 30;
/// How long one answer to an attack is waited for, which may be the only one.
const WINDOW_MAX: Duration = Duration::from_secs(10);
const ROUNDS: usize = 3;
/// How many connections an attack comes over: several times as many as the server has threads, so that it could keep all
/// of them busy and others waiting. `LONGSHORE_ATTACKERS` says otherwise, and then nothing is asserted.
const ATTACKERS: usize = 8;
const COMPARISONS: usize = 15;
/// What honest users have to bear with.
const RATIO_MAX: f64 = 2.0;

/// One connection that stays.
pub struct Line {
    sender: SendRequest<Full<Bytes>>,
    token: &'static str,
}

impl Line {
    pub async fn open(address: SocketAddr, authority: &Authority, token: &'static str) -> Self {
        let stream = tls::connect(address, authority, None).await;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        Self { sender, token }
    }

    /// The code of the answer; none where the server has ended the connection.
    pub async fn send(&mut self, method: &str, path: &str, content_type: &str, body: Bytes) -> Option<u16> {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let request = match content_type {
            "table" => request.header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
            content_type => request.header("content-type", content_type),
        };
        let request = request.body(Full::new(body)).expect("a request");
        self.sender.ready().await.ok()?;
        let response = self.sender.send_request(request).await.ok()?;
        let code = response.status().as_u16();
        response.into_body().collect().await.ok()?;
        Some(code)
    }

    /// How long reads of the honest user's object take.
    pub async fn median_of_reads(&mut self) -> Duration {
        self.median_until(|| true).await
    }

    /// The same, measured until something has happened meanwhile, unless that takes too long.
    async fn median_until(&mut self, is_over: impl Fn() -> bool) -> Duration {
        let path = format!("{MAPS}/honest");
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < WINDOW
            || times.len() < READS_MIN
            || (begun.elapsed() < WINDOW_MAX && !is_over())
        {
            let sent = Instant::now();
            assert_eq!(self.send("GET", &path, "", Bytes::new()).await, Some(200));
            times.push(sent.elapsed());
        }
        times.sort();
        times[times.len() / 2]
    }
}

/// Requests that are sent again and again.
struct Attack {
    name: &'static str,
    token: &'static str,
    method: &'static str,
    path: String,
    content_type: &'static str,
    body: Bytes,
    code: u16,
}

impl Attack {
    fn sent(
        name: &'static str,
        method: &'static str,
        path: &str,
        content_type: &'static str,
        body: String,
    ) -> Self {
        Self { name, token: "t-eve", method, path: path.to_owned(), content_type, body: body.into(), code: 0 }
    }

    fn read(name: &'static str, path: &str, content_type: &'static str) -> Self {
        Self { code: 200, ..Self::sent(name, "GET", path, content_type, String::new()) }
    }
}

fn attacks() -> Vec<Attack> {
    let laughs = (1..40).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let before = format!("*a{}", level - 1);
        format!("{text}a{level}: &a{level} [{}]\n", vec![before; 9].join(", "))
    });
    let yaml = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: m }}\n{laughs}");
    let deep = format!("{{\"metadata\":{{\"name\":\"m\"}},\"data\":{}", "{\"a\":".repeat(20_000));
    let copies: Vec<Value> =
        (0..60).map(|_| json!({ "op": "copy", "from": "/data", "path": "/data/k" })).collect();
    let words: Vec<String> = (0..300).map(|number| format!("word-{number}")).collect();
    let costly = json!({ "apiVersion": "attacks.example.com/v1", "kind": "Bomb", "metadata": { "name": "c" }, "spec": { "words": words } });
    let matched = json!({ "apiVersion": "attacks.example.com/v1", "kind": "Bomb", "metadata": { "name": "p" }, "spec": { "text": "a".repeat(20_000) + "b" } });
    let copies = Value::Array(copies).to_string();
    vec![
        Attack { token: "nobody", code: 401, ..Attack::read("wrong tokens", "/api/v1/secrets", "") },
        Attack { code: 403, ..Attack::read("refused reads", "/api/v1/namespaces/other/secrets", "") },
        Attack { code: 400, ..Attack::sent("JSON that nests", "POST", MAPS, "application/json", deep) },
        Attack { code: 400, ..Attack::sent("YAML that multiplies", "POST", MAPS, "application/yaml", yaml) },
        Attack {
            code: 422,
            ..Attack::sent(
                "patches that multiply",
                "PATCH",
                &format!("{MAPS}/honest"),
                "application/json-patch+json",
                copies,
            )
        },
        Attack {
            code: 422,
            ..Attack::sent(
                "expressions at their limit",
                "POST",
                BOMBS,
                "application/json",
                costly.to_string(),
            )
        },
        Attack {
            code: 422,
            ..Attack::sent("patterns that backtrack", "POST", BOMBS, "application/json", matched.to_string())
        },
        Attack::read("paths that multiply", BOMBS, "table"),
        Attack {
            code: 400,
            ..Attack::read(
                "selectors without end",
                &format!("{MAPS}?labelSelector={}", "a,,".repeat(5_000)),
                "",
            )
        },
        Attack::read("lists", MAPS, ""),
    ]
}

fn definition() -> Value {
    let words = json!({
        "type": "array", "maxItems": 400, "items": { "type": "string", "maxLength": 20 },
        "x-kubernetes-validations": [{ "rule": "self.all(a, self.exists_one(b, a == b)) && self.size() < 3" }],
    });
    let again = format!("[{}]", vec!["0"; 100].join(","));
    let column =
        json!({ "name": "X", "type": "string", "jsonPath": format!(".spec.nest{again}{again}{again}") });
    let properties = json!({
        "words": words, "text": { "type": "string", "pattern": "^(a+)+$" },
        "nest": { "x-kubernetes-preserve-unknown-fields": true },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "bombs.attacks.example.com" },
        "spec": {
            "group": "attacks.example.com", "scope": "Namespaced",
            "names": { "plural": "bombs", "singular": "bomb", "kind": "Bomb", "listKind": "BombList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "additionalPrinterColumns": [column],
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object", "properties": properties } } } },
            }],
        },
    })
}

/// Lets these users do everything to the objects of these tests.
pub async fn allow(server: &Server, users: &[&str]) {
    let role = json!({ "metadata": { "name": "all" }, "rules": [
        { "verbs": ["*"], "apiGroups": ["attacks.example.com"], "resources": ["*"] },
        { "verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"] },
    ] });
    server.ask(Ask::post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)).await.expect(201);
    let subject =
        |name: &&str| json!({ "kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io" });
    let binding = json!({
        "metadata": { "name": "all" },
        "roleRef": { "kind": "ClusterRole", "name": "all", "apiGroup": "rbac.authorization.k8s.io" },
        "subjects": users.iter().map(subject).collect::<Vec<Value>>(),
    });
    server
        .ask(Ask::post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding))
        .await
        .expect(201);
}

async fn prepare(listening: &Listening) {
    let server = &listening.server;
    allow(server, &["eve", "bob"]).await;
    server.ask(Ask::post(DEFINITIONS, definition())).await.expect(201);
    let bomb = json!({ "apiVersion": "attacks.example.com/v1", "kind": "Bomb", "metadata": { "name": "b" }, "spec": { "nest": [[[1]]] } });
    server.ask(Ask::post(BOMBS, bomb)).await.expect(201);
    for number in 0..300 {
        let name = if number == 0 { "honest".to_owned() } else { format!("m-{number}") };
        server
            .ask(Ask::post(MAPS, json!({ "metadata": { "name": name }, "data": { "k": "v" } })))
            .await
            .expect(201);
    }
}

/// An attack that is under way.
struct Running {
    tasks: Vec<JoinHandle<()>>,
    /// How many of its requests have been answered, if they are meant to be.
    answered: Option<Arc<AtomicUsize>>,
}

impl Running {
    fn answered(&self) -> usize {
        self.answered.as_ref().map_or(0, |answered| answered.load(Ordering::Relaxed))
    }

    async fn end(self) {
        for task in self.tasks {
            task.abort();
            let ended = task.await;
            assert!(ended.is_err_and(|ended| ended.is_cancelled()), "the attack goes on until it is ended");
        }
    }
}

/// The effect of an attack on the reads of another user.
struct Slowdown {
    ratio: f64,
    median: Duration,
    answered: usize,
}

/// How many times slower an honest read is while `attack` runs: the median of several rounds, and of the rounds of
/// another comparison if other processes on the machine may have distorted the first.
async fn slowdown(honest: &mut Line, mut attack: impl AsyncFnMut() -> Running) -> Slowdown {
    let mut best: Option<Slowdown> = None;
    for _ in 0..COMPARISONS {
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let alone = honest.median_of_reads().await;
            let running = attack().await;
            let before = running.answered();
            let is_over = || running.answered.is_none() || running.answered() > before;
            let median = honest.median_until(is_over).await;
            let answered = running.answered() - before;
            running.end().await;
            rounds.push(Slowdown { ratio: median.as_secs_f64() / alone.as_secs_f64(), median, answered });
        }
        rounds.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
        let middle = rounds.swap_remove(ROUNDS / 2);
        if best.as_ref().is_none_or(|best| middle.ratio < best.ratio) {
            best = Some(middle);
        }
        if best.as_ref().is_some_and(|best| best.ratio <= RATIO_MAX) {
            break;
        }
    }
    best.expect("there was a comparison")
}

/// The number of connections to measure with, from the environment.
fn asked_for() -> Option<usize> {
    std::env::var("LONGSHORE_ATTACKERS").ok()?.parse().ok()
}

/// Sends the same request again and again over several connections, and over new ones where the server ends them.
/// It is under way when the first answer has come.
async fn repeat(attackers: &Handle, listening: &Arc<Listening>, attack: &Arc<Attack>) -> Running {
    let answered = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..asked_for().unwrap_or(ATTACKERS) {
        let (listening, attack, answered) = (listening.clone(), attack.clone(), answered.clone());
        tasks.push(attackers.spawn(async move {
            loop {
                let mut line = Line::open(listening.address, &listening.authority, attack.token).await;
                while let Some(code) =
                    line.send(attack.method, &attack.path, attack.content_type, attack.body.clone()).await
                {
                    assert_eq!(code, attack.code, "{}", attack.name);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    while answered.load(Ordering::Relaxed) == 0 && !tasks.iter().any(JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Running { tasks, answered: Some(answered) }
}

/// Requests whose heads never end.
async fn half_open(attackers: &Handle, listening: &Arc<Listening>) -> Running {
    let (listening, opened) = (listening.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = opened.clone();
    let task = attackers.spawn(async move {
        let mut half = Vec::new();
        for _ in 0..100 {
            let mut stream = tls::connect(listening.address, &listening.authority, None).await;
            stream.write_all(b"GET /api/v1/secrets HTTP/1.1\r\nhost: x\r\nx-slow: ").await.expect("taken");
            half.push(stream);
            opened.fetch_add(1, Ordering::Relaxed);
        }
        std::future::pending::<()>().await;
    });
    while counted.load(Ordering::Relaxed) < 100 && !task.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Running { tasks: vec![task], answered: None }
}

/// A runtime of their own for some participants, as they would have on the network.
pub fn threads(count: usize) -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(count).enable_all().build().expect("a runtime")
}

/// The server, the attackers and the honest user have threads of their own.
fn under_attack(run: impl AsyncFnOnce(&Handle, &Arc<Listening>)) {
    let (serving, attacking, behaving) = (threads(2), threads(1), threads(1));
    let listening = serving.block_on(async {
        // The honest user's connection rests until an attack has begun.
        let tokens = "t-eve,eve,u-1\nt-bob,bob,u-2\n";
        let listening = Listening::with(Limits::default(), tokens, Duration::from_secs(90)).await;
        prepare(&listening).await;
        Arc::new(listening)
    });
    behaving.block_on(run(attacking.handle(), &listening));
}

#[test]
fn those_who_behave_are_answered_under_attack() {
    under_attack(async |attackers, listening| {
        let mut honest = Line::open(listening.address, &listening.authority, "t-bob").await;
        for attack in attacks().into_iter().map(Arc::new) {
            // It is under way when the first answer has come.
            let running = repeat(attackers, listening, &attack).await;
            honest.median_of_reads().await;
            running.end().await;
        }
        let running = half_open(attackers, listening).await;
        honest.median_of_reads().await;
        running.end().await;
    });
}

#[test]
#[ignore = "measures time"]
fn attacks_do_not_delay_those_who_behave() {
    under_attack(compare);
}

#[expect(clippy::print_stdout, reason = "whoever measures wants to read the ratios")]
async fn compare(attackers: &Handle, listening: &Arc<Listening>) {
    let mut honest = Line::open(listening.address, &listening.authority, "t-bob").await;
    honest.median_of_reads().await;
    let mut slow = Vec::new();
    let mut note = |name: &'static str, found: &Slowdown| {
        println!("{name}: {:.2} times, {:?}, {} answered", found.ratio, found.median, found.answered);
        slow.extend((found.ratio > RATIO_MAX).then_some((name, found.ratio)));
    };
    for attack in attacks().into_iter().map(Arc::new) {
        let found = slowdown(&mut honest, async || repeat(attackers, listening, &attack).await).await;
        assert!(found.answered > 0, "{} never came through", attack.name);
        note(attack.name, &found);
    }
    note(
        "heads that never end",
        &slowdown(&mut honest, async || half_open(attackers, listening).await).await,
    );
    assert!(slow.is_empty() || asked_for().is_some(), "slower than twice: {slow:?}");
}
