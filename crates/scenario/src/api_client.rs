//! A client for one API server, as kubectl is: objects by kind and name, and every response with its warnings.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use controllers::rest::{Collection, Path};
use http::{Method, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::error::PlayError;
use crate::reference::Reference;

/// The field manager of our writes.
const MANAGER: &str = "scenario";

/// How often a read is retried when the server does not answer.
const READ_RETRIES_MAX: u32 = 5;
/// How soon.
const READ_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// What a server answered to a change.
#[derive(Debug)]
pub struct Answer {
    /// The object, or the Status that says why not.
    pub body: Value,
    /// Whether it was done.
    pub done: bool,
    /// Warnings that came with it.
    pub warnings: Vec<String>,
}

/// How the objects of a kind are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// `group/version`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The plural name.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether they can be listed.
    pub listable: bool,
}

impl Served {
    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// A way to an API server.
pub struct ApiClient {
    client: Client,
    /// Whether changes are only tried, and nothing is written.
    rehearses: bool,
    /// Kinds that were asked for; forgotten when one is missing, for definitions come and go.
    served: Mutex<BTreeMap<(String, Option<String>), Served>>,
}

impl ApiClient {
    /// Through this client.
    pub fn new(client: Client) -> Self {
        Self { client, rehearses: false, served: Mutex::default() }
    }

    /// The same way, on which every change is only tried: the server says what would become of it.
    pub fn rehearsal(&self) -> Self {
        Self { rehearses: true, ..Self::new(self.client.clone()) }
    }

    /// An object; `None` if it does not exist or the server does not serve its kind.
    pub async fn get(&self, reference: &Reference) -> Result<Option<Value>, PlayError> {
        match self.path(reference).await? {
            Some(path) => self.fetch(&path).await,
            None => Ok(None),
        }
    }

    /// A document, none if it is not there.
    pub async fn fetch(&self, path: &Path) -> Result<Option<Value>, PlayError> {
        let (code, body, _) = self.send(Method::GET, path, "", None).await?;
        match code {
            200 => Ok(Some(body)),
            404 => Ok(None),
            code => Err(PlayError(format!("get {path}: {code} {}", message(&body)))),
        }
    }

    /// Creates an object, or makes it be as its manifest says.
    pub async fn apply(&self, manifest: &Value) -> Result<Answer, PlayError> {
        let reference = named(manifest);
        let path = self.path(&reference).await?;
        let path = path.ok_or_else(|| PlayError(format!("{reference}: this kind is not served here")))?;
        let path = self.asking(&path).with("force", "true");
        self.change(Method::PATCH, &path, "application/apply-patch+yaml", manifest).await
    }

    /// Changes fields of an object.
    pub async fn merge(&self, reference: &Reference, patch: &Value) -> Result<Answer, PlayError> {
        let path = self.known_path(reference).await?;
        let path = self.asking(&path);
        self.change(Method::PATCH, &path, "application/merge-patch+json", patch).await
    }

    /// Deletes an object.
    pub async fn delete(&self, reference: &Reference) -> Result<Answer, PlayError> {
        let path = self.known_path(reference).await?;
        let mut options =
            json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
        // With a body, the server ignores the query.
        if self.rehearses {
            options["dryRun"] = json!(["All"]);
        }
        self.change(Method::DELETE, &path, "application/json", &options).await
    }

    /// Every kind that is served, each once: in its group's preferred version if it is there.
    pub async fn kinds(&self) -> Result<Vec<Served>, PlayError> {
        let groups = self.fetch(&Path::fixed("/apis")).await?.unwrap_or_default();
        let mut kinds: Vec<Served> = Vec::new();
        for api_version in std::iter::once("v1").chain(versions(&groups)) {
            let list = self.fetch(&Path::of_version(api_version)).await?.unwrap_or_default();
            let found = list["resources"].as_array().into_iter().flatten();
            for served in found.filter_map(|resource| served(api_version, resource)) {
                if !kinds.iter().any(|known| known.kind == served.kind && known.group() == served.group()) {
                    kinds.push(served);
                }
            }
        }
        Ok(kinds)
    }

    /// The path of an object; `None` if the server does not serve its kind.
    pub async fn path(&self, reference: &Reference) -> Result<Option<Path>, PlayError> {
        let served = self.find(reference).await?;
        Ok(served.map(|served| collection(&served, reference.namespace()).object(&reference.name)))
    }

    /// Whether this kind is namespaced; assumed for kinds that the server does not serve.
    pub async fn is_namespaced(&self, reference: &Reference) -> Result<bool, PlayError> {
        Ok(self.find(reference).await?.is_none_or(|served| served.namespaced))
    }

    fn asking(&self, path: &Path) -> Path {
        let path = path.with("fieldManager", MANAGER);
        if self.rehearses { path.with("dryRun", "All") } else { path }
    }

