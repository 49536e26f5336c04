//! Authentication and authorization of the control plane: the flags of `longshore up` for it, and the keys in the data
//! directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use apiserver::audit::{Audit, AuditFile, AuditPolicy, Rotation};
use apiserver::authn::{StaticTokens, TokenKeys};
use apiserver::{Limits, Security, StorageLimits};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::Hint;
use crate::data_directory::private_file;

/// Flags about who gets in.
#[derive(clap::Args)]
#[command(next_help_heading = "Security")]
pub struct SecurityFlags {
    /// File with static bearer tokens, one per line: token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// Maximum lifetime of service account tokens, such as 24h or 90m; the server shortens longer ones, with a warning
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = token_life)]
    service_account_max_token_expiration: i64,
    /// File with the keys for encryption at rest of Secrets and Works, one per line; the first key encrypts, all of
    /// them decrypt [default: encryption.key in the data directory]
    #[arg(long, value_name = "FILE")]
    pub encryption_key_file: Option<PathBuf>,
    /// Audit log file, one audit.k8s.io/v1 Event per line
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,
    /// File with an audit.k8s.io/v1 Policy [default: log every write, without request and response bodies]
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,
    /// Size in megabytes at which the audit log is rotated
    #[arg(long, value_name = "MB", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    audit_log_maxsize: u64,
    /// Number of rotated audit logs to keep
    #[arg(long, value_name = "N", default_value_t = 10)]
    audit_log_maxbackup: usize,
}

impl SecurityFlags {
    /// The security settings of the API server. Its token signing keys are kept in the directory, if there is one.
    pub fn security(&self, directory: Option<&Path>, storage: StorageLimits) -> Result<Security> {
        let tokens = self.token_auth_file.as_deref().map(read_tokens).transpose()?.unwrap_or_default();
        let keys = match directory {
            None => TokenKeys::ephemeral().context("create the key for service account tokens")?,
            Some(directory) => kept_keys(&directory.join("sa.key"))?,
        };
        let (roles, audit) = (Some(plane::roles::roles()), self.audit()?);
        let token_seconds_max = Some(self.service_account_max_token_expiration);
        Ok(Security { tokens, keys, roles, audit, limits: Limits::default(), storage, token_seconds_max })
    }

    fn audit(&self) -> Result<Option<Arc<Audit>>> {
        let Some(path) = &self.audit_log_path else { return Ok(None) };
        let policy = match &self.audit_policy_file {
            None => AuditPolicy::changes(),
            Some(file) => {
                let text =
                    std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
                AuditPolicy::parse(&text).with_context(|| format!("use {}", file.display()))?
            }
        };
        let rotation = Rotation { bytes_max: self.audit_log_maxsize << 20, kept: self.audit_log_maxbackup };
        let file = AuditFile::open(path, rotation).with_context(|| format!("open {}", path.display()))?;
        Ok(Some(Arc::new(Audit::new(policy, file))))
    }
}

/// The seconds of a duration that a token may live; kube-apiserver takes none below an hour.
pub fn token_life(text: &str) -> Result<i64, String> {
    let duration: jiff::SignedDuration = text.parse().map_err(|_| "write it as 24h or 90m".to_owned())?;
    match duration.as_secs() {
        3_600..=0x1_0000_0000 => Ok(duration.as_secs()),
        _ => Err("a lifetime between 1h and 2^32 seconds is needed".to_owned()),
    }
}

fn read_tokens(file: &Path) -> Result<StaticTokens> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    StaticTokens::parse(&text).with_context(|| format!("read {}", file.display()))
}

/// The keys in a file, the first of which signs; a new one if there is no file.
fn kept_keys(file: &Path) -> Result<TokenKeys> {
    let damaged = |what: String| {
        let hint = "restore the file, or remove it to create a new key (which revokes all tokens of service \
             accounts)";
        anyhow::Error::new(Hint(hint.to_owned())).context(what).context(format!("use {}", file.display()))
    };
    if !file.exists() {
        let key = TokenKeys::generate().context("create the key for service account tokens")?;
        private_file(file, &pem(&key))?;
    }
    let keys: Vec<PrivatePkcs8KeyDer<'_>> = PrivatePkcs8KeyDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|_| damaged("it contains no private keys in PEM".to_owned()))?;
    let keys = keys.iter().map(|key| key.secret_pkcs8_der());
    TokenKeys::new(TokenKeys::ISSUER, keys).map_err(|error| damaged(error.to_string()))
}

fn pem(key: &[u8]) -> String {
    let text = STANDARD.encode(key);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lives_for_an_hour_or_more() {
        assert_eq!(token_life("24h"), Ok(86_400));
        assert_eq!(token_life("90m"), Ok(5_400));
        assert!(
            token_life("59m").is_err() && token_life("a day").is_err() && token_life("9999999h").is_err()
        );
    }

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let folder = tempfile::tempdir().expect("there is room for a temporary directory");
        let file = folder.path().join("sa.key");
        kept_keys(&file).expect("a new key");
        let first = std::fs::read_to_string(&file).expect("the file");
        kept_keys(&file).expect("the same key");
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), first);
        std::fs::write(&file, "no key").expect("the directory takes files");
        let refused = kept_keys(&file).err().map(|error| format!("{error:#}"));
        assert!(refused.is_some_and(|text| text.starts_with("use ")), "a damaged key is not replaced");
    }
}
