//! The HTTPS client for admission and conversion webhooks; it trusts the CA bundle of the webhook's configuration.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use store::Store;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

mod address;

pub(crate) use address::Address;
use address::Destination;

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Sends a review to a webhook and reads the answer; what goes wrong is said in a sentence.
pub(crate) async fn call(address: &Address, store: &Store, review: String) -> Result<Bytes, String> {
    let destination = address.destination(store)?;
    post(&destination, &address.authority, review).await
}

async fn post(to: &Destination, authority: &[u8], question: String) -> Result<Bytes, String> {
    let url = &to.url;
    let failed = |error: &dyn std::fmt::Display| format!("Post {url:?}: {error}");
    let Some((host, port)) = to.hosts.first() else { return Err(failed(&"there is nowhere to connect to")) };
    let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| failed(&error))?;
    let name = ServerName::try_from(to.name.clone()).map_err(|error| failed(&error))?;
    let connector = TlsConnector::from(Arc::new(config(authority)?));
    let stream = connector.connect(name, stream).await.map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let request = Request::post(to.path.as_str())
        .header(header::HOST, to.authority.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Full::new(Bytes::from(question)))
        .map_err(|error| failed(&error))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| failed(&error))?.to_bytes();
        match status.is_success() {
            true => Ok(body),
            false => Err(failed(&format!("the answer is {status}"))),
        }
    };
    tokio::pin!(exchange);
    tokio::pin!(connection);
    // The connection is driven here and ends with the exchange, so that nothing is left behind.
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        ended = &mut connection => {
            ended.map_err(|error| failed(&error))?;
            exchange.await
        }
    }
}

fn config(authority: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        let certificate = certificate.map_err(|error| format!("the caBundle is unusable: {error}"))?;
        roots.add(certificate).map_err(|error| format!("the caBundle is unusable: {error}"))?;
    }
    if roots.is_empty() {
        return Err("the webhook needs a clientConfig.caBundle".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("set up TLS: {error}"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
