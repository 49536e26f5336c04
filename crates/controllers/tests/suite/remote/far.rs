//! A member on the network with TLS and token authentication, and a proxy in front of it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use apiserver::authn::Identity;
use apiserver::body::Body;
use apiserver::{ApiServer, InProcess};
use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A member on the network.
pub struct Far {
    /// Where it is.
    pub endpoint: String,
    /// Whom to trust, in PEM.
    pub authority: String,
    token: Arc<Mutex<String>>,
}

impl Far {
    /// Serves on a port of its own, to those who have this token.
    pub async fn serve(server: &ApiServer, token: &str) -> Self {
        let names = ["127.0.0.1".to_owned()];
        let own = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config.with_no_client_auth().with_single_cert(vec![own.cert.der().clone()], key)
            })
            .expect("they fit together");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("https://{}", listener.local_addr().expect("it has one"));
        let token = Arc::new(Mutex::new(token.to_owned()));
        let (server, accepted) = (server.trusting(Identity::internal("far")), token.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(acceptor.clone(), stream, server.clone(), accepted.clone()));
            }
        });
        Self { endpoint, authority: own.cert.pem(), token }
    }

    /// Believes another token from now on, and the old one no longer.
    pub fn believe(&self, token: &str) {
        token.clone_into(&mut self.token.lock().expect("no one panics while holding it"));
    }
}

async fn connection(acceptor: TlsAcceptor, stream: TcpStream, server: InProcess, token: Arc<Mutex<String>>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let (mut server, token) = (server.clone(), token.clone());
        async move {
            let wanted = format!("Bearer {}", token.lock().expect("no one panics while holding it"));
            let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
            match shown == Some(wanted.as_str()) {
                true => tower::Service::call(&mut server, request).await,
                false => Ok::<_, Infallible>(unauthorized()),
            }
        }
    });
    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

fn unauthorized() -> Response<Body> {
    let status = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401,
    });
    let mut response = Response::new(Body::full(status.to_string()));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response
}

/// A proxy that tunnels; its address, and how many went through.
pub async fn proxy() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("it has one"));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(tunnel(stream));
        }
    });
    (address, count)
}

async fn tunnel(mut near: TcpStream) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(near.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut far = TcpStream::connect(head.strip_prefix("CONNECT ")?.split(' ').next()?).await.ok()?;
    near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await.ok().map(drop)
}
