//! A client that says exactly what a test wants to say, to a server in this process. With
//! `KUBE_APISERVER=127.0.0.1:PORT` (plain HTTP, for example a TLS tunnel to a fresh kube-apiserver) and
//! `KUBE_TOKEN` the same tables run against the real one, and `UPDATE_EXPECT=1` writes down what it says.

use std::sync::Arc;
use std::time::Duration;

use apiserver::authn::{Identity, StaticTokens, TokenKeys};
use apiserver::body::Body;
use apiserver::{ApiServer, Config, InProcess, Security};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use store::Store;
use tower::ServiceExt as _;

/// What a test asks of a server.
#[derive(Debug, Clone)]
pub struct Ask {
    method: Method,
    path: String,
    content_type: Option<String>,
    accept: Option<String>,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Ask {
    pub fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            content_type: None,
            accept: None,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn post(path: &str, body: impl Into<Content>) -> Self {
        Self::new(Method::POST, path).with(body)
    }

    pub fn put(path: &str, body: impl Into<Content>) -> Self {
        Self::new(Method::PUT, path).with(body)
    }

    pub fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub fn patch(kind: &str, path: &str, body: impl Into<Content>) -> Self {
        let content_type = match kind {
            "apply" => "application/apply-patch+yaml".to_owned(),
            kind => format!("application/{kind}-patch+json"),
        };
        Self::new(Method::PATCH, path).with(body).content_type(&content_type)
    }

    pub fn merge(path: &str, body: impl Into<Content>) -> Self {
        Self::patch("merge", path, body)
    }

    pub fn with(mut self, body: impl Into<Content>) -> Self {
        self.body = body.into().0;
        self.content_type.get_or_insert_with(|| "application/json".to_owned());
        self
    }

    pub fn content_type(mut self, value: &str) -> Self {
        self.content_type = Some(value.to_owned());
        self
    }

    pub fn accept(mut self, value: &str) -> Self {
        self.accept = Some(value.to_owned());
        self
    }

    /// With a header that the client makes up.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a bearer token.
    pub fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// The request in a line or two, long parts cut.
    pub fn heading(&self) -> String {
        let cut = |text: &str| match text.char_indices().nth(160) {
            Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
            None => text.to_owned(),
        };
        let types = [("as", &self.content_type), ("wants", &self.accept)];
        let types = types.iter().filter_map(|(word, value)| Some(format!(" {word} {}", value.as_ref()?)));
        let types: String = types.filter(|text| text != " as application/json").collect();
        let body = String::from_utf8_lossy(&self.body).escape_debug().to_string().replace("\\\"", "\"");
        let body = if body.is_empty() { body } else { format!("\n    {}", cut(&body)) };
        format!("> {} {}{types}{body}", self.method, cut(&self.path))
    }

    fn request(self) -> Request<Full<Bytes>> {
        let mut request = Request::builder().method(self.method).uri(self.path);
        if let Some(value) = self.content_type {
            request = request.header(http::header::CONTENT_TYPE, value);
        }
        if let Some(value) = self.accept {
            request = request.header(http::header::ACCEPT, value);
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(self.body)).expect("a test asks what HTTP can carry")
    }
}

/// A body: JSON values and texts as they are.
pub struct Content(Bytes);

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        Self(Bytes::from(value.to_string()))
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    pub text: String,
    pub body: Value,
}

impl Answer {
    fn new(parts: &http::response::Parts, bytes: &[u8]) -> Self {
        let warnings = parts.headers.get_all(http::header::WARNING).iter();
        let text = String::from_utf8_lossy(bytes).into_owned();
        let answer = Self {
            code: parts.status.as_u16(),
            warnings: warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect(),
            body: serde_json::from_slice(bytes).unwrap_or(Value::Null),
            text,
        };
        assert!(!answer.text.contains("the request could not be handled"), "the server panicked");
        answer
    }

    /// The object, if the answer has the expected code.
    #[track_caller]
    pub fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text);
        self.body
    }

    /// Code, reason and message of a Status.
    pub fn refusal(&self) -> (u16, &str, &str) {
        let text = |key: &str| self.body[key].as_str().unwrap_or_default();
        (self.code, text("reason"), text("message"))
    }

    /// Everything that Kubernetes promises about a refusal, in a form that can be compared.
    pub fn described(&self) -> String {
        let mut lines = Vec::new();
        match self.body["kind"].as_str() {
            Some("Status") if self.code >= 300 => {
                let (code, reason, message) = self.refusal();
                lines.push(format!("{code} {reason}: {}", stable(message)));
                lines.extend(details(&self.body["details"]));
            }
            Some(kind) => lines.push(format!("{} {kind}", self.code)),
            None if self.code >= 300 => lines.push(format!("{} {}", self.code, self.text.trim())),
            None => lines.push(self.code.to_string()),
        }
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.join("\n")
    }
}

