//! The servers' sockets: with or without TLS, one task per connection, a connection limit and graceful shutdown.
//! Certificates are reloaded while in use.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use supervise::Recovered as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::answers::{Answers, Client};
use super::keys::Kept;

/// How long a client may take to shake hands or to send the head of a request.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// How many connections a port takes at once.
const CONNECTIONS_MAX: usize = 512;
/// How long responses in flight may take after the listener stopped accepting connections.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The certificate that is shown. Clones show the same one.
#[derive(Clone, Debug)]
pub struct ServingCertificate(Arc<RwLock<Arc<CertifiedKey>>>);

impl ServingCertificate {
    /// Shows this one.
    pub fn new(kept: &Kept) -> Result<Self> {
        Ok(Self(Arc::new(RwLock::new(kept.certified()?))))
    }

    /// From now on shows another one.
    pub fn change(&self, kept: &Kept) -> Result<()> {
        *self.0.write().recovered() = kept.certified()?;
        Ok(())
    }

    /// What shakes hands with it. A client may show a certificate of these authorities; another one is refused.
    pub fn acceptor(&self, authorities: Option<RootCertStore>) -> Result<TlsAcceptor> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let config = config.context("set up TLS")?;
        let config = match authorities {
            None => config.with_no_client_auth(),
            Some(authorities) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider);
                // A client without a certificate may have a token.
                let verifier = verifier.allow_unauthenticated().build();
                config.with_client_cert_verifier(verifier.context("set up client certificates")?)
            }
        };
        let mut config = config.with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Reads the authorities whose certificates clients may show, in PEM.
pub fn client_authorities(file: &Path) -> Result<RootCertStore> {
    let mut authorities = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file);
    for certificate in certificates.with_context(|| format!("read {}", file.display()))? {
        let certificate = certificate.with_context(|| format!("read a certificate of {}", file.display()))?;
        authorities.add(certificate).with_context(|| format!("use a certificate of {}", file.display()))?;
    }
    match authorities.is_empty() {
        true => bail!("{} has no certificate in PEM", file.display()),
        false => Ok(authorities),
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().recovered().clone())
    }
}

/// Accepts and serves connections until `stop`, then shuts down gracefully: clients send their next request elsewhere.
pub async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    answers: Answers,
    stop: CancellationToken,
) {
    let open = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, most likely: give connections time to end.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Dropped, and with it closed: API servers do not open so many connections.
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        // Failing to set it costs latency only.
        let _ = stream.set_nodelay(true);
        let (acceptor, answers, watcher) = (acceptor.clone(), answers.clone(), open.watcher());
        tokio::spawn(async move {
            let _place = place;
            match acceptor {
                None => connection(stream, Client { is_certified: false }, answers, watcher).await,
                Some(acceptor) => {
                    if let Ok(Ok(stream)) =
                        tokio::time::timeout(HEADER_READ_TIMEOUT, acceptor.accept(stream)).await
                    {
                        let is_certified = stream.get_ref().1.peer_certificates().is_some();
                        connection(stream, Client { is_certified }, answers, watcher).await;
                    }
                }
            }
        });
    }
    // The listener is closed: new connections are refused at once, and the client finds another replica.
    drop(listener);
    // Connections that take longer are closed.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, open.shutdown()).await;
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: Client,
    answers: Answers,
    watcher: Watcher,
) {
    let service = service_fn(move |request| {
        let answers = answers.clone();
        async move { Ok::<_, Infallible>(answers.answer(client, request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
    // A client that goes away in the middle has nothing to be told.
    let _ = watcher.watch(builder.serve_connection(TokioIo::new(stream), service)).await;
}

#[cfg(test)]
mod tests {
    use controllers::ctx::{Ctx, Members};
    use controllers::gates::FeatureGates;
    use controllers::rest::Rest;
    use kube::client::Body;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::super::answers::Health;
    use super::*;

    /// Answers of a replica that knows everything.
    fn answers(ending: CancellationToken) -> Answers {
        let nobody = tower::service_fn(|_: http::Request<Body>| async {
            Ok::<_, Infallible>(http::Response::new(Body::empty()))
        });
        let control = Rest::new(kube::Client::new(nobody, "default"));
        let now = Arc::new(jiff::Timestamp::now);
        let ctx = Ctx::new(control, Members::default(), FeatureGates::default(), now);
        ctx.cache.note_synced();
        Answers::Health(Box::new(Health { ctx, ending }))
    }

    /// The status of another request over the same connection.
    async fn readiness(stream: &mut TcpStream) -> String {
        status(stream, "GET /readyz").await
    }

    async fn status(stream: &mut TcpStream, request: &str) -> String {
        let request = format!("{request} HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is open");
        let mut answer = vec![0; 1_000];
        let length = stream.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..length]).chars().skip("HTTP/1.1 ".len()).take(3).collect()
    }

    #[tokio::test]
    async fn who_is_about_to_end_says_so_and_answers_until_then() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let (ending, stop) = (CancellationToken::new(), CancellationToken::new());
        let served = tokio::spawn(serve(listener, None, answers(ending.clone()), stop.clone()));
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        assert_eq!(readiness(&mut stream).await, "200");
        ending.cancel();
        assert_eq!(readiness(&mut stream).await, "503");
        let mut late = TcpStream::connect(address).await.expect("it listens still");
        assert_eq!(readiness(&mut late).await, "503");
        stop.cancel();
        let begun = std::time::Instant::now();
        served.await.expect("it ends");
        assert!(
            begun.elapsed() < DRAIN_TIMEOUT,
            "nobody waits for connections on which nothing is under way"
        );
        assert_eq!(stream.read(&mut [0; 1]).await.expect("it was closed"), 0);
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn the_plain_port_reviews_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let (answers, stop) = (answers(CancellationToken::new()), CancellationToken::new());
        let served = tokio::spawn(serve(listener, None, answers, stop.clone()));
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        for path in [plane::webhooks::MUTATE, plane::webhooks::VALIDATE] {
            assert_eq!(status(&mut stream, &format!("POST {path}")).await, "404", "{path}");
        }
        for path in ["/healthz", "/livez", "/metrics"] {
            assert_eq!(status(&mut stream, &format!("GET {path}")).await, "200", "{path}");
        }
        stop.cancel();
        served.await.expect("it ends");
    }
}
