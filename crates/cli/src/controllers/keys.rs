//! The certificates of the webhooks: an authority and what it signed, kept in a Secret that all replicas share, made
//! anew long before they run out.

use anyhow::{Context as _, Result};
use controllers::rest::{Collection, Error, Rest};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::certificates::{AUTHORITY_DAYS, LEAF_DAYS, Pair, make_authority, server_pair};

/// The Secret that has them.
const SECRET: &str = "longshore-webhook-certificates";
/// When the server's certificate is made anew.
const RENEW: &str = "longshore.io/renew-after";
/// When the authority is made anew.
const RENEW_AUTHORITY: &str = "longshore.io/renew-authority-after";
/// Whom the server's certificate is for.
const NAMES: &str = "longshore.io/names";
/// How often somebody may be faster before that is an error.
const TRIES: u32 = 5;

/// Where the certificates are kept, and whom they are for.
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
    /// Everybody that clients should believe: the authority, and the one before it.
    pub bundle: String,
    renew: Timestamp,
    renew_authority: Timestamp,
    names: String,
}

impl Keys {
    /// The certificates to use now; what is missing, or old, is made and kept.
    pub async fn current(&self, now: Timestamp) -> Result<Kept> {
        let collection = Collection::new("v1", "secrets", &self.namespace);
        let path = collection.object(SECRET);
        for _ in 0..TRIES {
            let found: Option<Value> = self.control.get(&path).await?;
            let before = found.as_ref().and_then(read);
            let kept = next(before.as_ref(), &self.names.join(","), now)?;
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
        anyhow::bail!("others change the Secret {SECRET} all the time")
    }

    fn secret(&self, kept: &Kept, version: Option<&str>) -> Value {
        let bytes = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": SECRET,
                "namespace": self.namespace,
                "annotations": {
                    RENEW: kept.renew.to_string(),
                    RENEW_AUTHORITY: kept.renew_authority.to_string(),
                    NAMES: kept.names,
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
        renew: annotation(RENEW)?.parse().ok()?,
        renew_authority: annotation(RENEW_AUTHORITY)?.parse().ok()?,
        names: annotation(NAMES)?.to_owned(),
    })
}

/// What should be kept: the same as before, unless it gets old or is for somebody else.
fn next(before: Option<&Kept>, names: &str, now: Timestamp) -> Result<Kept> {
    // A third of the time is left for whatever goes wrong.
    let after = |days: i64| {
        now.checked_add(SignedDuration::from_hours(days * 24 * 2 / 3)).context("the clock is far off")
    };
    let (authority, bundle, renew_authority) = match before.filter(|before| now < before.renew_authority) {
        Some(before) => (before.authority.clone(), before.bundle.clone(), before.renew_authority),
        None => {
            let authority = make_authority()?;
            let earlier = before.map_or("", |before| before.authority.certificate.as_str());
            let bundle = format!("{}{earlier}", authority.certificate);
            (authority, bundle, after(AUTHORITY_DAYS)?)
        }
    };
    let stays = |before: &&Kept| {
        now < before.renew && before.names == names && before.authority.certificate == authority.certificate
    };
    let (server, renew) = match before.filter(stays) {
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
        let first = next(None, "a,127.0.0.1", day(0)).expect("they can be made");
        assert_eq!(next(Some(&first), "a,127.0.0.1", day(200)).expect("they are kept"), first);
        let renewed = next(Some(&first), "a,127.0.0.1", day(300)).expect("they can be made");
        assert_ne!(renewed.server, first.server);
        assert_eq!((&renewed.authority, &renewed.bundle), (&first.authority, &first.bundle));
    }

    #[test]
    fn another_name_needs_another_certificate() {
        let first = next(None, "a", day(0)).expect("they can be made");
        let other = next(Some(&first), "b", day(0)).expect("they can be made");
        assert_ne!(other.server, first.server);
        assert_eq!(other.authority, first.authority);
    }

    #[test]
    fn the_authority_before_is_believed_a_while_longer() {
        let first = next(None, "a", day(0)).expect("they can be made");
        let later = next(Some(&first), "a", day(3_000)).expect("they can be made");
        assert_ne!((&later.authority, &later.server), (&first.authority, &first.server));
        assert!(later.bundle.contains(&first.authority.certificate));
        assert!(later.bundle.contains(&later.authority.certificate));
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
        let first = next(None, "a", day(0)).expect("they can be made");
        assert_eq!(keys(&first), Some(first));
    }
}
