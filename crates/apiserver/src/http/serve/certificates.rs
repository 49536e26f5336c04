//! Client certificates: the server requests one from every client. A certificate of an unknown authority is accepted
//! in the handshake and ignored for authentication, so that the client gets a 401 and not a broken connection.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::authn::Identity;

/// Requests a certificate and checks that the client holds its key; the authority is checked later.
#[derive(Debug)]
pub struct AskForCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AskForCertificate {
    /// Uses the signature algorithms of a provider.
    pub fn new(provider: &CryptoProvider) -> Self {
        Self { algorithms: provider.signature_verification_algorithms }
    }
}

impl ClientCertVerifier for AskForCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// User and groups as Kubernetes reads them: common name and organisations. Also says when the certificate ends, in
/// seconds.
pub fn subject(certificate: &CertificateDer<'_>) -> Option<(Identity, i64)> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let text =
        |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| attribute.as_str().ok().map(str::to_owned);
    let user = subject.iter_common_name().next().and_then(text)?;
    let groups: Vec<String> = subject.iter_organization().filter_map(text).collect();
    let mut identity = Identity::named(&user, groups.iter().map(String::as_str));
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let key = "authentication.kubernetes.io/credential-id".to_owned();
    identity.extra.insert(key, vec![format!("X509SHA256={digest}")]);
    Some((identity, parsed.validity().not_after.timestamp()))
}
