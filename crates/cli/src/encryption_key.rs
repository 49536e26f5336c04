//! Encryption at rest: the key file, and the keys that encrypt Secrets and Works in the store.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use store::{Encryption, OpenError};

use crate::Hint;
use crate::data_directory::private_file;

/// What holds secrets: Secrets, the credentials of members among them, and what is on its way to members.
const TABLES: [&str; 2] = ["/secrets", "work.karmada.io/works"];

/// The keys of a control plane, and of its local members.
pub struct EncryptionKey {
    keys: Vec<[u8; 32]>,
    file: PathBuf,
    is_new: bool,
}

impl EncryptionKey {
    /// Takes the keys from the file that is named or, when none is, from the data directory, where one is made if
    /// there is none.
    pub fn load(named: Option<&Path>, data_dir: &Path) -> Result<Self> {
        let file = named.map_or_else(|| data_dir.join("encryption.key"), Path::to_owned);
        if named.is_none() && !file.exists() {
            return Ok(Self { keys: vec![rand::random()], file, is_new: true });
        }
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let keys = parse(&text).with_context(|| format!("read {}", file.display()))?;
        Ok(Self { keys, file, is_new: false })
    }

    /// What the store is opened with.
    pub fn encryption(&self) -> Encryption {
        Encryption::new(&self.keys, TABLES).unwrap_or_else(Encryption::none)
    }

    /// Keeps a key that was made. Called when the store could be opened with it, and before anything is written.
    pub fn keep(&self) -> Result<()> {
        match self.is_new {
            true => private_file(&self.file, &format!("{}\n", STANDARD.encode(self.keys[0]))),
            false => Ok(()),
        }
    }

    /// What to do about a store that does not open.
    pub fn hint(&self, error: &OpenError) -> Option<Hint> {
        let OpenError::Encrypted { key, .. } = error else { return None };
        Some(Hint(format!(
            "add the key with the name {key} as another line to {}; without it the store cannot decrypt \
             these values, see docs/security.md",
            self.file.display()
        )))
    }
}

/// The keys of a file, a line each: 32 bytes in base64.
fn parse(text: &str) -> Result<Vec<[u8; 32]>> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<[u8; 32]> = lines
        .map(|(index, line)| {
            let bytes = STANDARD.decode(line).ok().and_then(|bytes| bytes.try_into().ok());
            let hint = "create a key with: head -c 32 /dev/urandom | base64";
            bytes
                .ok_or_else(|| Hint(hint.to_owned()))
                .with_context(|| format!("line {} is not a key: a key is 32 bytes in base64", index + 1))
        })
        .collect::<Result<_>>()?;
    if keys.is_empty() {
        bail!("the file contains no key");
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_lines_and_nothing_of_them_is_told() {
        let key = STANDARD.encode([7; 32]);
        assert_eq!(parse(&format!("# newest first\n{key}\n\n{key}\n")).expect("two keys").len(), 2);
        let error = parse("c2VjcmV0").expect_err("too short");
        assert!(!format!("{error:#}").contains("c2VjcmV0"), "{error:#}");
        assert!(parse("# nothing\n").is_err());
    }

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().expect("there is room for a temporary directory");
        let first = EncryptionKey::load(None, folder.path()).expect("a new key");
        assert!(!folder.path().join("encryption.key").exists(), "not before the store is open");
        first.keep().expect("kept");
        let second = EncryptionKey::load(None, folder.path()).expect("the same key");
        assert_eq!((first.keys, second.is_new), (second.keys, false));
        let missing = EncryptionKey::load(Some(&folder.path().join("nowhere")), folder.path());
        assert!(missing.is_err(), "a file that is named has to be there");
    }
}
