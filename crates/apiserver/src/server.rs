//! The server as a tower service: the same for a client in this process and for one behind TLS.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::task::JoinHandle;

use crate::access::Action;
use crate::auth::Identity;
use crate::body::Body;
use crate::compaction::{HISTORY_BYTES_MAX, HISTORY_KEPT};
use crate::content::{self, Accepted, BODY_BYTES_MAX};
use crate::engine::{Config, Engine};
use crate::error::ApiError;
use crate::request::{Query, Target};
use crate::security::Security;
use crate::verbs::{self, Sent};

/// What is said when the server itself is at fault; where, stands in its log.
const UNHANDLED: &str = "the request could not be handled";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A running API server. Clones share it.
#[derive(Clone)]
pub struct ApiServer {
    engine: Arc<Engine>,
}

impl ApiServer {
    /// A server over what is configured, with the namespaces that every control plane has. It knows nobody but who
    /// is trusted in this process and who shows a certificate, and has no roles to begin with.
    pub async fn new(config: Config) -> Result<Self, ApiError> {
        Self::secured(config, Security::bare().map_err(ApiError::internal)?).await
    }

    /// The same, where others get in too.
    pub async fn secured(config: Config, mut security: Security) -> Result<Self, ApiError> {
        let roles = security.roles.take();
        let engine = Engine::new(config, security);
        engine.bootstrap().await?;
        if let Some(roles) = roles {
            engine.bootstrap_roles(&roles).await?;
        }
        Ok(Self { engine })
    }

    /// Starts the tasks that tend to objects without being asked. They end with [`Self::shut_down`].
    pub fn start_housekeeping(&self) -> Vec<JoinHandle<()>> {
        self.start_housekeeping_with_history(HISTORY_KEPT, HISTORY_BYTES_MAX)
    }

    /// The same, where watches may resume within this time, unless that is more than so many bytes of history.
    pub fn start_housekeeping_with_history(&self, kept: Duration, bytes_max: u64) -> Vec<JoinHandle<()>> {
        self.engine.housekeeping.expect_recall();
        vec![
            tokio::spawn(self.engine.clone().keep_house()),
            tokio::spawn(self.engine.clone().compact_history(kept, bytes_max)),
        ]
    }

    /// Waits until the housekeeping has nothing left to do. Without housekeeping this may be never.
    pub async fn housekeeping_idle(&self) {
        self.engine.housekeeping.until_idle().await;
    }

    /// Whether the housekeeping has nothing left to do.
    pub fn is_housekeeping_idle(&self) -> bool {
        self.engine.housekeeping.is_idle()
    }

    /// Ends every watch and the housekeeping.
    pub fn shut_down(&self) {
        self.engine.shutdown.cancel();
    }

    /// Adds to what `/metrics` answers: text in Prometheus' format, made when it is asked for.
    pub fn add_metrics(&self, source: impl Fn() -> String + Send + Sync + 'static) {
        self.engine.metrics.add(Box::new(source));
    }

    /// The server for a client inside this process, who is this identity.
    pub fn trusting(&self, identity: Identity) -> InProcess {
        InProcess { server: self.clone(), identity }
    }

    async fn answer<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let method = parts.method.clone();
        let handled = AssertUnwindSafe(self.handle(parts, body)).catch_unwind().await;
        let response = match handled {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => verbs::error_response(&error),
            // The panic hook has printed where; the client and all others go on.
            Err(_) => verbs::error_response(&ApiError::internal(UNHANDLED)),
        };
        self.engine.metrics.count(&method, response.status());
        response
    }

    async fn handle<B>(&self, parts: Parts, body: B) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let identity = self.engine.authenticate(&parts)?;
        let target = Target::parse(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let action = Action::of(&parts.method, &target, parts.uri.path(), &query);
        self.engine.authorize(&identity, &action)?;
        let path = match target {
            Target::Malformed => return Err(ApiError::no_such_path()),
            Target::Other(segments) => return self.engine.document(&parts, &segments),
            Target::Resource(path) => path,
        };
        let accepted = Accepted::from_headers(&parts.headers)?;
        let agent = parts.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        let call = self.engine.call(path, query, accepted, identity, agent.unwrap_or_default().to_owned())?;
        let body = read_body(body).await?;
        let media_type = content::media_type(&parts.headers).to_owned();
        let sent = Sent { method: parts.method, media_type, body };
        if sent.method == Method::GET || call.identity.is_internal {
            return self.engine.perform(&sent, call).await;
        }
        // What was begun is finished, even if the client hangs up: others follow what is written.
        let engine = self.engine.clone();
        let performed = tokio::spawn(async move { engine.perform(&sent, call).await });
        performed.await.unwrap_or_else(|_| Err(ApiError::internal(UNHANDLED)))
    }
}

async fn read_body<B>(body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(BODY_BYTES_MAX)),
        Err(error) => Err(ApiError::bad_request(format!("the body could not be read: {error}"))),
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().answer(request).map(Ok))
    }
}

/// The server for a client inside this process.
#[derive(Clone)]
pub struct InProcess {
    server: ApiServer,
    identity: Identity,
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.identity.clone());
        self.server.call(request)
    }
}
