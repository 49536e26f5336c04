//! The serving certificates of the webhooks: a certificate authority and what it signed, in a Secret that all replicas
//! share, rotated long before they expire.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use controllers::rest::{Collection, Error, Rest};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};

use crate::certificates::{AUTHORITY_DAYS, LEAF_DAYS, Pair, make_authority, server_pair};

/// The name of the Secret.
pub const SECRET: &str = "longshore-webhook-certificates";
/// When the serving certificate is renewed.
const RENEW_AFTER: &str = "longshore.io/renew-after";
/// When the CA is renewed.
const RENEW_AUTHORITY_AFTER: &str = "longshore.io/renew-authority-after";
/// The names that the serving certificate is for.
const NAMES_ANNOTATION: &str = "longshore.io/names";
/// How much earlier than its creation the validity of a certificate begins, as `certificates` sets it.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);
/// How many write conflicts with other replicas are tolerated.
const CONFLICT_RETRIES_MAX: u32 = 5;

/// The Secret with the certificates, and the names that they are for.
pub struct Keys {
    /// The API server that keeps them.
    pub control: Rest,
    /// The namespace of the Secret.
    pub namespace: String,
    /// The names by which the API server calls the webhooks.
    pub names: Vec<String>,
}

/// What is in the Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The authority that signs.
    authority: Pair,
    /// What the server shows.
    pub server: Pair,
    /// The CA bundle for clients: the authority, and the previous one.
    pub bundle: String,
    renew: Timestamp,
    renew_authority: Timestamp,
    names: String,
}

impl Kept {
    /// What the server shows, as TLS takes it.
    pub fn certified(&self) -> Result<Arc<CertifiedKey>> {
        let certificate = CertificateDer::from_pem_slice(self.server.certificate.as_bytes());
        let key =
            PrivateKeyDer::from_pem_slice(self.server.key.as_bytes()).context("read the webhooks' key")?;
        let chain = vec![certificate.context("read the webhooks' certificate")?];
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider).context("use the webhooks' key")?;
        Ok(Arc::new(certified))
    }

    /// Whether it can do what it is for, which something that others wrote may not.
    fn is_usable(&self) -> bool {
        let is_believed = self.bundle.contains(&self.authority.certificate);
        is_believed && self.certified().is_ok() && server_pair(&self.authority, &[]).is_ok()
    }
}

impl Keys {
    /// The certificates to use now, after those `in_use`; what is missing, damaged or old is made and kept.
    pub async fn current(&self, in_use: Option<&Kept>, now: Timestamp) -> Result<Kept> {
        let collection = Collection::new("v1", "secrets", &self.namespace);
        let path = collection.object(SECRET);
        for _ in 0..CONFLICT_RETRIES_MAX {
            let found: Option<Value> = self.control.get(&path).await?;
            let before = found.as_ref().and_then(read).filter(Kept::is_usable);
            let kept = next(before.as_ref(), in_use, &self.names.join(","), now)?;
            if before.as_ref() == Some(&kept) {
                return Ok(kept);
            }
            let version = found.as_ref().and_then(|found| found["metadata"]["resourceVersion"].as_str());
            let secret = self.secret(&kept, version);
            let written = match version {
                None => self.control.create(&collection, &secret).await,
                Some(_) => self.control.replace(&path, &secret).await,
            };
            match written {
                Ok(_) => return Ok(kept),
                // Another replica was faster: what it made is as good.
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        anyhow::bail!("the Secret {SECRET} keeps changing")
    }

    fn secret(&self, kept: &Kept, version: Option<&str>) -> Value {
        let bytes = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": SECRET,
                "namespace": self.namespace,
                "labels": { api::labels::SYSTEM: api::labels::TRUE },
                "annotations": {
                    RENEW_AFTER: kept.renew.to_string(),
                    RENEW_AUTHORITY_AFTER: kept.renew_authority.to_string(),
                    NAMES_ANNOTATION: kept.names,
                },
            },
            "data": {
                "ca.crt": bytes(&kept.authority.certificate),
                "ca.key": bytes(&kept.authority.key),
                "tls.crt": bytes(&kept.server.certificate),
                "tls.key": bytes(&kept.server.key),
                "bundle.crt": bytes(&kept.bundle),
            },
        });
        if let Some(version) = version {
            secret["metadata"]["resourceVersion"] = version.into();
        }
        secret
    }
}

/// What a Secret says; none if it is not as we wrote it.
fn read(secret: &Value) -> Option<Kept> {
    let text = |key: &str| {
        let bytes: ByteString = serde_json::from_value(secret["data"][key].clone()).ok()?;
        String::from_utf8(bytes.0).ok()
    };
    let annotation = |key: &str| secret["metadata"]["annotations"][key].as_str();
    let pair = |name: &str| {
        Some(Pair { certificate: text(&format!("{name}.crt"))?, key: text(&format!("{name}.key"))? })
    };
    Some(Kept {
        authority: pair("ca")?,
        server: pair("tls")?,
        bundle: text("bundle.crt")?,
        renew: annotation(RENEW_AFTER)?.parse().ok()?,
        renew_authority: annotation(RENEW_AUTHORITY_AFTER)?.parse().ok()?,
        names: annotation(NAMES_ANNOTATION)?.to_owned(),
    })
}

/// How long what is valid for so many days is used: a third of the time is left for whatever goes wrong.
fn used_for(days: i64) -> SignedDuration {
    SignedDuration::from_hours(days * 24 * 2 / 3)
}