/// Parsers of other languages word their complaints differently, and every run has its own uids and
/// revisions: everything before those is compared.
fn stable(message: &str) -> String {
    let message = match message.split_once("StorageError: ").zip(message.split_once("AdditionalErrorMsg: ")) {
        Some(((before, _), (_, after))) => format!("{before}{after}"),
        None => message.to_owned(),
    };
    const PARSERS: [&str; 12] = [
        "json parse error:",
        "error converting YAML to JSON:",
        "error decoding patch:",
        "UID in record",
        "UID in object meta:",
        "ResourceVersion in record",
        "patch: Invalid value: ",
        "unrecognized (must be of type ConfigMap): yaml: ",
        "in scheme ",
        "spec.versions: Invalid value: [",
        "metadata.ownerReferences: Invalid value: [",
        "metadata.ownerReferences: Invalid value: {",
    ];
    let cut = PARSERS.iter().filter_map(|word| message.find(word).map(|at| at + word.len())).min();
    match cut {
        Some(at) => format!("{}…", &message[..at]),
        None => message,
    }
}

fn details(details: &Value) -> Option<String> {
    let mut details = details.as_object()?.clone();
    if let Some(causes) = details.get_mut("causes").and_then(Value::as_array_mut) {
        // The message of a cause stands in the message of the Status already, and a real server names
        // a fault once for every time it looked.
        causes
            .iter_mut()
            .for_each(|cause| drop(cause.as_object_mut().map(|fields| fields.remove("message"))));
        let mut seen: Vec<Value> = Vec::new();
        causes.retain(|cause| !seen.contains(cause) && (seen.push(cause.clone()), true).1);
    }
    (!details.is_empty()).then(|| Value::Object(details).to_string())
}

/// A server under test.
#[derive(Clone)]
pub enum Server {
    InProcess { service: InProcess, server: ApiServer, store: Store },
    Remote { address: String, token: String },
}

impl Server {
    /// A fresh server in this process without controllers, or the one that the environment names.
    pub async fn new() -> Self {
        if let Ok(address) = std::env::var("KUBE_APISERVER") {
            return Self::Remote { address, token: std::env::var("KUBE_TOKEN").unwrap_or_default() };
        }
        let store = Store::in_memory();
        Self::on(store).await
    }

    /// A fresh server in this process with the default roles and these tokens (`token,user,uid,"groups"`).
    pub async fn secured(tokens: &str) -> Self {
        let tokens = StaticTokens::parse(tokens).expect("a file of tokens");
        let keys = TokenKeys::ephemeral().expect("keys");
        let bare = Security::bare().expect("keys");
        let security = Security { tokens, keys, roles: Some(Vec::new()), ..bare };
        Self::with(Store::in_memory(), Some(security)).await
    }

    /// A server in this process over a store.
    pub async fn on(store: Store) -> Self {
        Self::with(store, None).await
    }

    /// The same, with these authentication and authorization settings.
    pub async fn with(store: Store, security: Option<Security>) -> Self {
        Self::at(store, security, Arc::new(jiff::Timestamp::now)).await
    }