    async fn find(&self, reference: &Reference) -> Result<Option<Served>, PlayError> {
        let known = self.served().get(&(reference.kind.clone(), reference.group.clone())).cloned();
        match known {
            Some(served) => Ok(Some(served)),
            None => self.discover(reference).await,
        }
    }

    fn served(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, Option<String>), Served>> {
        self.served.lock().expect("no one panics while holding it")
    }

    async fn known_path(&self, reference: &Reference) -> Result<Path, PlayError> {
        let path = self.path(reference).await?;
        path.ok_or_else(|| PlayError(format!("{reference}: this kind is not served here")))
    }

    async fn discover(&self, reference: &Reference) -> Result<Option<Served>, PlayError> {
        let kinds = self.kinds().await?;
        let is = |served: &&Served| {
            let named = reference.group.as_ref().is_none_or(|named| *named == served.group());
            served.kind == reference.kind && named
        };
        let found = kinds.iter().find(is).cloned();
        if let Some(served) = &found {
            self.served().insert((reference.kind.clone(), reference.group.clone()), served.clone());
        }
        Ok(found)
    }

    async fn change(
        &self,
        method: Method,
        path: &Path,
        content: &str,
        body: &Value,
    ) -> Result<Answer, PlayError> {
        let (code, body, warnings) = self.send(method, path, content, Some(body)).await?;
        Ok(Answer { done: (200..300).contains(&code), body, warnings })
    }

    /// Sends a request; reads are retried when the server does not answer.
    async fn send(
        &self,
        method: Method,
        path: &Path,
        content: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value, Vec<String>), PlayError> {
        let mut again = if method == Method::GET { READ_RETRIES_MAX } else { 0 };
        loop {
            match self.send_once(method.clone(), path, content, body).await {
                Err(_) if again > 0 => tokio::time::sleep(READ_RETRY_INTERVAL).await,
                answered => return answered,
            }
            again -= 1;
        }
    }

    async fn send_once(
        &self,
        method: Method,
        path: &Path,
        content: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value, Vec<String>), PlayError> {
        let action = || format!("{} {path}", method.as_str().to_ascii_lowercase());
        let bytes = body.map(|body| serde_json::to_vec(body).expect("a value always serialises"));
        let target = path.target().map_err(|error| PlayError(error.to_string()))?;
        let mut request = Request::builder().method(method.clone()).uri(target);
        if !content.is_empty() {
            request = request.header(header::CONTENT_TYPE, content);
        }
        let request = request
            .body(Body::from(bytes.unwrap_or_default()))
            .map_err(|error| PlayError(format!("{}: {error}", action())))?;
        let answered = self.client.send(request).await;
        let answer = answered.map_err(|error| PlayError(format!("{}: {error}", action())))?;
        let code = answer.status().as_u16();
        let warnings = answer.headers().get_all(header::WARNING).iter();
        let warnings = warnings.filter_map(|value| value.to_str().ok()).map(warning).collect();
        let read = answer.into_body().collect().await;
        let bytes = read.map_err(|error| PlayError(format!("{}: {error}", action())))?.to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok((code, body, warnings))
    }
}

/// The versions of all groups, the preferred one of each group first.
fn versions(groups: &Value) -> impl Iterator<Item = &str> {
    let groups = groups["groups"].as_array().into_iter().flatten();
    groups.flat_map(|group| {
        let preferred = std::iter::once(&group["preferredVersion"]);
        let all = group["versions"].as_array().into_iter().flatten();
        preferred.chain(all).filter_map(|version| version["groupVersion"].as_str())
    })
}

fn served(api_version: &str, resource: &Value) -> Option<Served> {
    let text = |key: &str| resource[key].as_str().map(str::to_owned);
    Some(Served {
        api_version: api_version.to_owned(),
        kind: text("kind")?,
        plural: text("name").filter(|name| !name.contains('/'))?,
        namespaced: resource["namespaced"].as_bool().unwrap_or_default(),
        listable: resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list"))),
    })
}

/// The path of a kind's objects in a namespace.
pub fn collection(served: &Served, namespace: &str) -> Collection {
    let namespace = if served.namespaced { namespace } else { "" };
    Collection::new(&served.api_version, &served.plural, namespace)
}

/// The text of a warning, which comes as `299 - "text"`.
fn warning(value: &str) -> String {
    let text = value.split_once('"').map_or(value, |(_, text)| text);
    text.strip_suffix('"').unwrap_or(text).replace("\\\"", "\"").replace("\\\\", "\\")
}

/// What a Status says.
pub fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap_or("no message")
}

/// The object that a manifest describes.
pub fn named(manifest: &Value) -> Reference {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let group = text("/apiVersion").and_then(|version| Some(version.split_once('/')?.0.to_owned()));
    Reference {
        kind: text("/kind").unwrap_or_default(),
        group: Some(group.unwrap_or_default()),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name").unwrap_or_default(),
    }
}
