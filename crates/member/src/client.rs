//! A small HTTP client of one API server: the requests that a member makes, and nothing else. Works in-process and over
//! the network.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;

use apiserver::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;
use serde_json::{Value, json};
use tower::Service as _;
use tower::util::BoxCloneSyncService;

use crate::key::{Key, Kind, Named};
use crate::plan::{Part, Write};

/// The field manager of a member; field validation is off, because no user would read the warnings.
const WRITER: &str = "?fieldManager=member&fieldValidation=Ignore";

/// The transport to an API server. Its implementation retries until there is a response.
pub type Passage = BoxCloneSyncService<Request<Full<Bytes>>, Response<Body>, Infallible>;

/// Asks an API server.
#[derive(Clone)]
pub struct Client {
    service: Passage,
    names: Arc<BTreeMap<Kind, Named>>,
}

/// Why the server did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The HTTP status code.
    #[serde(default)]
    pub code: u16,
    /// The machine-readable reason.
    #[serde(default)]
    pub reason: String,
    /// The sentence for users.
    #[serde(default)]
    pub message: String,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The new state of the object.
    Object(Bytes),
    /// Done; the watch will report it.
    Done,
}

impl Client {
    /// A client that calls kinds by these names.
    pub fn new(service: Passage, names: BTreeMap<Kind, Named>) -> Client {
        Client { service, names: Arc::new(names) }
    }

    /// Whether this kind is looked after.
    pub fn knows(&self, kind: Kind) -> bool {
        self.names.contains_key(&kind)
    }

    /// How the API calls a kind.
    pub fn named(&self, kind: Kind) -> &Named {
        self.names.get(&kind).expect("the client knows every kind that is looked after")
    }

    /// The state of an object; `None` when there is no such object.
    pub async fn get(&self, key: &Key) -> Result<Option<Value>, Refusal> {
        let path = self.path(key.kind, key.namespace(), key.name(), "");
        match self.ask(Method::GET, path, "", Value::Null).await {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(refusal) if refusal.code == 404 => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// The pods of a namespace that a selector selects.
    pub async fn pods(&self, namespace: &str, selector: &str) -> Result<Vec<Value>, Refusal> {
        let path = self.path(Kind::Pod, namespace, "", &format!("?labelSelector={}", escaped(selector)));
        let bytes = self.ask(Method::GET, path, "", Value::Null).await?;
        let mut list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Begins a watch of a kind: from a revision on, or from the state that is there now.
    pub fn watch(&self, kind: Kind, after: Option<u64>) -> BoxFuture<'static, Response<Body>> {
        let from = match after {
            Some(revision) => format!("&resourceVersion={revision}"),
            None => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        };
        let query = format!("?watch=true&allowWatchBookmarks=true{from}");
        self.send(Method::GET, self.path(kind, "", "", &query), "", Bytes::new())
    }

    /// Does a write.
    pub async fn write(&self, write: &Write) -> Result<Written, Refusal> {
        match write {
            Write::Create { kind, object } => {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
                let path = self.path(*kind, namespace, "", WRITER);
                self.ask(Method::POST, path, "application/json", object.clone()).await.map(Written::Object)
            }
            Write::Patch { key, part, patch, .. } => {
                let part = if *part == Part::Status { "/status" } else { "" };
                let path = self.path(key.kind, key.namespace(), key.name(), &format!("{part}{WRITER}"));
                let answer = self.ask(Method::PATCH, path, "application/json-patch+json", patch.clone());
                answer.await.map(Written::Object)
            }
            Write::Delete { key, uid } => {
                let path = self.path(key.kind, key.namespace(), key.name(), "");
                let options = json!({
                    "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
                    "propagationPolicy": "Background", "preconditions": { "uid": uid },
                });
                self.ask(Method::DELETE, path, "application/json", options).await.map(|_| Written::Done)
            }
            Write::Bind { key, node } => {
                let path = self.path(key.kind, key.namespace(), key.name(), &format!("/binding{WRITER}"));
                let binding = json!({
                    "kind": "Binding", "apiVersion": "v1", "metadata": { "name": key.name() },
                    "target": { "kind": "Node", "name": node },
                });
                self.ask(Method::POST, path, "application/json", binding).await?;
                let path = self.path(key.kind, key.namespace(), key.name(), "");
                self.ask(Method::GET, path, "", Value::Null).await.map(Written::Object)
            }
        }
    }

    fn path(&self, kind: Kind, namespace: &str, name: &str, rest: &str) -> String {
        let named = self.named(kind);
        let root = if named.api_version.contains('/') { "/apis/" } else { "/api/" };
        let mut path = format!("{root}{}", named.api_version);
        for (before, segment) in [("/namespaces/", namespace), ("/", &named.plural), ("/", name)] {
            if !segment.is_empty() {
                path.push_str(before);
                path.push_str(&escaped(segment));
            }
        }
        path + rest
    }

    async fn ask(&self, method: Method, path: String, media: &str, body: Value) -> Result<Bytes, Refusal> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let response = self.send(method, path, media, body).await;
        let status = response.status();
        let bytes = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        match status.is_success() {
            true => Ok(bytes),
            false => Err(refusal(status.as_u16(), &bytes)),
        }
    }

    fn send(
        &self,
        method: Method,
        path: String,
        media: &str,
        body: Bytes,
    ) -> BoxFuture<'static, Response<Body>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        // A name that no address can carry is one that the server never let in.
        *request.uri_mut() = path.parse().unwrap_or_default();
        if let Ok(media) = http::HeaderValue::from_str(media) {
            request.headers_mut().insert(http::header::CONTENT_TYPE, media);
        }
        let answer = self.service.clone().call(request);
        Box::pin(async move { answer.await.unwrap_or_else(|never: Infallible| match never {}) })
    }
}

fn refusal(code: u16, bytes: &[u8]) -> Refusal {
    let unreadable = || Refusal { code, reason: String::new(), message: format!("status code {code}") };
    Refusal { code, ..serde_json::from_slice(bytes).unwrap_or_else(|_| unreadable()) }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => escaped.push(char::from(byte)),
            _ => write!(escaped, "%{byte:02X}").expect("writing to a String cannot fail"),
        }
    }
    escaped
}
