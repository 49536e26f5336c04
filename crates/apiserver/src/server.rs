//! The server as a tower service: the same for in-process clients and for clients over TLS.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::audit::Record;
use crate::authn::Identity;
use crate::authz::Action;
use crate::call::{Call, Sent};
use crate::controllers;
use crate::engine::{Config, Engine};
use crate::extension::Extension;
use crate::flowcontrol::{CpuShare, InFlightPermit};
use crate::http::content::{self, Accepted, BODY_BYTES_MAX};
use crate::http::{Body, ConnectionHandle, Frontend, Query, Shared, Target, error_response};
use crate::security::Security;
use crate::storage::{HISTORY_BYTES_MAX, HISTORY_KEPT, compact_history};
use crate::work_queue::WorkItem;
use apimachinery::error::ApiError;

mod dispatch;
mod health;
mod impersonate;
mod routes;

use impersonate::impersonate;

/// What kube-apiserver says when it gives up.
const TIMEOUT: &str =
    "Timeout: request did not complete within requested timeout - context deadline exceeded";
/// What is said when the server itself is at fault; where, stands in its log.
const UNHANDLED: &str = "the request could not be handled";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A running API server. Clones share it.
#[derive(Clone)]
pub struct ApiServer {
    engine: Arc<Engine>,
}

impl ApiServer {
    /// A server with this configuration, with the namespaces that every control plane has. It authenticates only
    /// in-process clients and client certificates, and has no roles to begin with.
    pub async fn new(config: Config) -> Result<Self, ApiError> {
        Self::secured(config, Security::bare().map_err(ApiError::internal)?).await
    }

    /// The same, with these authentication and authorization settings.
    pub async fn secured(config: Config, security: Security) -> Result<Self, ApiError> {
        Self::extended(config, security, None).await
    }

    /// The same, with a group of computed resources.
    pub async fn extended(
        config: Config,
        mut security: Security,
        extension: Option<Extension>,
    ) -> Result<Self, ApiError> {
        let roles = security.roles.take();
        let engine = Engine::new(config, security, extension);
        engine.bootstrap().await?;
        if let Some(roles) = roles {
            engine.bootstrap_roles(&roles).await?;
        }
        Ok(Self { engine })
    }

    /// Says where the server listens: the Service `default/kubernetes` leads there from now on. Only the first address
    /// counts.
    pub fn advertise(&self, address: std::net::SocketAddr) {
        let _ = self.engine.advertised.set(address);
        self.engine.work_queue.enqueue(WorkItem::Namespace("default".to_owned()));
    }

    /// Starts the tasks that tend to objects without being authorized. They end with [`Self::shut_down`].
    pub fn start_controllers(&self) -> Vec<JoinHandle<()>> {
        self.start_controllers_with_history(HISTORY_KEPT, HISTORY_BYTES_MAX)
    }

    /// The same, where watches may resume within this time, unless that is more than so many bytes of history.
    pub fn start_controllers_with_history(&self, kept: Duration, bytes_max: u64) -> Vec<JoinHandle<()>> {
        self.engine.work_queue.expect_initial_scan();
        let Engine { supervision, shutdown, .. } = &*self.engine;
        let (engine, compacted) = (self.engine.clone(), self.engine.clone());
        let compact = move || {
            let engine = compacted.clone();
            async move {
                compact_history(engine.store.clone(), &engine.supervision, &engine.shutdown, kept, bytes_max)
                    .await;
            }
        };
        vec![
            supervision.keep_task(controllers::TASK, shutdown, move || engine.clone().run_controllers()),
            supervision.keep_task("compaction", shutdown, compact),
        ]
    }

    /// Waits until the controllers have nothing left to do. Without [`Self::start_controllers`] this may be never.
    pub async fn controllers_idle(&self) {
        self.engine.work_queue.until_idle().await;
    }

    /// Whether the controllers have nothing left to do.
    pub fn are_controllers_idle(&self) -> bool {
        self.engine.work_queue.is_idle()
    }

