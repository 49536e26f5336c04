//! The HTTPS listener: TLS always, HTTP/1.1 and HTTP/2, and an identity only for clients whose certificate proves it.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use supervise::{Backoff, catch};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::Body;
use crate::authn::Credential;
use crate::flowcontrol::{CpuShare, FairQueue};
use crate::supervision::Supervision;

mod certificates;
mod connections;
mod write_timeout;
use certificates::AskForCertificate;
pub(crate) use connections::ConnectionHandle;
pub use connections::ConnectionLimits;
use connections::{ConnectionPermit, Connections};
use write_timeout::WriteTimeout;

/// The grace period of requests in flight when the server shuts down, or when their connection has to close.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the listener waits for file descriptors after it has closed connections.
const DESCRIPTORS_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// The first pause before connections are accepted again after a panic; it doubles.
const ACCEPT_RETRY_DELAY_MIN: Duration = Duration::from_millis(10);
/// The longest pause.
const ACCEPT_RETRY_DELAY_MAX: Duration = Duration::from_secs(1);
/// How long a client may leave the response unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Go clients run every watch over one connection.
const STREAMS_MAX: u32 = 2_000;

/// Why a listener cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The certificates do not fit together.
    #[error("set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The authority of client certificates is unusable.
    #[error("set up client certificates: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The server's TLS credentials, and the authority of client certificates.
pub struct Credentials {
    /// The server's certificate and the chain behind it.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the first certificate.
    pub key: PrivateKeyDer<'static>,
    /// The authority that signs client certificates.
    pub client_ca: CertificateDer<'static>,
}

/// Where a client's address is kept while its connection lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub std::net::IpAddr);

/// What connections share with the server that answers their requests.
pub(crate) struct Shared {
    /// Counts panics, and lets tests cause them.
    pub supervision: Arc<Supervision>,
    /// Knows the CPU share of each user.
    pub queue: FairQueue,
    /// Ends what lasts, such as watches.
    pub shutdown: CancellationToken,
}

/// The HTTPS listener of a server.
pub struct Frontend {
    acceptor: TlsAcceptor,
    verifier: Arc<dyn ClientCertVerifier>,
    limits: ConnectionLimits,
}

