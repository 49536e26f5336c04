//! Attacks on the HTTPS listener: untrusted certificates, clients that never finish, bodies and floods beyond the
//! limits. Each is refused or bounded, and well-behaved users are served.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use apiserver::authn::StaticTokens;
use apiserver::{ConnectionLimits, Credentials, Frontend, Limits, Security};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::json;
use store::Store;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{Ask, Server};
use crate::latency::Line;
use crate::tls::{self, Authority};

/// A listening server, and the certificate authority of its clients.
pub struct Listening {
    pub authority: Authority,
    pub address: SocketAddr,
    pub server: Server,
    _stop: tokio::sync::oneshot::Sender<()>,
}

/// How long clients may take in most tests.
const SHORT: Duration = Duration::from_millis(500);
const TOKENS: &str = "t-eve,eve,u-1\nt-bob,bob,u-2\n";

impl Listening {
    pub async fn new(limits: Limits) -> Self {
        Self::with(limits, TOKENS, SHORT).await
    }

    /// A server with these tokens whose clients may let a connection rest for so long.
    pub async fn with(limits: Limits, tokens: &str, rest: Duration) -> Self {
        let connections = ConnectionLimits {
            handshake: SHORT,
            unauthenticated: SHORT * 4,
            idle: rest,
            ..ConnectionLimits::default()
        };
        Self::limited(limits, tokens, connections).await
    }

    /// A server with these tokens and limits.
    pub async fn limited(limits: Limits, tokens: &str, connections: ConnectionLimits) -> Self {
        let authority = Authority::new("ours");
        let shown = authority.server();
        let credentials = Credentials {
            chain: vec![shown.certificate.clone()],
            key: shown.key(),
            client_ca: authority.certificate.der().clone(),
        };
        let frontend = Frontend::new(credentials).expect("credentials that fit");
        let frontend = frontend.with_limits(connections);
        let tokens = StaticTokens::parse(tokens).expect("tokens");
        let security =
            Security { tokens, roles: Some(Vec::new()), limits, ..Security::bare().expect("keys") };
        let server = Server::with(Store::in_memory(), Some(security)).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let Server::InProcess { server: service, .. } = &server else { panic!("a server in this process") };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let served = frontend.serve(listener, service.clone(), async move { drop(stopped.await) });
        tokio::spawn(served);
        Self { authority, address, server, _stop: stop }
    }

    pub async fn get(&self, path: &str, shown: Option<&tls::Shown>, token: &str) -> u16 {
        let mut request = Request::get(path).header("host", "localhost");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::new())).expect("a request");
        tls::ask(tls::connect(self.address, &self.authority, shown).await, request).await.0
    }
}

#[tokio::test]
async fn a_certificate_proves_something_only_if_we_signed_it_for_a_client() {
    let listening = Listening::new(Limits::default()).await;
    let ours = &listening.authority;
    let masters = ["system:masters"];
    let check = async |shown: Option<tls::Shown>, expected: u16, what: &str| {
        assert_eq!(listening.get("/api/v1/secrets", shown.as_ref(), "").await, expected, "{what}");
    };
    check(Some(ours.client("root", &masters)), 200, "an administrator").await;
    check(Some(ours.client("eve", &[])), 403, "somebody else").await;
    check(None, 401, "nobody").await;
    check(Some(ours.expired("root", &masters)), 401, "expired").await;
    check(Some(Authority::new("ours").client("root", &masters)), 401, "a namesake of our authority").await;
    check(Some(tls::self_signed("root", &masters)), 401, "self-signed").await;
    check(Some(ours.server()), 401, "a certificate of a server").await;
    let self_signed = tls::self_signed("root", &masters);
    assert_eq!(
        listening.get("/healthz", Some(&self_signed), "").await,
        401,
        "an invalid credential is refused even where none is needed"
    );
    assert_eq!(listening.get("/healthz", None, "").await, 200);
    assert_eq!(listening.get("/apis", None, "t-eve").await, 200);
    assert_eq!(listening.get("/apis", Some(&self_signed), "t-eve").await, 200, "the token proves it");
}

