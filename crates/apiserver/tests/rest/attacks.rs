//! Adversarial requests: each is refused or bounded quickly, and well-behaved users are not slowed down.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Ask, DEFINITIONS, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const USERS: usize = 10;
const WATCHES_OF_EACH: usize = 1_000;
/// A bomb that is not bounded takes hours; one that is takes far less than a second, unless the machine is very busy.
const BOUNDED: Duration = Duration::from_secs(60);

/// What the process holds, in bytes.
pub fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}

async fn median_of_reads(server: &Server) -> Duration {
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        server.ask_bare(Ask::get(&format!("{MAPS}/honest")).token("t-0")).await.expect(200);
        times.push(begun.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

#[tokio::test]
async fn ten_thousand_idle_watches_hold_little() {
    open_idle_watches().await;
}

#[tokio::test]
#[ignore = "measures time"]
async fn ten_thousand_idle_watches_delay_nobody() {
    let (alone, among) = open_idle_watches().await;
    assert!(among < alone * 2, "a read took {alone:?} alone and {among:?} among idle watches");
}

/// How long a read takes alone and among the watches.
#[expect(clippy::print_stdout, reason = "the measured values")]
async fn open_idle_watches() -> (Duration, Duration) {
    let tokens: String = (0..USERS).map(|user| format!("t-{user},user-{user},u-{user}\n")).collect();
    let server = Server::secured(&tokens).await;
    let rules = json!([{ "verbs": ["get", "watch"], "apiGroups": [""], "resources": ["configmaps"] }]);
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    server
        .ask(Ask::post(
            &format!("{roles}/clusterroles"),
            json!({ "metadata": { "name": "maps" }, "rules": rules }),
        ))
        .await
        .expect(201);
    let subjects: Vec<Value> = (0..USERS).map(|user| json!({ "kind": "User", "name": format!("user-{user}"), "apiGroup": "rbac.authorization.k8s.io" })).collect();
    let reference = json!({ "kind": "ClusterRole", "name": "maps", "apiGroup": "rbac.authorization.k8s.io" });
    let binding = json!({ "metadata": { "name": "maps" }, "roleRef": reference, "subjects": subjects });
    server.ask(Ask::post(&format!("{roles}/clusterrolebindings"), binding)).await.expect(201);
    server.ask(Ask::post(MAPS, json!({ "metadata": { "name": "honest" } }))).await.expect(201);
    let (alone, before) = (median_of_reads(&server).await, resident());
    let mut held = Vec::with_capacity(USERS * WATCHES_OF_EACH);
    for user in 0..USERS {
        for _ in 0..WATCHES_OF_EACH {
            let ask = Ask::get(&format!("{MAPS}?watch=1")).token(&format!("t-{user}"));
            let response = server.open_bare(ask).await;
            assert_eq!(response.status(), 200);
            held.push(response);
        }
    }
    let one_more = server.ask_bare(Ask::get(&format!("{MAPS}?watch=1")).token("t-0")).await;
    assert_eq!(one_more.code, 429, "a user has so many watches and no more");
    // Events wait in the log for watchers that read; writers do not wait for watchers that do not.
    for number in 0..20 {
        server
            .ask(Ask::merge(&format!("{MAPS}/honest"), json!({ "data": { "n": number.to_string() } })))
            .await
            .expect(200);
    }
    let each = resident().saturating_sub(before) / (USERS * WATCHES_OF_EACH) as u64;
    assert!(each < 16 * 1024, "a watch holds {each} bytes");
    // Measured more than once, because other processes on the machine distort the measurement.
    let mut among = Duration::MAX;
    for _ in 0..5 {
        among = among.min(median_of_reads(&server).await);
        if among < alone * 2 {
            break;
        }
    }
    println!("idle watches: {each} bytes each, a read takes {alone:?} alone and {among:?} among them");
    (alone, among)
}

/// Every one is answered with a refusal.
#[tokio::test]
async fn bombs_are_refused() {
    let server = Server::new().await;
    let laughs = (1..40).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
        let before = format!("*a{}", level - 1);
        format!("{text}a{level}: &a{level} [{}]\n", vec![before; 9].join(", "))
    });
    let yaml = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: m }}\n{laughs}");
    let nested = |open: &str, close: &str, depth: usize| {
        format!("{{\"metadata\":{{\"name\":\"m\"}},\"data\":{}1{}}}", open.repeat(depth), close.repeat(depth))
    };
    let copies: Vec<Value> =
        (0..60).map(|_| json!({ "op": "copy", "from": "/data", "path": "/data/k" })).collect();
    let map = json!({ "metadata": { "name": "m" }, "data": { "k": "v" } });
    server.ask(Ask::post(MAPS, map)).await.expect(201);
    let asks = [
        Ask::post(MAPS, yaml).content_type("application/yaml"),
        Ask::post(MAPS, nested("{\"a\":", "}", 50_000)),
        Ask::post(MAPS, nested("[", "]", 50_000)),
        Ask::patch("json", &format!("{MAPS}/m"), Value::Array(copies)),
        Ask::merge(&format!("{MAPS}/m"), nested("{\"a\":", "}", 50_000)),
        Ask::patch("apply", &format!("{MAPS}/m?fieldManager=t"), nested("{\"a\":", "}", 50_000)),
        Ask::get(&format!("{MAPS}?labelSelector={}", "a,".repeat(15_000))),
        Ask::get(&format!("{MAPS}?fieldSelector={}", "metadata.name=a,".repeat(2_000))),
        Ask::get(&format!("{MAPS}?labelSelector=a+in+({})", "x,".repeat(15_000))),
    ];
    for ask in asks {
        let (heading, begun) = (ask.heading(), Instant::now());
        let answer = server.ask(ask).await;
        // A long selector may be one, and then selects nothing.
        let expected = if heading.starts_with("> GET") { 200..500 } else { 400..500 };
        assert!(expected.contains(&answer.code), "{heading}: {}", answer.code);
        assert!(begun.elapsed() < BOUNDED, "{heading} took {:?}", begun.elapsed());
    }
    server.ask(Ask::get(&format!("{MAPS}/m"))).await.expect(200);
}

