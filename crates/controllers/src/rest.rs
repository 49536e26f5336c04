//! The REST client of one cluster, through `kube::Client` and nothing else: the same in this process and over the
//! network. Bodies are any serde type; the path identifies the object.

use std::time::Duration;

use api::ObjectMeta;
use http::{Method, Request, header};
use kube::Client;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

mod concurrency_limit;
mod described;
mod difference;
mod fence;
mod pages;
mod path;

pub use concurrency_limit::ConcurrencyLimit;
pub use described::described;
use difference::difference;
pub use fence::LeaderFence;
pub use path::{Collection, Path};

/// The default timeout of a request; callers may set a shorter one.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The query of every write: field manager and `fieldValidation=Ignore`. The warnings would go unread: our objects are
/// typed, and users' objects were validated when they were written.
fn as_writer(path: &Path) -> Path {
    path.with("fieldManager", "longshore").with("fieldValidation", "Ignore")
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A conflict: another client changed or created the object first; reconcile again.
    #[error("{action}: {message}")]
    Conflict {
        /// What was tried, on what.
        action: String,
        /// What the server said.
        message: String,
    },
    /// There is no such object.
    #[error("{action}: not found")]
    NotFound {
        /// What was tried, on what.
        action: String,
    },
    /// The server refused it.
    #[error("{action}: {message}")]
    Refused {
        /// What was tried, on what.
        action: String,
        /// The HTTP status.
        code: u16,
        /// What the server said.
        message: String,
    },
    /// The server could not be reached, or broke off.
    #[error("{action}: {}", described(source))]
    Unreachable {
        /// What was tried, on what.
        action: String,
        /// What the client said.
        source: Box<kube::Error>,
    },
    /// The request was not sent, or was cancelled: another replica may write now.
    #[error("{action}: this replica no longer leads")]
    Fenced {
        /// What was tried, on what.
        action: String,
    },
    /// The server took too long.
    #[error("{action}: time-out")]
    TimedOut {
        /// What was tried, on what.
        action: String,
    },
}

impl Error {
    /// True for a write conflict, most often with our own write: the next reconcile sees the new state, and no event is
    /// needed.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict { .. })
    }

    /// True when the server as a whole is in trouble, not this one request.
    pub fn is_outage(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::TimedOut { .. } => true,
            Error::Refused { code, .. } => matches!(code, 502..=504),
            Error::Conflict { .. } | Error::NotFound { .. } | Error::Fenced { .. } => false,
        }
    }

    /// True when admission or validation refuses what is to be written: trying the same again does not help.
    pub fn is_rejection(&self) -> bool {
        matches!(self, Error::Refused { code: 400 | 403 | 422, .. })
    }

    /// Whether the server has too much to do.
    pub fn is_overload(&self) -> bool {
        matches!(self, Error::Refused { code: 429, .. })
    }
}

/// The part of a write's response that is parsed: the caller knows the rest.
#[derive(Debug, Default, Deserialize)]
pub struct Written {
    /// What the server says of the object.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

/// One cluster, as a place to send requests to. Clones share the connection.
#[derive(Clone)]
pub struct Rest {
    client: Client,
    /// The leader fence; writes are unconditional without one.
    fence: Option<LeaderFence>,
    /// How much the server can take; as much as comes if there is none.
    concurrency_limit: Option<ConcurrencyLimit>,
}

impl Rest {
    /// Speaks through this client.
    pub fn new(client: Client) -> Self {
        Self { client, fence: None, concurrency_limit: None }
    }

    /// The same with regard for a server that others need as well.
    pub fn with_concurrency_limit(self) -> Self {
        Self { concurrency_limit: Some(ConcurrencyLimit::default()), ..self }
    }

    /// The same, but writes only while the fence is held.
    pub fn under(self, fence: LeaderFence) -> Self {
        Self { fence: Some(fence), ..self }
    }

    /// A client of another server, under the same fence.
    pub fn beside(&self, client: Client) -> Self {
        Self { client, fence: self.fence.clone(), concurrency_limit: Some(ConcurrencyLimit::default()) }
    }

    /// Whether writing is allowed now.
    pub fn may_write_now(&self) -> bool {
        self.fence.as_ref().is_none_or(LeaderFence::is_held)
    }

    /// Waits until writing is allowed.
    pub async fn may_write(&self) {
        if let Some(fence) = &self.fence {
            fence.held().await;
        }
    }

