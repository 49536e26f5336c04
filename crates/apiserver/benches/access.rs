//! Benchmark of authentication and authorization: reads one ConfigMap in this process without TLS, as a trusted
//! in-process client, and as users who authenticate and whose roles have to be found among a thousand bindings.
//! `cargo bench -p apiserver` prints one line per kind of user.

use std::convert::Infallible;
use std::future::Future;
use std::io::Write as _;
use std::time::Instant;

use apiserver::authn::{Identity, StaticTokens};
use apiserver::body::Body;
use apiserver::{ApiServer, Security};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::{Service, ServiceExt as _};

#[path = "serving/memory.rs"]
mod memory;

const MAP: &str = "/api/v1/namespaces/default/configmaps/read";
const BINDINGS: usize = 1_000;
const READS: usize = 20_000;
const ROUNDS: usize = 5;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn server() -> ApiServer {
    let tokens = "t-root,root,1,\"system:masters\"\nt-reader,reader,2\nt-stranger,stranger,3\n";
    let tokens = StaticTokens::parse(tokens).expect("a file of tokens");
    let security = Security { tokens, roles: Some(Vec::new()), ..Security::bare().expect("keys") };
    ApiServer::secured(memory::config(), security).await.expect("a server")
}

fn request(method: Method, path: &str, token: &str, body: &Value) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = match token {
        "" => request,
        token => request.header("authorization", format!("Bearer {token}")),
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    request.body(Full::new(Bytes::from(body))).expect("a request")
}

async fn post<S>(service: &S, path: &str, body: Value) -> Value
where
    S: Service<Request<Full<Bytes>>, Response = Response<Body>, Error = Infallible> + Clone,
{
    let answer = service.clone().oneshot(request(Method::POST, path, "", &body)).await;
    let answer = answer.expect("the service always answers");
    assert_eq!(answer.status(), 201, "{path}");
    let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Microseconds for one read, in the best round.
async fn time<S>(service: &S, token: &str, code: u16) -> f64
where
    S: Service<Request<Full<Bytes>>, Response = Response<Body>, Error = Infallible> + Clone,
    S::Future: Future,
{
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..READS {
            let answer = service.clone().oneshot(request(Method::GET, MAP, token, &Value::Null)).await;
            let answer = answer.expect("the service always answers");
            assert_eq!(answer.status(), code);
            answer.into_body().collect().await.expect("a body");
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e6 / READS as f64);
    }
    best
}

/// A role that may read config maps in one namespace, a thousand bindings of it, and the last one for two readers.
async fn grant<S>(service: &S)
where
    S: Service<Request<Full<Bytes>>, Response = Response<Body>, Error = Infallible> + Clone,
{
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"] }]);
    post(
        service,
        &format!("{rbac}/clusterroles"),
        json!({ "metadata": { "name": "reader" }, "rules": rules }),
    )
    .await;
    let user = |name: &str| json!({ "kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io" });
    for number in 0..BINDINGS {
        let account = json!({ "kind": "ServiceAccount", "name": "robot", "namespace": "default" });
        let subjects = match number + 1 == BINDINGS {
            true => json!([user("reader"), account]),
            false => json!([user(&format!("user-{number}"))]),
        };
        let role =
            json!({ "kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io" });
        let binding = json!({ "metadata": { "name": format!("b-{number:04}") }, "roleRef": role, "subjects": subjects });
        post(service, &format!("{rbac}/namespaces/default/rolebindings"), binding).await;
    }
}

async fn measure() {
    let server = server().await;
    let trusted = server.trusting(Identity::internal("bench"));
    let maps = "/api/v1/namespaces/default/configmaps";
    post(&trusted, maps, json!({ "metadata": { "name": "read" }, "data": { "k": "v" } })).await;
    grant(&trusted).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    post(&trusted, accounts, json!({ "metadata": { "name": "robot" } })).await;
    let signed = post(&trusted, &format!("{accounts}/robot/token"), json!({ "spec": {} })).await;
    let signed = signed["status"]["token"].as_str().expect("a token").to_owned();

    let bare = time(&trusted, "", 200).await;
    report("trusted in this process", bare, bare);
    for (who, token, code) in [
        ("static token, administrator", "t-root", 200),
        ("static token, the last of 1,000 bindings", "t-reader", 200),
        ("signed token, the last of 1,000 bindings", signed.as_str(), 200),
        ("static token, no right: 403", "t-stranger", 403),
        ("unknown token: 401", "t-nobody", 401),
    ] {
        report(who, time(&server, token, code).await, bare);
    }
}

fn report(who: &str, micros: f64, bare: f64) {
    // A failed write to a closed terminal is ignored.
    let _ = writeln!(std::io::stdout(), "{who:<44} {micros:>8.2} µs  {:>+8.2} µs", micros - bare);
}
