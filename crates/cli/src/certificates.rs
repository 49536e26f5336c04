//! The control plane's own certificate authority, and what it signs: the server's certificate and the
//! administrator's. Everything is kept in the data directory and reused.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, DnsName, PrivateKeyDer};

use crate::Hint;
use crate::data_directory::private_file;

mod subject;

/// How long certificates are valid: ten years for the authority, one for what it signs.
pub const AUTHORITY_DAYS: i64 = 3_650;
/// See [`AUTHORITY_DAYS`].
pub const LEAF_DAYS: i64 = 365;

/// A certificate with its key, both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Everything that `up` needs to serve and to let the administrator in.
pub struct Certificates {
    /// The authority, as clients trust it.
    pub authority: String,
    /// What the server shows.
    pub server: Pair,
    /// What the administrator shows.
    pub administrator: Pair,
}

impl Certificates {
    /// Takes the authority from the directory or makes one, and signs fresh certificates with it.
    /// The server is called by these names, too.
    pub fn load_or_make(directory: &Path, names: &[String]) -> Result<Self> {
        let authority = load(directory)?.map_or_else(make_authority, Ok)?;
        private_file(&directory.join("ca.key"), &authority.key)?;
        private_file(&directory.join("ca.crt"), &authority.certificate)?;
        Self::signed_by(&authority, names)
    }

    /// A certificate from a new authority that is never stored.
    pub fn ephemeral(names: &[String]) -> Result<Self> {
        Self::signed_by(&make_authority()?, names)
    }

    fn signed_by(authority: &Pair, names: &[String]) -> Result<Self> {
        let issuer = issuer(authority)?;
        let usual = ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"];
        let names = usual.into_iter().chain(names.iter().map(String::as_str));
        let names = names.map(subject_name).collect::<Result<Vec<SanType>>>()?;
        Ok(Self {
            authority: authority.certificate.clone(),
            server: server_certificate(&issuer, "longshore-apiserver", names)
                .context("sign the server's certificate")?,
            administrator: administrator_certificate(&issuer)
                .context("sign the administrator's certificate")?,
        })
    }

    /// The certificates as the server takes them.
    pub fn credentials(&self) -> Result<apiserver::Credentials> {
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).context("read a certificate");
        Ok(apiserver::Credentials {
            chain: vec![der(&self.server.certificate)?],
            key: PrivateKeyDer::from_pem_slice(self.server.key.as_bytes())
                .context("read the server's key")?,
            client_ca: der(&self.authority)?,
        })
    }
}

/// The authority that the directory holds; none if there is none yet.
pub fn load(directory: &Path) -> Result<Option<Pair>> {
    let read = |name: &str| match std::fs::read_to_string(directory.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("read {}", directory.join(name).display())),
    };
    let (Some(certificate), Some(key)) = (read("ca.crt")?, read("ca.key")?) else { return Ok(None) };
    let pair = Pair { certificate, key };
    let hint = format!(
        "the file is damaged; remove ca.crt and ca.key in {} to make a new authority (clients then need the new kubeconfig)",
        directory.display()
    );
    Certificates::signed_by(&pair, &[]).map_err(|error| {
        anyhow::Error::new(Hint(hint))
            .context(format!("{error:#}"))
            .context(format!("use {}", directory.join("ca.crt").display()))
    })?;
    Ok(Some(pair))
}

/// A certificate for a server that is called by these names or addresses.
pub fn server_pair(authority: &Pair, names: &[String]) -> Result<Pair> {
    let names = names.iter().map(|name| subject_name(name)).collect::<Result<_>>()?;
    server_certificate(&issuer(authority)?, "longshore-webhook", names)
}

/// A certificate by which its owner is this user in these groups, for as long as it lasts.
pub fn client_pair(authority: &Pair, user: &str, groups: &[&str], lifetime: Duration) -> Result<Pair> {
    let (first, more) = groups.split_at(groups.len().min(1));
    let pair = client_certificate(&issuer(authority)?, user, first, lifetime)?;
    if more.is_empty() {
        return Ok(pair);
    }
    let made = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).context("read the certificate")?;
    let key = KeyPair::from_pem(&authority.key).context("read the authority's key")?;
    let certificate = subject::with_organisations(&made, more, &key)?;
    Ok(Pair { certificate: pem(&certificate), ..pair })
}

/// A certificate in PEM, in lines of 64 characters.
fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines: String =
        text.as_bytes().chunks(64).map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect();
    format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n")
}

/// How a certificate says a name or an address.
fn subject_name(name: &str) -> Result<SanType> {
    Ok(match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => {
            // A certificate may say that it is good for every name below one.
            DnsName::try_from(name.strip_prefix("*.").unwrap_or(name))
                .with_context(|| format!("use {name:?} as a name of the server"))?;
            SanType::DnsName(name.try_into().with_context(|| format!("use {name:?} as a name"))?)
        }
    })
}

fn issuer(authority: &Pair) -> Result<Issuer<'static, KeyPair>> {
    let key = KeyPair::from_pem(&authority.key).context("read the authority's key")?;
    Issuer::from_ca_cert_pem(&authority.certificate, key).context("read the authority")
}

/// A new authority.
pub fn make_authority() -> Result<Pair> {
    let mut params = params("longshore-ca", &[], days(AUTHORITY_DAYS))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().context("make a key")?;
    let certificate = params.self_signed(&key).context("sign the authority")?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn server_certificate(issuer: &Issuer<'_, KeyPair>, common_name: &str, names: Vec<SanType>) -> Result<Pair> {
    let mut params = params(common_name, &[], days(LEAF_DAYS))?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.subject_alt_names = names;
    sign(params, issuer)
}

fn administrator_certificate(issuer: &Issuer<'_, KeyPair>) -> Result<Pair> {
    client_certificate(issuer, "longshore-admin", &["system:masters"], days(LEAF_DAYS))
}

fn client_certificate(
    issuer: &Issuer<'_, KeyPair>,
    user: &str,
    groups: &[&str],
    lifetime: Duration,
) -> Result<Pair> {
    let mut params = params(user, groups, lifetime)?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    sign(params, issuer)
}

fn sign(params: CertificateParams, issuer: &Issuer<'_, KeyPair>) -> Result<Pair> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// So many days.
pub fn days(count: i64) -> Duration {
    Duration::from_secs(count.unsigned_abs() * 86_400)
}

/// What all certificates have in common. Of several organisations only the last would be written.
fn params(common_name: &str, organisations: &[&str], lifetime: Duration) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    for organisation in organisations {
        params.distinguished_name.push(DnType::OrganizationName, *organisation);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // An hour back, for clients whose clocks are behind.
    let now = SystemTime::now();
    params.not_before = (now - Duration::from_secs(3_600)).into();
    params.not_after = (now + lifetime).into();
    Ok(params)
}