/// Waits until the server ends a connection whose client does no more.
async fn ended(mut stream: impl tokio::io::AsyncRead + Unpin) {
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "still open after a minute");
}

#[tokio::test]
async fn clients_that_never_finish_are_let_go_and_delay_nobody() {
    let listening = Listening::new(Limits::default()).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        slow.push(TcpStream::connect(listening.address).await.expect("the server listens"));
    }
    let mut half = Vec::new();
    for _ in 0..50 {
        let mut stream = tls::connect(listening.address, &listening.authority, None).await;
        stream.write_all(b"GET /api/v1/secrets HTTP/1.1\r\nhost: x\r\nx-slow: ").await.expect("taken");
        half.push(stream);
    }
    assert_eq!(listening.get("/apis", None, "t-eve").await, 200);
    for stream in slow {
        ended(stream).await;
    }
    for stream in half {
        ended(stream).await;
    }
}

/// Between requests a connection may rest for longer than a handshake may take.
#[tokio::test]
async fn an_idle_connection_can_be_used_again() {
    let listening = Listening::with(Limits::default(), TOKENS, SHORT * 20).await;
    let mut line = Line::open(listening.address, &listening.authority, "t-eve").await;
    assert_eq!(line.send("GET", "/apis", "", Bytes::new()).await, Some(200));
    tokio::time::sleep(SHORT * 2).await;
    assert_eq!(line.send("GET", "/apis", "", Bytes::new()).await, Some(200));
}

#[tokio::test]
async fn too_much_is_refused_with_the_right_status() {
    let limits = Limits { watches_of_one_user: 3, request: Duration::from_millis(700), ..Limits::default() };
    let listening = Listening::new(limits).await;
    let role = json!({ "metadata": { "name": "maps" }, "rules": [{ "verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"] }] });
    listening
        .server
        .ask(Ask::post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role))
        .await
        .expect(201);
    let binding = json!({
        "metadata": { "name": "maps" },
        "roleRef": { "kind": "ClusterRole", "name": "maps", "apiGroup": "rbac.authorization.k8s.io" },
        "subjects": [{ "kind": "User", "name": "eve" }],
    });
    listening
        .server
        .ask(Ask::post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding))
        .await
        .expect(201);
    let maps = "/api/v1/namespaces/default/configmaps";
    let large = format!("{{\"metadata\":{{\"name\":\"m\"}},\"data\":{{\"k\":\"{}\"}}}}", "x".repeat(4 << 20));
    assert_eq!(listening.server.ask_bare(Ask::post(maps, large).token("t-eve")).await.code, 413);
    let deep = format!("{{\"metadata\":{{\"name\":\"m\"}},\"data\":{}}}", "[".repeat(100_000));
    assert_eq!(listening.server.ask_bare(Ask::post(maps, deep).token("t-eve")).await.code, 400);
    // A body that never ends: the request has a deadline.
    let mut stream = tls::connect(listening.address, &listening.authority, None).await;
    let head = format!(
        "POST {maps} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t-eve\r\ncontent-length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.expect("taken");
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 504");
    let mut watches = Vec::new();
    for number in 0..4 {
        let mut stream = tls::connect(listening.address, &listening.authority, None).await;
        let head = format!("GET {maps}?watch=1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t-eve\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("taken");
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.expect("an answer");
        let expected = if number < 3 { "HTTP/1.1 200" } else { "HTTP/1.1 429" };
        assert_eq!(String::from_utf8_lossy(&answer), expected, "watch {number}");
        watches.push(stream);
    }
    drop(watches);
    let again = async || {
        let ask = Ask::get(&format!("{maps}?watch=1&timeoutSeconds=1")).token("t-eve");
        listening.server.ask_bare(ask).await.code
    };
    let begun = Instant::now();
    while again().await != 200 {
        assert!(begun.elapsed() < Duration::from_secs(5), "places of watches that ended are free again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
