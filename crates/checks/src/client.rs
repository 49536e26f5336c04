//! A minimal HTTPS client with full control over the request, for tests and benchmarks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What opens connections: an address and the credentials of a kubeconfig.
#[derive(Clone)]
pub struct ApiClient {
    address: String,
    tls: Arc<ClientConfig>,
    /// What the server's certificate has to say.
    name: ServerName<'static>,
}

/// One HTTP/1.1 connection.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

impl ApiClient {
    /// Reads address and certificates from a kubeconfig that `longshore up` wrote.
    pub fn open(kubeconfig: &Path) -> Self {
        Self::with_credentials_of(kubeconfig, kubeconfig)
    }

    /// The server of one context, approached with the only credentials in the file.
    pub fn of_context(kubeconfig: &Path, name: &str) -> Self {
        let text = std::fs::read_to_string(kubeconfig).expect("the kubeconfig can be read");
        let from =
            text.find(&format!("- name: {name}\n")).unwrap_or_else(|| panic!("{name} in the kubeconfig"));
        let server = text[from..].lines().find_map(|line| line.trim().strip_prefix("server: https://"));
        Self { address: server.expect("a cluster has a server").to_owned(), ..Self::open(kubeconfig) }
    }

    /// The server of one kubeconfig, approached with the certificate of another.
    pub fn with_credentials_of(kubeconfig: &Path, other: &Path) -> Self {
        let certificate = CertificateDer::from_pem_slice(&pem(other, "client-certificate-data:"));
        let key = PrivateKeyDer::from_pem_slice(&pem(other, "client-key-data:"));
        let tls = builder(authority(kubeconfig))
            .with_client_auth_cert(vec![certificate.expect("a certificate")], key.expect("a key"))
            .expect("certificate and key fit");
        Self { address: address(kubeconfig), tls: Arc::new(tls), name: localhost() }
    }

    /// The same server, approached without a certificate.
    pub fn anonymous(kubeconfig: &Path) -> Self {
        let tls = builder(authority(kubeconfig)).with_no_client_auth();
        Self { address: address(kubeconfig), tls: Arc::new(tls), name: localhost() }
    }

    /// The same server by another name, which its certificate has to say.
    #[must_use]
    pub fn called(self, name: &str) -> Self {
        Self { name: ServerName::try_from(name.to_owned()).expect("a host name or an address"), ..self }
    }

    /// Opens a connection.
    pub async fn connect(&self) -> std::io::Result<Connection> {
        let tcp = TcpStream::connect(&self.address).await?;
        tcp.set_nodelay(true)?;
        let tls = TlsConnector::from(self.tls.clone()).connect(self.name.clone(), tcp).await?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(tls)).await.map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        Ok(Connection { sender })
    }

    /// One request on a connection of its own.
    pub async fn request(&self, method: Method, path: &str, body: impl Into<Bytes>) -> (StatusCode, Value) {
        let mut connection = self.connect().await.expect("the server accepts connections");
        connection.json(method, path, body).await.expect("the server answers")
    }

    /// So many requests, numbered from 0, from several clients at once; each has to be answered as expected.
    pub async fn crowd<B: Into<Bytes>>(
        &self,
        clients: usize,
        count: usize,
        request: impl Fn(usize) -> (Method, String, B, StatusCode) + Send + Sync + 'static,
    ) {
        let (request, next) = (Arc::new(request), Arc::new(AtomicUsize::new(0)));
        let clients = (0..clients).map(|_| {
            let (api_client, request, next) = (self.clone(), request.clone(), next.clone());
            tokio::spawn(async move {
                let mut connection = api_client.connect().await.expect("a connection");
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let (method, path, body, expected) = request(number);
                    let body: Bytes = body.into();
                    let (status, answer) = connection.raw(method, &path, body).await.expect("an answer");
                    assert_eq!(status, expected, "{answer:?}");
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("no client fails");
        }
    }
}

fn field(kubeconfig: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(kubeconfig).expect("the kubeconfig can be read");
    let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name} in the kubeconfig")).trim().to_owned()
}

fn pem(kubeconfig: &Path, name: &str) -> Vec<u8> {
    STANDARD.decode(field(kubeconfig, name)).expect("credentials are base64")
}

fn authority(kubeconfig: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(&pem(kubeconfig, "certificate-authority-data:")).expect("an authority")
}

fn address(kubeconfig: &Path) -> String {
    field(kubeconfig, "server:").trim_start_matches("https://").to_owned()
}

fn builder(
    authority: CertificateDer<'static>,
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("an authority");
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows current protocols")
        .with_root_certificates(roots)
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a host name")
}

impl Connection {
    /// Sends a request and gives the response with its body still to be read.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, hyper::Error> {
        self.sender.ready().await?;
        self.sender.send_request(request).await
    }

    /// Sends a JSON body and gives status and body.
    pub async fn raw(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<(StatusCode, Bytes), hyper::Error> {
        let content = match method == Method::PATCH {
            true => "application/merge-patch+json",
            false => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::HOST, "localhost")
            .header(http::header::CONTENT_TYPE, content)
            .body(Full::new(body.into()))
            .expect("a well-formed request");
        let response = self.send(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }

    /// Sends a JSON body and gives status and the JSON that came back.
    pub async fn json(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<(StatusCode, Value), hyper::Error> {
        let (status, bytes) = self.raw(method, path, body).await?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }
}