impl Frontend {
    /// Builds the listener from its credentials.
    pub fn new(credentials: Credentials) -> Result<Self, ServeError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(credentials.client_ca)?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AskForCertificate::new(&provider)))
            .with_single_cert(credentials.chain, credentials.key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, verifier, limits: ConnectionLimits::default() })
    }

    /// The same, with other limits for connections.
    pub fn with_limits(self, limits: ConnectionLimits) -> Self {
        Self { limits, ..self }
    }

    /// Answers requests with a service until `stop` resolves, then lets requests under way finish. Must not know
    /// what the service is.
    pub(crate) async fn run(
        self,
        listener: TcpListener,
        server: impl Answers,
        shared: Shared,
        stop: impl Future<Output = ()>,
    ) {
        let connections = Connections::new(self.limits);
        let front = Arc::new(self);
        let (tasks, draining) = (TaskTracker::new(), CancellationToken::new());
        let mut backoff = Backoff::new(ACCEPT_RETRY_DELAY_MIN, ACCEPT_RETRY_DELAY_MAX);
        tokio::pin!(stop);
        loop {
            let accepting = catch(front.accept(&listener, &server, &shared, &connections, &tasks, &draining));
            let panic = tokio::select! {
                biased;
                () = &mut stop => break,
                ended = accepting => match ended {
                    Ok(never) => match never {},
                    Err(panic) => panic,
                },
            };
            // Connections that were accepted before have tasks of their own and go on.
            shared.supervision.note_panic("accept", &listener.local_addr(), &panic);
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = tokio::time::sleep(backoff.failed()) => {}
            }
        }
        shared.shutdown.cancel();
        draining.cancel();
        tasks.close();
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, tasks.wait()).await;
    }

    /// Accepts connections, each of which gets a task.
    async fn accept(
        self: &Arc<Self>,
        listener: &TcpListener,
        server: &impl Answers,
        shared: &Shared,
        connections: &Connections,
        tasks: &TaskTracker,
        draining: &CancellationToken,
    ) -> Infallible {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    shared.supervision.inject("accept", &peer);
                    // Only administrators are connected: there is nothing to close for another.
                    let Some(permit) = connections.admit(peer.ip()) else { continue };
                    let (front, server, draining) = (self.clone(), server.clone(), draining.clone());
                    let share = CpuShare::of_unauthenticated(&shared.queue);
                    tasks.spawn(async move {
                        let connection =
                            front.connection(stream, Peer(peer.ip()), server, &share, &permit, &draining);
                        share.run(connection).await;
                    });
                }
                Err(error) => {
                    // Too many open files, most likely.
                    tracing::warn!(%error, "accept a connection");
                    connections.free_descriptors();
                    tokio::time::sleep(DESCRIPTORS_RETRY_INTERVAL).await;
                }
            }
        }
    }

    async fn connection(
        &self,
        stream: TcpStream,
        peer: Peer,
        server: impl Answers,
        share: &CpuShare,
        permit: &ConnectionPermit,
        draining: &CancellationToken,
    ) {
        // If setting TCP_NODELAY fails, only latency suffers.
        let _ = stream.set_nodelay(true);
        let handshake = tokio::time::timeout(self.limits.handshake, self.acceptor.accept(stream));
        let accepted = tokio::select! {
            biased;
            () = permit.closed() => return,
            accepted = handshake => accepted,
        };
        let Ok(Ok(stream)) = accepted else { return };
        let credential = stream.get_ref().1.peer_certificates().map(|chain| self.credential(chain));
        if let Some(Credential::Certificate { identity, .. }) = &credential {
            // If the connection limit refuses this user, the first request is answered with the error.
            let _ = permit.handle().authenticated(identity);
        }
        let (share_of_requests, handle) = (share.clone(), permit.handle().clone());
        let service = tower::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(share_of_requests.clone());
            request.extensions_mut().insert(handle.clone());
            if let Some(credential) = &credential {
                request.extensions_mut().insert(credential.clone());
            }
            let (mut server, guard) = (server.clone(), handle.begin_request());
            async move {
                let response = server.call(request).await?;
                Ok::<_, Infallible>(response.map(|body| body.holding(guard)))
            }
        });
        let builder = connection_builder(self.limits.idle, share.clone());
        let stream = TokioIo::new(WriteTimeout::new(stream, WRITE_TIMEOUT));
        let connection = builder.serve_connection_with_upgrades(stream, TowerToHyperService::new(service));
        let mut connection = pin!(connection.into_owned());
        let ended = tokio::select! {
            biased;
            () = permit.closed() => return,
            ended = connection.as_mut() => Some(ended),
            () = draining.cancelled() => None,
            () = permit.expired() => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                let Ok(ended) = tokio::time::timeout(DRAIN_TIMEOUT, connection).await else { return };
                ended
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }

    /// What a certificate chain proves: an identity, if our authority signed it for a client.
    fn credential(&self, chain: &[CertificateDer<'_>]) -> Credential {
        let verified = chain.split_first().and_then(|(end, intermediates)| {
            self.verifier.verify_client_cert(end, intermediates, UnixTime::now()).ok()?;
            certificates::subject(end)
        });
        match verified {
            Some((identity, not_after)) => Credential::Certificate { identity, not_after },
            None => Credential::UnknownAuthority,
        }
    }
}

/// A service that answers the requests of connections.
pub(crate) trait Answers:
    Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<Server> Answers for Server where
    Server: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Runs the requests of an HTTP/2 connection concurrently, each charged to the CPU share of the connection.
#[derive(Clone)]
struct Streams(CpuShare);

impl<Work> hyper::rt::Executor<Work> for Streams
where
    Work: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, work: Work) {
        tokio::spawn(self.0.run(work));
    }
}

fn connection_builder(idle: Duration, share: CpuShare) -> Builder<Streams> {
    let mut builder = Builder::new(Streams(share));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(idle);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_concurrent_streams(STREAMS_MAX)
        // Clients that cancel many watches at once are no attackers.
        .max_pending_accept_reset_streams(1_000)
        .adaptive_window(true);
    builder
}