    /// Ends every watch and the controllers.
    pub fn shut_down(&self) {
        self.engine.shutdown.cancel();
    }

    /// Adds to what `/metrics` answers: text in Prometheus' format, made when it is authorized for.
    pub fn add_metrics(&self, source: impl Fn() -> String + Send + Sync + 'static) {
        self.engine.metrics.add(Box::new(source));
    }

    /// Adds to what `/livez` asks: why this process cannot go on, none while it can.
    pub fn add_liveness(&self, failure: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.engine.supervision.add_liveness(Box::new(failure));
    }

    /// Lets a test panic at named points.
    #[doc(hidden)]
    pub fn inject_faults(&self, injector: supervise::Injector) {
        self.engine.supervision.set_injector(injector);
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
        let path = parts.uri.path().to_owned();
        let response = match supervise::catch(self.handle(parts, body)).await {
            Ok(response) => response,
            // The panic hook has printed where; the client and all others go on.
            Err(panic) => {
                self.engine.supervision.note_panic("request", &(&method, &path), &panic);
                error_response(&ApiError::internal(UNHANDLED))
            }
        };
        self.engine.metrics.count(&method, response.status());
        response
    }

    /// Authenticates and routes a request, and writes its audit event.
    async fn handle<B>(&self, parts: Parts, body: B) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let authenticated = self
            .engine
            .authenticator
            .authenticate(&parts)
            .and_then(|identity| impersonate(&self.engine.rbac, identity, &parts.headers));
        if let Some(share) = parts.extensions.get::<CpuShare>() {
            share.switch_to(authenticated.as_ref().ok());
        }
        let admitted = authenticated.and_then(|identity| {
            let connection = parts.extensions.get::<ConnectionHandle>();
            connection.map_or(Ok(()), |connection| connection.authenticated(&identity)).map(|()| identity)
        });
        let identity = match admitted {
            Ok(identity) => identity,
            Err(error) => {
                self.note_refusal(&parts, &error);
                return error_response(&error);
            }
        };
        let target = Target::parse(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let action = Action::of(&parts.method, &target, parts.uri.path(), &query);
        let engine = &self.engine;
        let audit = engine.audit.as_ref().filter(|_| !identity.is_internal);
        let mut record = audit
            .and_then(|audit| audit.begin(engine.uid(), &parts, &identity, &action, &target, &engine.now));
        let reason = engine.rbac.decide(&identity, &action);
        if let Some(record) = &mut record {
            record.note_decision(reason.as_deref());
        }
        let refused = reason.is_none().then(|| action.refusal(&identity));
        let answered = match refused {
            Some(refused) => Err(refused),
            None => {
                self.run_within_limits(
                    AuthorizedRequest { parts, target, query, identity },
                    body,
                    &mut record,
                )
                .await
            }
        };
        complete_audit(answered, record)
    }

    /// Writes the audit event of a request that could not be authenticated.
    fn note_refusal(&self, parts: &Parts, error: &ApiError) {
        let Some(audit) = self.engine.audit.as_ref().filter(|_| error.code == 401) else { return };
        let target = Target::parse(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let action = Action::of(&parts.method, &target, parts.uri.path(), &query);
        audit.refuse(self.engine.uid(), parts, &action, &target, error, (self.engine.now)());
    }

    /// Serves a request, within the limits of its user.
    async fn run_within_limits<B>(
        &self,
        authorized: AuthorizedRequest,
        body: B,
        record: &mut Option<Record>,
    ) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        if authorized.identity.is_internal {
            return self.route(authorized, body, None, record).await;
        }
        let permit = self.engine.queue.enter(&authorized.identity)?;
        let limit = self.engine.queue.limits.request;
        let served = tokio::time::timeout(limit, self.route(authorized, body, permit, record)).await;
        served.unwrap_or_else(|_| Err(ApiError::timeout(TIMEOUT)))
    }