    /// The client, for streams.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// One object, none if it is not there.
    pub async fn get<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Error> {
        match self.send(Method::GET, path, "", None::<&()>).await {
            Ok(object) => Ok(Some(object)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A document that has to be there.
    pub async fn fetch<T: DeserializeOwned>(&self, path: &Path) -> Result<T, Error> {
        self.send(Method::GET, path, "", None::<&()>).await
    }

    /// Asks for something whose answer is plain text.
    pub async fn fetch_text(&self, path: &Path) -> Result<String, Error> {
        let action = || format!("get {path}");
        let request = Request::builder()
            .uri(path.target()?)
            .body(Vec::new())
            .map_err(|error| Error::Refused { action: action(), code: 400, message: error.to_string() })?;
        tokio::time::timeout(REQUEST_TIMEOUT, self.client.request_text(request))
            .await
            .map_err(|_| Error::TimedOut { action: action() })?
            .map_err(|error| failure(action(), error))
    }

    /// Creates an object.
    pub async fn create(&self, collection: &Collection, object: &impl Serialize) -> Result<Written, Error> {
        let path = as_writer(collection.path());
        self.send(Method::POST, &path, "application/json", Some(object)).await
    }

    /// Replaces an object; its resourceVersion says which state was seen.
    pub async fn replace(&self, path: &Path, object: &impl Serialize) -> Result<Written, Error> {
        let path = as_writer(path);
        self.send(Method::PUT, &path, "application/json", Some(object)).await
    }

    /// Merges a patch; a resourceVersion in its metadata says which state was seen.
    pub async fn merge(&self, path: &Path, patch: &Value) -> Result<Written, Error> {
        self.merge_into(path, patch).await
    }

    /// The same, and returns the object afterwards.
    pub async fn merge_into<T: DeserializeOwned>(&self, path: &Path, patch: &Value) -> Result<T, Error> {
        let path = as_writer(path);
        self.send(Method::PATCH, &path, "application/merge-patch+json", Some(patch)).await
    }

    /// Makes the status of an object, whose state of this version was seen, be `after`.
    pub async fn write_status(
        &self,
        path: &Path,
        version: &str,
        before: &impl Serialize,
        after: &impl Serialize,
    ) -> Result<Written, Error> {
        let before = serde_json::to_value(before).expect("our objects always serialise");
        let after = serde_json::to_value(after).expect("our objects always serialise");
        let patch = json!({
            "metadata": { "resourceVersion": version },
            "status": difference(&before, &after),
        });
        self.merge(&path.below("status"), &patch).await
    }

    /// Server-side apply.
    pub async fn apply(&self, path: &Path, object: &impl Serialize, force: bool) -> Result<Value, Error> {
        let path = as_writer(path).with("force", if force { "true" } else { "false" });
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", Some(object)).await
    }

    /// Deletes an object with background propagation; one that is gone is fine. `uid` guards namesakes.
    pub async fn delete(&self, path: &Path, uid: Option<&str>) -> Result<(), Error> {
        let mut options =
            json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background" });
        if let Some(uid) = uid {
            options["preconditions"] = json!({ "uid": uid });
        }
        let deleted: Result<Value, Error> =
            self.send(Method::DELETE, path, "application/json", Some(&options)).await;
        match deleted {
            Err(Error::NotFound { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends a request as it is; `content` is the type of its body.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &Path,
        content: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Error> {
        let action = || format!("{} {path}", method.as_str().to_ascii_lowercase());
        let target = path.target()?;
        tracing::trace!(%method, target, "ask");
        let bytes = match body {
            Some(body) => serde_json::to_vec(body).expect("our objects always serialise"),
            None => Vec::new(),
        };
        let mut request = Request::builder().method(method.clone()).uri(target);
        if !content.is_empty() {
            request = request.header(header::CONTENT_TYPE, content);
        }
        let request = request.body(bytes).map_err(|error| Error::Refused {
            action: action(),
            code: 400,
            message: error.to_string(),
        })?;
        let answer = async {
            let turn = match &self.concurrency_limit {
                Some(concurrency_limit) => Some(concurrency_limit.acquire().await),
                None => None,
            };
            let begun = Instant::now();
            // A connection that vanished without a word would keep a worker for as long as TCP believes in it.
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.client.request(request))
                .await
                .map_err(|_| Error::TimedOut { action: action() })?;
            if let Some(turn) = turn {
                note(&turn, &method, begun, answer.as_ref().err());
            }
            answer.map_err(|error| failure(action(), error))
        };
        match &self.fence {
            // A write is cancelled when the fence is lost: its response would come too late to be of use.
            Some(fence) if method != Method::GET => tokio::select! {
                biased;
                () = fence.lost() => Err(Error::Fenced { action: action() }),
                answer = answer => answer,
            },
            _ => answer.await,
        }
    }
}

/// Learns from an answer how much the server can take. Lists take as long as they are long and say nothing about it.
fn note(
    turn: &concurrency_limit::RequestPermit,
    method: &Method,
    begun: Instant,
    error: Option<&kube::Error>,
) {
    match error {
        Some(kube::Error::Api(status)) if status.code == 429 => {
            let seconds = status.details.as_ref().map(|details| u64::from(details.retry_after_seconds));
            turn.refused(seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs));
        }
        Some(kube::Error::Api(_)) | None if *method != Method::GET => turn.answered(begun.elapsed()),
        _ => {}
    }
}

/// What the client says, in our words.
pub(crate) fn failure(action: String, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) => match status.code {
            404 => Error::NotFound { action },
            409 => Error::Conflict { action, message: status.message },
            code => Error::Refused { action, code, message: status.message },
        },
        source => Error::Unreachable { action, source: Box::new(source) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_times_out() {
        let silent = tower::service_fn(|_: Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
        });
        let rest = Rest::new(Client::new(silent, "default"));
        let begun = Instant::now();
        let answer = rest.get::<Value>(&Path::fixed("/api/v1/namespaces/default")).await;
        assert!(matches!(answer, Err(Error::TimedOut { .. })), "{answer:?}");
        let answer = rest.fetch_text(&Path::fixed("/readyz")).await;
        assert!(matches!(answer, Err(Error::TimedOut { .. })), "{answer:?}");
        assert_eq!(begun.elapsed(), REQUEST_TIMEOUT * 2);
    }
}