/// Whether a certificate with this rotation time is usable now: not due for rotation, and not made by a clock that was
/// ahead, in which case it would not be valid yet.
fn is_good(renew: Timestamp, days: i64, now: Timestamp) -> bool {
    let begins = renew.checked_sub(used_for(days) + BACKDATED);
    now < renew && begins.is_ok_and(|begins| begins <= now)
}

/// The certificates to keep: the same as before, unless they get old or are for other names.
fn next(before: Option<&Kept>, in_use: Option<&Kept>, names: &str, now: Timestamp) -> Result<Kept> {
    let after = |days: i64| now.checked_add(used_for(days)).context("the system clock is out of range");
    let authority_stays = |before: &&Kept| is_good(before.renew_authority, AUTHORITY_DAYS, now);
    let (authority, bundle, renew_authority) = match before.filter(authority_stays) {
        Some(before) => (before.authority.clone(), before.bundle.clone(), before.renew_authority),
        None => {
            let authority = make_authority()?;
            // Other replicas serve certificates of the previous authority until they reload the Secret. If the Secret
            // is gone, the previous authority is the one that this replica uses.
            let earlier = before.or(in_use).map_or("", |before| before.authority.certificate.as_str());
            let bundle = format!("{}{earlier}", authority.certificate);
            (authority, bundle, after(AUTHORITY_DAYS)?)
        }
    };
    let server_stays = |before: &&Kept| {
        let is_ours = before.names == names && before.authority.certificate == authority.certificate;
        is_ours && is_good(before.renew, LEAF_DAYS, now)
    };
    let (server, renew) = match before.filter(server_stays) {
        Some(before) => (before.server.clone(), before.renew),
        None => {
            let all: Vec<String> = names.split(',').map(str::to_owned).collect();
            (server_pair(&authority, &all).context("sign the webhooks' certificate")?, after(LEAF_DAYS)?)
        }
    };
    Ok(Kept { authority, server, bundle, renew, renew_authority, names: names.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * (20_000 + number))
    }

    #[test]
    fn certificates_are_kept_until_a_third_of_their_time_is_left() {
        let first = next(None, None, "a,127.0.0.1", day(0)).expect("they can be made");
        assert_eq!(next(Some(&first), None, "a,127.0.0.1", day(200)).expect("they are kept"), first);
        let renewed = next(Some(&first), None, "a,127.0.0.1", day(300)).expect("they can be made");
        assert_ne!(renewed.server, first.server);
        assert_eq!((&renewed.authority, &renewed.bundle), (&first.authority, &first.bundle));
    }

    #[test]
    fn another_name_needs_another_certificate() {
        let first = next(None, None, "a", day(0)).expect("they can be made");
        let other = next(Some(&first), None, "b", day(0)).expect("they can be made");
        assert_ne!(other.server, first.server);
        assert_eq!(other.authority, first.authority);
    }

    #[test]
    fn the_authority_before_is_believed_a_while_longer() {
        let first = next(None, None, "a", day(0)).expect("they can be made");
        let later = next(Some(&first), None, "a", day(3_000)).expect("they can be made");
        assert_ne!((&later.authority, &later.server), (&first.authority, &first.server));
        assert!(later.bundle.contains(&first.authority.certificate));
        assert!(later.bundle.contains(&later.authority.certificate));
    }

    #[test]
    fn the_authority_in_use_stays_in_the_bundle_after_its_secret_is_deleted() {
        let first = next(None, None, "a", day(0)).expect("they can be made");
        let other = next(None, Some(&first), "a", day(1)).expect("they can be made");
        assert_ne!((&other.authority, &other.server), (&first.authority, &first.server));
        assert!(other.bundle.contains(&first.authority.certificate) && other.is_usable());
    }

    #[test]
    fn what_a_clock_that_was_ahead_made_is_made_anew() {
        let first = next(None, None, "a", day(10)).expect("they can be made");
        let a_little = day(10) - SignedDuration::from_mins(30);
        assert_eq!(next(Some(&first), Some(&first), "a", a_little).expect("they are kept"), first);
        let anew = next(Some(&first), Some(&first), "a", day(9)).expect("they can be made");
        assert_ne!((&anew.authority, &anew.server), (&first.authority, &first.server));
        assert!(anew.bundle.contains(&first.authority.certificate));
        assert_eq!(next(Some(&anew), Some(&first), "a", day(9)).expect("they are kept"), anew);
    }

    #[test]
    fn what_is_damaged_is_of_no_use() {
        let first = next(None, None, "a", day(0)).expect("they can be made");
        let other = next(None, None, "a", day(0)).expect("they can be made");
        assert!(first.is_usable());
        let damaged = [
            Kept { server: Pair { key: other.server.key.clone(), ..first.server.clone() }, ..first.clone() },
            Kept { server: Pair { certificate: String::new(), ..first.server.clone() }, ..first.clone() },
            Kept { authority: Pair { key: "no key".to_owned(), ..first.authority.clone() }, ..first.clone() },
            Kept { bundle: other.bundle, ..first.clone() },
        ];
        assert!(damaged.iter().all(|damaged| !damaged.is_usable()));
    }

    #[test]
    fn what_is_kept_is_what_is_read() {
        let keys = |kept: &Kept| {
            let keys = Keys {
                control: Rest::new(kube::Client::new(
                    tower::service_fn(|_: http::Request<kube::client::Body>| async {
                        Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
                    }),
                    "default",
                )),
                namespace: "n".to_owned(),
                names: Vec::new(),
            };
            read(&keys.secret(kept, Some("7")))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let _entered = runtime.enter();
        let first = next(None, None, "a", day(0)).expect("they can be made");
        assert_eq!(keys(&first), Some(first));
    }
}