    async fn route<B>(
        &self,
        authorized: AuthorizedRequest,
        body: B,
        permit: Option<InFlightPermit>,
        record: &mut Option<Record>,
    ) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let AuthorizedRequest { parts, target, query, identity } = authorized;
        let path = match target {
            Target::Malformed => return Err(ApiError::no_such_path()),
            Target::Other(segments) => return self.engine.serve_non_resource_path(&parts, &segments),
            Target::Resource(path) => path,
        };
        let accepted = Accepted::from_headers(&parts.headers)?;
        let agent = parts.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
        let mut call =
            self.engine.call(path, query, accepted, identity, agent.unwrap_or_default().to_owned())?;
        call.command = kubectl_command(&parts);
        let body = read_body(body).await?;
        if let Some(record) = record {
            record.note_request(&body);
            record.follow(&call.audit_annotations);
        }
        let media_type = content::media_type(&parts.headers).to_owned();
        let sent = Sent { method: parts.method, media_type, body };
        self.run_when_admitted(sent, call, permit).await
    }

    /// Waits for a slot in the fair queue, then dispatches the request.
    async fn run_when_admitted(
        &self,
        sent: Sent,
        call: Call,
        permit: Option<InFlightPermit>,
    ) -> Result<Response<Body>, ApiError> {
        if call.identity.is_internal {
            return self.engine.dispatch(&sent, call).await;
        }
        let is_watch = sent.method == Method::GET && call.query.flag("watch");
        let watch = if is_watch { self.engine.queue.watch(&call.identity)? } else { None };
        let mut permit = permit;
        if let Some(permit) = &mut permit {
            permit.wait_for_slot().await?;
        }
        // The CPU time of a read is charged to its connection.
        if sent.method == Method::GET {
            let response = self.engine.dispatch(&sent, call).await?;
            return Ok(response.map(|body| body.holding(watch)));
        }
        // A write is finished even if the client hangs up: watchers follow what is written.
        let engine = self.engine.clone();
        let performed = tokio::spawn(async move {
            let work = engine.dispatch(&sent, call);
            match &permit {
                Some(permit) => permit.share(work).await,
                None => work.await,
            }
        });
        performed.await.unwrap_or_else(|_| Err(ApiError::internal(UNHANDLED)))
    }
}

/// The kubectl command that sends a request, as it says itself.
fn kubectl_command(parts: &Parts) -> String {
    let said = parts.headers.get("kubectl-command").and_then(|value| value.to_str().ok());
    said.unwrap_or_default().to_owned()
}

/// A request that RBAC allows.
struct AuthorizedRequest {
    parts: Parts,
    target: Target,
    query: Query,
    identity: Identity,
}

/// The response, with its audit event written. A stream has one event when it starts and one when it ends.
fn complete_audit(answered: Result<Response<Body>, ApiError>, record: Option<Record>) -> Response<Body> {
    let (response, error) = match answered {
        Ok(response) => (response, None),
        Err(error) => (error_response(&error), Some(error)),
    };
    let Some(record) = record else { return response };
    let code = response.status().as_u16();
    if !response.body().is_stream() {
        record.complete(code, error.as_ref(), response.body().whole());
        return response;
    }
    record.started(code);
    response.map(|body| body.holding(StreamedResponse { record, code }))
}

/// A response that is being streamed; its audit event is completed when it is dropped.
struct StreamedResponse {
    record: Record,
    code: u16,
}

impl Drop for StreamedResponse {
    fn drop(&mut self) {
        self.record.complete(self.code, None, None);
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

impl Frontend {
    /// Serves until `stop` resolves, then lets requests under way finish.
    pub async fn serve(self, listener: TcpListener, server: ApiServer, stop: impl Future<Output = ()>) {
        let Engine { supervision, queue, shutdown, .. } = &*server.engine;
        let shared =
            Shared { supervision: supervision.clone(), queue: queue.clone(), shutdown: shutdown.clone() };
        self.run(listener, server.clone(), shared, stop).await;
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
