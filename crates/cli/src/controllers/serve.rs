//! Sockets: with or without TLS, one task per connection. A certificate can be changed while it is in use.

use std::convert::Infallible;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::answers::Answers;
use super::keys::Kept;

/// How long a client may take to shake hands or to send the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The certificate that is shown. Clones show the same one.
#[derive(Clone, Debug)]
pub struct Shown(Arc<RwLock<Arc<CertifiedKey>>>);

impl Shown {
    /// Shows this one.
    pub fn new(kept: &Kept) -> Result<Self> {
        Ok(Self(Arc::new(RwLock::new(certified(kept)?))))
    }

    /// From now on shows another one.
    pub fn change(&self, kept: &Kept) -> Result<()> {
        *self.0.write().expect("no one panics while holding it") = certified(kept)?;
        Ok(())
    }

    /// What shakes hands with it.
    pub fn acceptor(&self) -> Result<TlsAcceptor> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config =
            config.context("set up TLS")?.with_no_client_auth().with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().expect("no one panics while holding it").clone())
    }
}

fn certified(kept: &Kept) -> Result<Arc<CertifiedKey>> {
    let certificate = CertificateDer::from_pem_slice(kept.server.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(kept.server.key.as_bytes()).context("read the webhooks' key")?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key).context("use the webhooks' key")?;
    let chain = vec![certificate.context("read the webhooks' certificate")?];
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}

/// Answers whoever connects, until `stop`.
pub async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    answers: Answers,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, most likely: give connections time to end.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Failing to set it costs latency only.
        let _ = stream.set_nodelay(true);
        let (acceptor, answers) = (acceptor.clone(), answers.clone());
        tokio::spawn(async move {
            match acceptor {
                None => connection(stream, answers).await,
                Some(acceptor) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
                        connection(stream, answers).await;
                    }
                }
            }
        });
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, answers: Answers) {
    let service = service_fn(move |request| {
        let answers = answers.clone();
        async move { Ok::<_, Infallible>(answers.answer(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A client that goes away in the middle has nothing to be told.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}
