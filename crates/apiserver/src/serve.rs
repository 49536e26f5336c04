//! The server on the network: TLS always, HTTP/1.1 and HTTP/2, and an identity only for those whose
//! client certificate proves it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::audit::Peer;
use crate::auth::Proof;
use crate::limits::Payer;
use crate::server::ApiServer;

mod certificates;
mod stall;
use certificates::AskForCertificate;
use stall::Impatient;

/// How long a client may take to shake hands.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client of HTTP/1.1 may take until the head of its next request is there, as long as kube-apiserver lets a
/// connection rest: one that rests between requests cannot be told from one that is slow.
const REST: Duration = Duration::from_secs(90);
/// How long requests under way may take when the server shuts down.
const DRAIN: Duration = Duration::from_secs(5);
/// How long a client may leave what is sent to it unread.
const UNREAD: Duration = Duration::from_secs(60);
/// More connections wait until others end.
const CONNECTIONS_MAX: usize = 10_000;
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

/// What the server shows to clients, and whom it believes.
pub struct Credentials {
    /// The server's certificate and the chain behind it.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the first certificate.
    pub key: PrivateKeyDer<'static>,
    /// The authority that signs client certificates.
    pub client_ca: CertificateDer<'static>,
}

/// A TLS front for a server.
pub struct Frontend {
    acceptor: TlsAcceptor,
    verifier: Arc<dyn ClientCertVerifier>,
    patience: Duration,
    rest: Duration,
}

impl Frontend {
    /// Makes the front from its credentials.
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
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), verifier, patience: PATIENCE, rest: REST })
    }

    /// The same, with another idea of how long a client may take to shake hands, and until the head of its next request
    /// is there.
    pub fn patience(self, patience: Duration, rest: Duration) -> Self {
        Self { patience, rest, ..self }
    }

    /// Serves until `stop` resolves, then lets requests under way finish.
    pub async fn serve(self, listener: TcpListener, server: ApiServer, stop: impl Future<Output = ()>) {
        let front = Arc::new(self);
        let graceful = Arc::new(GracefulShutdown::new());
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        tokio::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = accept(&listener, &room) => match accepted {
                    Ok((stream, peer, place)) => {
                        let (front, server, graceful) = (front.clone(), server.clone(), graceful.clone());
                        tokio::spawn(async move {
                            let _place = place;
                            let payer = server.payer();
                            let connection = front.connection(stream, Peer(peer.ip()), server, &graceful, &payer);
                            payer.pays_for(connection).await;
                        });
                    }
                    Err(error) => {
                        // Too many open files, most likely: give connections time to end.
                        tracing::warn!(%error, "accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        server.shut_down();
        if let Ok(graceful) = Arc::try_unwrap(graceful).map_err(drop) {
            let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
        }
    }

    async fn connection(
        &self,
        stream: TcpStream,
        peer: Peer,
        server: ApiServer,
        graceful: &GracefulShutdown,
        payer: &Payer,
    ) {
        // Failing to set it costs latency only.
        let _ = stream.set_nodelay(true);
        let handshake = tokio::time::timeout(self.patience, self.acceptor.accept(stream));
        let Ok(Ok(stream)) = handshake.await else { return };
        let proof = stream.get_ref().1.peer_certificates().map(|chain| self.proof(chain));
        let asking = payer.clone();
        let service = tower::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(asking.clone());
            if let Some(proof) = &proof {
                request.extensions_mut().insert(proof.clone());
            }
            let mut server = server.clone();
            tower::Service::call(&mut server, request)
        });
        let builder = connection_builder(self.rest, payer.clone());
        let stream = TokioIo::new(Impatient::new(stream, UNREAD));
        let connection = builder.serve_connection_with_upgrades(stream, TowerToHyperService::new(service));
        if let Err(error) = graceful.watch(connection.into_owned()).await {
            tracing::debug!(%error, "connection ended");
        }
    }

    /// What a certificate chain proves: an identity, if our authority signed it for a client.
    fn proof(&self, chain: &[CertificateDer<'_>]) -> Proof {
        let believed = chain.split_first().and_then(|(end, intermediates)| {
            self.verifier.verify_client_cert(end, intermediates, UnixTime::now()).ok()?;
            certificates::subject(end)
        });
        match believed {
            Some((identity, not_after)) => Proof::Certificate { identity, not_after },
            None => Proof::Stranger,
        }
    }
}

/// The next connection, as soon as there is room for one.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = room.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

/// Runs the requests of an HTTP/2 connection side by side, each paid for as the connection is.
#[derive(Clone)]
struct Streams(Payer);

impl<Work> hyper::rt::Executor<Work> for Streams
where
    Work: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, work: Work) {
        tokio::spawn(self.0.pays_for(work));
    }
}

fn connection_builder(rest: Duration, payer: Payer) -> Builder<Streams> {
    let mut builder = Builder::new(Streams(payer));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(rest);
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
