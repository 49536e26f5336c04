//! Benchmark of the most expensive object that the CEL rules of a definition allow: each definition has more rules
//! than the cost budget of one object covers, and each rule costs nearly the limit of one rule. `cargo bench -p
//! apiserver --bench expressions` prints the time until such an object is refused, for several kinds of work.

use std::convert::Infallible;
use std::io::Write as _;
use std::time::Instant;

use apiserver::authn::Identity;
use apiserver::body::Body;
use apiserver::{ApiServer, InProcess};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::{Service, ServiceExt as _};

#[path = "serving/memory.rs"]
mod memory;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ITEMS: usize = 1_000;
const RULES: usize = 12;
const ROUNDS: usize = 3;

/// What is done for each pair of words.
const WORK: [(&str, &str); 8] = [
    ("comparisons", "self.all(a, self.all(b, a != b || a == b))"),
    ("sums", "self.all(a, self.all(b, a.size() + b.size() > 0))"),
    ("texts that are joined", "self.all(a, self.all(b, (a + b).size() > 0))"),
    ("texts that are searched", "self.all(a, self.all(b, !a.contains('x' + b)))"),
    ("patterns", "self.all(a, self.all(b, b.matches('^[a-z]+-[0-9]+$')))"),
    ("lists that are made", "self.all(a, self.map(b, b + a).size() > 0)"),
    ("lists that are filtered", "self.all(a, self.filter(b, b == a).size() > 0)"),
    ("texts that are split", "self.all(a, self.all(b, b.split('-').size() == 2))"),
];

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn server() -> InProcess {
    ApiServer::new(memory::config()).await.expect("a server").trusting(Identity::internal("bench"))
}

async fn post<S>(service: &S, path: &str, body: &Value) -> (u16, String)
where
    S: Service<Request<Full<Bytes>>, Response = Response<Body>, Error = Infallible> + Clone,
{
    let request =
        Request::builder().method(Method::POST).uri(path).header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(body.to_string()))).expect("a request");
    let answer = service.clone().oneshot(request).await.expect("the service always answers");
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
    (code, String::from_utf8_lossy(&bytes).into_owned())
}

fn definition(group: &str, rule: &str, items: usize) -> Value {
    let rules: Vec<Value> =
        (0..RULES).map(|number| json!({ "rule": format!("{rule} || {number} < 0") })).collect();
    let words = json!({
        "type": "array", "maxItems": items, "items": { "type": "string", "maxLength": 10 },
        "x-kubernetes-validations": rules,
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("bombs.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "plural": "bombs", "kind": "Bomb" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "words": words },
            } } }],
        },
    })
}

async fn measure() {
    let server = server().await;
    for (number, (name, rule)) in WORK.into_iter().enumerate() {
        let Some((group, items_max)) = define(&server, number, rule).await else {
            report(&format!("{name}: refused as a rule"), 0.0);
            continue;
        };
        let path = format!("/apis/{group}/v1/namespaces/default/bombs");
        let Some((items, best)) = dearest(&server, &path, &format!("{group}/v1"), items_max).await else {
            report(&format!("{name}: never spends the budget"), 0.0);
            continue;
        };
        report(&format!("{name}, {items} words"), best * 1e3);
    }
}

/// Defines a kind for the longest lists that the estimate of the cost of its rules allows; answers with its group and
/// the length.
async fn define(server: &InProcess, number: usize, rule: &str) -> Option<(String, usize)> {
    let mut items = ITEMS;
    while items > 10 {
        let group = format!("g{number}-{items}.example.com");
        let (code, said) = post(server, DEFINITIONS, &definition(&group, rule, items)).await;
        if code == 201 {
            return Some((group, items));
        }
        assert!(said.contains("cost"), "{said}");
        items -= items / 20 + 1;
    }
    None
}

/// The largest list of which no single rule costs too much and all together do, and the seconds until it is refused.
async fn dearest(
    server: &InProcess,
    path: &str,
    api_version: &str,
    items_max: usize,
) -> Option<(usize, f64)> {
    let mut items = items_max;
    while items > 10 {
        let words: Vec<String> = (0..items).map(|number| format!("word-{number}")).collect();
        let object =
            json!({ "apiVersion": api_version, "kind": "Bomb", "metadata": { "name": "b" }, "words": words });
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let (code, said) = post(server, path, &object).await;
            best = best.min(begun.elapsed().as_secs_f64());
            if code == 422 && said.contains("due to running out of cost budget") {
                continue;
            }
            if code == 201 {
                return None;
            }
            assert!(said.contains("call cost exceeds limit for rule"), "{code} {said}");
            best = f64::MAX;
            break;
        }
        if best < f64::MAX {
            return Some((items, best));
        }
        items -= items / 20 + 1;
    }
    None
}

fn report(what: &str, milliseconds: f64) {
    // A failed write to a closed terminal is ignored.
    let _ = writeln!(std::io::stdout(), "{what:<44} {milliseconds:>8.0} ms");
}
