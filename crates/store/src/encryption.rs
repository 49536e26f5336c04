//! Encryption at rest: AES-256-GCM for the values of some tables, with keys that the caller passes in. In memory, and
//! for readers, values are plaintext. Knows tables by name only, not what they hold.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::StorageError;

/// How a sealed value begins. No JSON does.
const MAGIC: &[u8; 7] = b"\0LSEAL1";
const ID_BYTES: usize = 8;

/// Keys, and the tables whose values they seal. The first key seals, every key opens.
pub struct Encryption {
    keys: Vec<([u8; ID_BYTES], LessSafeKey)>,
    tables: BTreeSet<String>,
    random: SystemRandom,
    /// Set once something was read that the first key should have sealed and did not.
    stale: AtomicBool,
}

/// Why a sealed value cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It was sealed with a key of this name, which is not there.
    Unknown(String),
    /// The key of this name is there and does not fit: the value was changed, or moved.
    Changed(String),
}

impl Encryption {
    /// Seals nothing, and opens nothing that is sealed.
    pub fn none() -> Encryption {
        Encryption {
            keys: Vec::new(),
            tables: BTreeSet::new(),
            random: SystemRandom::new(),
            stale: AtomicBool::new(false),
        }
    }

    /// Seals the values of these tables with the first of these keys; none if there is no key.
    pub fn new<'t>(keys: &[[u8; 32]], tables: impl IntoIterator<Item = &'t str>) -> Option<Encryption> {
        let named = keys
            .iter()
            .map(|key| Some((id(key), LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?))));
        let keys: Vec<_> = named.collect::<Option<_>>()?;
        let tables = tables.into_iter().map(str::to_owned).collect();
        (!keys.is_empty()).then(|| Encryption { keys, tables, ..Encryption::none() })
    }

    /// The name of a key, as errors print it; reveals nothing of the key.
    pub fn key_name(key: &[u8; 32]) -> String {
        name(&id(key))
    }

    /// A value as it goes to disk.
    pub(crate) fn close<'v>(
        &self,
        table: &str,
        key: &str,
        value: &'v [u8],
    ) -> Result<Cow<'v, [u8]>, StorageError> {
        let Some((id, secret)) = self.keys.first().filter(|_| self.tables.contains(table)) else {
            return Ok(Cow::Borrowed(value));
        };
        let failed = || StorageError::new("encrypt a value", std::io::Error::other("no randomness"));
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| failed())?;
        let mut body = value.to_vec();
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        secret.seal_in_place_append_tag(nonce_used, place(table, key), &mut body).map_err(|_| failed())?;
        let mut encrypted = Vec::with_capacity(MAGIC.len() + ID_BYTES + NONCE_LEN + body.len());
        for part in [MAGIC.as_slice(), id, &nonce, &body] {
            encrypted.extend_from_slice(part);
        }
        Ok(Cow::Owned(encrypted))
    }

    /// A value as it came from disk.
    pub(crate) fn decrypt<'v>(
        &self,
        table: &str,
        key: &str,
        stored: &'v [u8],
    ) -> Result<Cow<'v, [u8]>, Refusal> {
        let Some(encrypted) = stored.strip_prefix(MAGIC) else {
            if self.tables.contains(table) {
                self.stale.store(true, Ordering::Relaxed);
            }
            return Ok(Cow::Borrowed(stored));
        };
        let cut_off = || Refusal::Changed("?".to_owned());
        let (id, rest) = encrypted.split_first_chunk::<ID_BYTES>().ok_or_else(cut_off)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>().ok_or_else(cut_off)?;
        let Some(position) = self.keys.iter().position(|(known, _)| known == id) else {
            return Err(Refusal::Unknown(name(id)));
        };
        if position > 0 || !self.tables.contains(table) {
            self.stale.store(true, Ordering::Relaxed);
        }
        let mut body = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.keys[position].1.open_in_place(nonce, place(table, key), &mut body);
        let length = opened.map_err(|_| Refusal::Changed(name(id)))?.len();
        body.truncate(length);
        Ok(Cow::Owned(body))
    }

    /// Whether something on disk is not sealed as it would be now.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }
}

/// Binds a value to its key, so that it cannot be passed off as another's.
fn place(table: &str, key: &str) -> Aad<Vec<u8>> {
    Aad::from([table.as_bytes(), b"\0", key.as_bytes()].concat())
}

fn id(key: &[u8; 32]) -> [u8; ID_BYTES] {
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(&digest(&SHA256, key).as_ref()[..ID_BYTES]);
    id
}

fn name(id: &[u8; ID_BYTES]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_opens_with_its_key_in_its_place_only() {
        let encryption = Encryption::new(&[[1; 32]], ["secrets"]).expect("a key");
        let encrypted = encryption.close("secrets", "a", b"hidden").expect("sealed").into_owned();
        assert!(!encrypted.windows(6).any(|part| part == b"hidden"));
        assert_eq!(encryption.decrypt("secrets", "a", &encrypted), Ok(Cow::Borrowed(b"hidden".as_slice())));
        let changed = || Err(Refusal::Changed(Encryption::key_name(&[1; 32])));
        assert_eq!(encryption.decrypt("secrets", "b", &encrypted), changed(), "another key");
        assert_eq!(encryption.decrypt("maps", "a", &encrypted), changed(), "another table");
        let mut broken = encrypted.clone();
        broken[40] ^= 1;
        assert_eq!(encryption.decrypt("secrets", "a", &broken), changed());
        let unknown = Err(Refusal::Unknown(Encryption::key_name(&[1; 32])));
        assert_eq!(Encryption::none().decrypt("secrets", "a", &encrypted), unknown);
        for end in 0..encrypted.len() {
            assert_ne!(
                encryption.decrypt("secrets", "a", &encrypted[..end]).as_deref(),
                Ok(b"hidden".as_slice())
            );
        }
        let again = encryption.close("secrets", "a", b"hidden").expect("sealed");
        assert_ne!(again, encrypted, "the same value never looks the same");
        assert_eq!(encryption.close("maps", "a", b"plain").expect("as it is"), b"plain".as_slice());
    }

    #[test]
    fn older_keys_open_and_make_it_stale() {
        let old = Encryption::new(&[[1; 32]], ["secrets"]).expect("a key");
        let encrypted = old.close("secrets", "a", b"hidden").expect("sealed").into_owned();
        let new = Encryption::new(&[[2; 32], [1; 32]], ["secrets"]).expect("keys");
        let fresh = new.close("secrets", "a", b"hidden").expect("sealed").into_owned();
        assert!(new.decrypt("secrets", "a", &fresh).is_ok() && !new.is_stale());
        assert!(new.decrypt("secrets", "a", &encrypted).is_ok() && new.is_stale());
        assert!(old.decrypt("secrets", "a", b"plain").is_ok() && old.is_stale(), "what was never sealed");
        assert!(Encryption::new(&[], ["secrets"]).is_none());
    }
}