    /// The same, by a clock of its own.
    pub async fn at(
        store: Store,
        security: Option<Security>,
        now: Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>,
    ) -> Self {
        let counter = std::sync::atomic::AtomicU64::new(1);
        let random = move || {
            let count = counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            u128::from(count.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * 0xd134_2543_de82_ef95
        };
        let config = Config {
            store: store.clone(),
            now,
            random: Arc::new(random),
            admission: apiserver::admission::admit_all(),
            root_ca: "certificate".to_owned(),
        };
        let server = match security {
            None => ApiServer::new(config).await,
            Some(security) => ApiServer::secured(config, security).await,
        };
        let server = server.expect("a fresh server");
        Self::InProcess { service: server.trusting(Identity::internal("test")), server, store }
    }

    /// The same, with its controllers started.
    pub async fn with_controllers() -> Self {
        let server = Self::on(Store::in_memory()).await;
        server.start_controllers();
        server
    }

    /// Starts the controllers.
    pub fn start_controllers(&self) {
        if let Self::InProcess { server, .. } = self {
            drop(server.start_controllers());
        }
    }

    /// The store of a server in this process.
    pub fn store(&self) -> &Store {
        match self {
            Self::InProcess { store, .. } => store,
            Self::Remote { .. } => panic!("this test needs a server in this process"),
        }
    }

    /// The response with its body still to be read. Only for a server in this process.
    pub async fn open(&self, ask: Ask) -> Response<Body> {
        match self {
            Self::InProcess { service, .. } => {
                service.clone().oneshot(ask.request()).await.expect("the service always answers")
            }
            Self::Remote { .. } => panic!("this test needs a server in this process"),
        }
    }

    /// Asks and reads the answer.
    pub async fn ask(&self, ask: Ask) -> Answer {
        match self {
            Self::InProcess { .. } => {
                let (parts, body) = self.open(ask).await.into_parts();
                let bytes = body.collect().await.expect("a body without errors").to_bytes();
                Answer::new(&parts, &bytes)
            }
            Self::Remote { address, token } => remote(address, token, ask.request()).await,
        }
    }

    /// The response, with its body still to be read, to a network client whose credentials are in the request.
    pub async fn open_bare(&self, ask: Ask) -> Response<Body> {
        let Self::InProcess { server, .. } = self else { panic!("this test needs a server in this process") };
        server.clone().oneshot(ask.request()).await.expect("the service always answers")
    }

    /// Sends a request as a network client would, and reads the answer.
    pub async fn ask_bare(&self, ask: Ask) -> Answer {
        let (parts, body) = self.open_bare(ask).await.into_parts();
        let bytes = body.collect().await.expect("a body without errors").to_bytes();
        Answer::new(&parts, &bytes)
    }

    /// Makes sure that an object is there as given, and only that: a real server remembers earlier runs.
    pub async fn renew(&self, collection: &str, object: Value) -> Value {
        let name = object["metadata"]["name"].as_str().expect("a name");
        self.ask(Ask::delete(&format!("{collection}/{name}"))).await;
        self.ask(Ask::post(collection, object)).await.expect(201)
    }

    /// A fresh server with a namespace, or the one that the environment names.
    pub async fn with_namespace(name: &str) -> Self {
        let server = Self::new().await;
        server.namespace(name).await;
        server
    }

    /// Makes a namespace if it is not there.
    pub async fn namespace(&self, name: &str) {
        let namespace = json!({ "metadata": { "name": name } });
        let made = self.ask(Ask::post("/api/v1/namespaces", namespace)).await;
        assert!(made.code == 201 || made.code == 409, "{made:?}");
    }

    /// Makes a definition and waits until it is served.
    pub async fn define(&self, definition: Value) {
        let spec = &definition["spec"];
        let version = spec["versions"][0]["name"].as_str().expect("a version");
        let (group, plural) = (text(spec, "group"), text(&spec["names"], "plural"));
        let collection = format!("/apis/{group}/{version}/{plural}");
        self.ask(Ask::post(DEFINITIONS, definition.clone())).await.expect(201);
        while self.ask(Ask::get(&collection)).await.code != 200 {
            assert!(matches!(self, Self::Remote { .. }), "{collection} is served when the create returns");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until a path is gone.
    pub async fn until_gone(&self, path: &str) {
        self.until(path, |answer| answer.code == 404).await;
    }

    /// Waits until the answer on a path is as wanted.
    pub async fn until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Value {
        let mut last = None;
        for _ in 0..500 {
            let answer = self.ask(Ask::get(path)).await;
            if wanted(&answer) {
                return answer.body;
            }
            last = Some(answer);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{path} is not as it should be after five seconds: {last:?}");
    }
}

/// Where definitions are created.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().expect("a text")
}

async fn remote(address: &str, token: &str, mut request: Request<Full<Bytes>>) -> Answer {
    let stream = tokio::net::TcpStream::connect(address).await.expect("the server named by the environment");
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("HTTP");
    tokio::spawn(connection);
    let header = |text: &str| http::HeaderValue::from_str(text).expect("a header");
    request.headers_mut().insert(http::header::HOST, header("localhost"));
    request.headers_mut().insert(http::header::AUTHORIZATION, header(&format!("Bearer {token}")));
    let response = sender.send_request(request).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let read = tokio::time::timeout(Duration::from_secs(10), body.collect());
    let bytes = read.await.expect("an answer that ends").expect("a whole answer").to_bytes();
    Answer::new(&parts, &bytes)
}