fn definition(schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "bombs.attacks.example.com" },
        "spec": {
            "group": "attacks.example.com", "scope": "Namespaced",
            "names": { "plural": "bombs", "singular": "bomb", "kind": "Bomb", "listKind": "BombList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": schema } } } }],
        },
    })
}

/// Schemas that would take for ever are refused, or take time that grows with the object only.
#[tokio::test]
async fn schemas_that_explode_are_refused_or_bounded() {
    let server = Server::new().await;
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let deep = (0..200).fold(
        json!({ "type": "string" }),
        |inner, _| json!({ "type": "object", "properties": { "a": inner } }),
    );
    let rule = |rule: &str| json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-validations": [{ "rule": rule }] });
    for schema in [
        text("((a{0,1000}){0,1000}){0,1000}"),
        text(&"(".repeat(1_000)),
        text(&"a|".repeat(100_000)),
        deep,
        rule("self.all(a, self.all(b, self.all(c, a == b && b == c)))"),
        rule(&format!("{}true", "!(".repeat(400))),
        rule("self.map(a, self.map(b, self.map(c, a + b + c))).size() > 0"),
    ] {
        let begun = Instant::now();
        let refused = server.ask(Ask::post(DEFINITIONS, definition(schema))).await;
        assert!([400, 422].contains(&refused.code), "{}", &refused.text[..refused.text.len().min(300)]);
        assert!(begun.elapsed() < BOUNDED, "{:?}", begun.elapsed());
    }
    server.define(definition(text("^(a+)+$"))).await;
    let bombs = "/apis/attacks.example.com/v1/namespaces/default/bombs";
    let bomb = json!({ "apiVersion": "attacks.example.com/v1", "kind": "Bomb", "metadata": { "name": "b" }, "spec": format!("{}b", "a".repeat(1 << 20)) });
    let begun = Instant::now();
    server.ask(Ask::post(bombs, bomb)).await.expect(422);
    assert!(begun.elapsed() < BOUNDED, "{:?}", begun.elapsed());
}

/// A server without roles answers health probes of every client, and nothing else.
#[tokio::test]
async fn health_is_for_everybody() {
    let server = Server::new().await;
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(server.ask_bare(Ask::get(path)).await.code, 200, "{path}");
        assert_ne!(server.ask_bare(Ask::post(path, json!({}))).await.code, 200, "{path}");
    }
    assert_eq!(server.ask_bare(Ask::get("/api/v1/secrets")).await.code, 401);
}
