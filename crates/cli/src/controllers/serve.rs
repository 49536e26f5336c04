//! Sockets: with or without TLS, one task per connection. A certificate can be changed while it is in use.

use std::convert::Infallible;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
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
/// How long answers that are under way may take when nobody is accepted any more.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// The certificate that is shown. Clones show the same one.
#[derive(Clone, Debug)]
pub struct Shown(Arc<RwLock<Arc<CertifiedKey>>>);

impl Shown {
    /// Shows this one.
    pub fn new(kept: &Kept) -> Result<Self> {
        Ok(Self(Arc::new(RwLock::new(kept.certified()?))))
    }

    /// From now on shows another one.
    pub fn change(&self, kept: &Kept) -> Result<()> {
        *self.0.write().expect("no one panics while holding it") = kept.certified()?;
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

/// Answers whoever connects, until `stop`; clients are told then to go elsewhere with their next request.
pub async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    answers: Answers,
    stop: CancellationToken,
) {
    let open = GracefulShutdown::new();
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
        // Failing to set it costs latency only.
        let _ = stream.set_nodelay(true);
        let (acceptor, answers, watcher) = (acceptor.clone(), answers.clone(), open.watcher());
        tokio::spawn(async move {
            match acceptor {
                None => connection(stream, answers, watcher).await,
                Some(acceptor) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
                        connection(stream, answers, watcher).await;
                    }
                }
            }
        });
    }
    // Who connects now is refused at once and finds another replica.
    drop(listener);
    // Who takes longer is cut off.
    let _ = tokio::time::timeout(LAST_ANSWERS, open.shutdown()).await;
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answers: Answers,
    watcher: Watcher,
) {
    let service = service_fn(move |request| {
        let answers = answers.clone();
        async move { Ok::<_, Infallible>(answers.answer(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A client that goes away in the middle has nothing to be told.
    let _ = watcher.watch(builder.serve_connection(TokioIo::new(stream), service)).await;
}

#[cfg(test)]
mod tests {
    use controllers::ctx::{Ctx, Members};
    use controllers::gates::Switches;
    use controllers::rest::Rest;
    use kube::client::Body;
    use plane::outlook::Outlook;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// Answers of a replica that knows everything.
    fn answers() -> Answers {
        let nobody = tower::service_fn(|_: http::Request<Body>| async {
            Ok::<_, Infallible>(http::Response::new(Body::empty()))
        });
        let control = Rest::new(kube::Client::new(nobody, "default"));
        let now = Arc::new(jiff::Timestamp::now);
        let ctx = Ctx::new(control, Members::default(), Switches::default(), now);
        ctx.view.note_complete();
        let reviewer = super::super::reviewer(Switches::default(), Outlook::default());
        Answers { ctx, reviewer, ending: CancellationToken::new() }
    }

    /// The status of another request over the same connection.
    async fn readiness(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: here\r\n\r\n").await.expect("it is open");
        let mut answer = vec![0; 1_000];
        let length = stream.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..length]).chars().skip("HTTP/1.1 ".len()).take(3).collect()
    }

    #[tokio::test]
    async fn who_is_about_to_end_says_so_and_answers_until_then() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let (answers, stop) = (answers(), CancellationToken::new());
        let served = tokio::spawn(serve(listener, None, answers.clone(), stop.clone()));
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        assert_eq!(readiness(&mut stream).await, "200");
        answers.ending.cancel();
        assert_eq!(readiness(&mut stream).await, "503");
        let mut late = TcpStream::connect(address).await.expect("it listens still");
        assert_eq!(readiness(&mut late).await, "503");
        stop.cancel();
        let begun = std::time::Instant::now();
        served.await.expect("it ends");
        assert!(begun.elapsed() < LAST_ANSWERS, "nobody waits for connections on which nothing is under way");
        assert_eq!(stream.read(&mut [0; 1]).await.expect("it was closed"), 0);
        assert!(TcpStream::connect(address).await.is_err());
    }
}
