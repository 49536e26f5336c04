//! Test certificates, and a client that presents them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType,
};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A certificate authority.
pub struct Authority {
    pub certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub struct Shown {
    pub certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Shown {
    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.clone()).expect("a key")
    }
}

fn named(name: &str, groups: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).expect("no names to get wrong");
    params.distinguished_name.push(DnType::CommonName, name);
    groups.iter().for_each(|group| params.distinguished_name.push(DnType::OrganizationName, *group));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.extended_key_usages = Vec::new();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    fn sign(&self, params: CertificateParams) -> Shown {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Shown { certificate: certificate.der().clone(), key: key.serialize_der() }
    }

    /// A certificate of a client.
    pub fn client(&self, name: &str, groups: &[&str]) -> Shown {
        self.sign(named(name, groups))
    }

    /// One that was good until yesterday.
    pub fn expired(&self, name: &str, groups: &[&str]) -> Shown {
        let mut params = named(name, groups);
        let days = |days: u64| SystemTime::now() - Duration::from_secs(days * 86_400);
        params.not_before = days(3).into();
        params.not_after = days(1).into();
        self.sign(params)
    }

    /// A certificate of a server on this machine.
    pub fn server(&self) -> Shown {
        let mut params = named("server", &["system:masters"]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
        self.sign(params)
    }
}

/// A self-signed client certificate.
pub fn self_signed(name: &str, groups: &[&str]) -> Shown {
    let key = KeyPair::generate().expect("a key");
    let certificate = named(name, groups).self_signed(&key).expect("a certificate");
    Shown { certificate: certificate.der().clone(), key: key.serialize_der() }
}

/// Shakes hands with a server, showing a certificate or none.
pub async fn connect(
    address: SocketAddr,
    trusted: &Authority,
    shown: Option<&Shown>,
) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(address).await.expect("the server listens");
    shake_hands(stream, config(trusted, shown).into()).await
}

/// Shakes hands with a server to speak HTTP/2.
pub async fn connect_http2(address: SocketAddr, trusted: &Authority) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(address).await.expect("the server listens");
    over_http2(stream, trusted).await
}

/// Shakes hands over a connection to speak HTTP/2.
pub async fn over_http2(stream: TcpStream, trusted: &Authority) -> TlsStream<TcpStream> {
    let mut config = config(trusted, None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    shake_hands(stream, config.into()).await
}

async fn shake_hands(stream: TcpStream, config: Arc<ClientConfig>) -> TlsStream<TcpStream> {
    stream.set_nodelay(true).expect("small things are sent at once, as clients do");
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    tokio_rustls::TlsConnector::from(config).connect(name, stream).await.expect("a handshake")
}

fn config(trusted: &Authority, shown: Option<&Shown>) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.certificate.der().clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder =
        builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
    match shown {
        None => builder.with_no_client_auth(),
        Some(shown) => builder
            .with_client_auth_cert(vec![shown.certificate.clone()], shown.key())
            .expect("a certificate"),
    }
}

/// Asks one thing and reads the answer.
pub async fn ask(stream: TlsStream<TcpStream>, request: Request<Full<Bytes>>) -> (u16, String) {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    let driven = tokio::spawn(connection);
    let response = sender.send_request(request).await.expect("an answer");
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a whole answer").to_bytes();
    driven.abort();
    (code, String::from_utf8_lossy(&body).into_owned())
}
