//! The certificates of one real cluster: its certificate authority, the serving certificate of its API server, and
//! client certificates of its administrator and its controllers.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

/// A certificate with its key, both in PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// The certificates of one cluster.
pub struct Certificates {
    pub authority: String,
    pub administrator: Pair,
}

impl Certificates {
    /// Makes all of them, and leaves those that servers read in the directory: `ca.crt`, `ca.key`, `server.crt`,
    /// `server.key`, `accounts.key` and `accounts.pub`.
    pub fn make(name: &str, directory: &Path) -> Result<Self> {
        let mut authority = params(&format!("{name}-ca"), "");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().context("make a key")?;
        let certificate = authority.self_signed(&key).context("sign the authority")?.pem();
        let write = |file: &str, text: &str| {
            std::fs::write(directory.join(file), text).with_context(|| format!("write {file}"))
        };
        write("ca.crt", &certificate)?;
        write("ca.key", &key.serialize_pem())?;
        let accounts = KeyPair::generate().context("make a key")?;
        write("accounts.key", &accounts.serialize_pem())?;
        write("accounts.pub", &accounts.public_key_pem())?;
        let issuer = Issuer::new(authority, key);
        let mut server = params("kube-apiserver", "");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.subject_alt_names = vec![
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            SanType::DnsName("localhost".try_into()?),
        ];
        let server = sign(server, &issuer)?;
        write("server.crt", &server.certificate)?;
        write("server.key", &server.key)?;
        let mut administrator = params("administrator", "system:masters");
        administrator.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let administrator = sign(administrator, &issuer)?;
        Ok(Self { authority: certificate, administrator })
    }
}

fn sign(mut params: CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<Pair> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().context("make a key")?;
    let certificate = params.signed_by(&key, issuer).context("sign a certificate")?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn params(common_name: &str, organisation: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    if !organisation.is_empty() {
        params.distinguished_name.push(DnType::OrganizationName, organisation);
    }
    params
}
