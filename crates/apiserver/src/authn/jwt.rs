//! Service account tokens: JSON web tokens that this server signs (ES256) and verifies. Says whether a token is ours
//! and what it claims, not whether the claims still hold.

use std::collections::HashMap;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::{Value, json};
use supervise::Recovered as _;

/// How many verified tokens are remembered, so that a signature is checked once and not with every request.
const REMEMBERED_MAX: usize = 4_096;
/// What stands before the point in the DER of a public key on P-256.
const PUBLIC_KEY_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the key of service account tokens is no P-256 key in PKCS #8")]
pub struct KeyError;

/// The keys of the server's tokens: it signs with the first and knows the tokens of all.
pub struct TokenKeys {
    issuer: String,
    random: SystemRandom,
    keys: Vec<(String, EcdsaKeyPair)>,
    /// Tokens whose signature was right, by digest; held for moments.
    remembered: Mutex<HashMap<Vec<u8>, Claims>>,
}

/// What a token says, as far as it is used here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Claims {
    #[serde(rename = "iss")]
    pub issuer: String,
    #[serde(rename = "aud", default)]
    pub audiences: Vec<String>,
    #[serde(rename = "sub", default)]
    pub subject: String,
    #[serde(rename = "jti", default)]
    pub id: String,
    #[serde(rename = "exp", default)]
    pub expires: i64,
    #[serde(rename = "nbf", default)]
    pub not_before: i64,
    #[serde(rename = "kubernetes.io")]
    pub bound: Bound,
}

/// What a token is bound to: gone with any of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Bound {
    pub namespace: String,
    #[serde(rename = "serviceaccount")]
    pub account: Reference,
    pub pod: Option<Reference>,
    pub secret: Option<Reference>,
    pub node: Option<Reference>,
}

/// An object by name and uid.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Reference {
    pub name: String,
    #[serde(default)]
    pub uid: String,
}

impl TokenKeys {
    /// The issuer that tokens name, which is also the audience of this server.
    pub const ISSUER: &str = "https://kubernetes.default.svc";

    /// Takes keys in PKCS #8 (DER); the first one signs.
    pub fn new<'a>(issuer: &str, keys: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let read = |pkcs8: &'a [u8]| {
            let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random);
            key.map(|key| (key_id(key.public_key().as_ref()), key)).map_err(|_| KeyError)
        };
        let keys: Vec<(String, EcdsaKeyPair)> = keys.into_iter().map(read).collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(KeyError);
        }
        Ok(Self { issuer: issuer.to_owned(), random, keys, remembered: Mutex::default() })
    }

    /// A new key in PKCS #8 (DER).
    pub fn generate() -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        key.map(|key| key.as_ref().to_vec()).map_err(|_| KeyError)
    }

    /// Keys that end with this process, and so do their tokens.
    pub fn ephemeral() -> Result<Self, KeyError> {
        Self::new(Self::ISSUER, [Self::generate()?.as_slice()])
    }

    /// The audiences that this server answers to.
    pub(crate) fn audiences(&self) -> Vec<String> {
        vec![self.issuer.clone()]
    }

    /// Signs claims; the issuer is added.
    pub(crate) fn sign(&self, mut claims: Value) -> Result<String, KeyError> {
        let (id, key) = self.keys.first().ok_or(KeyError)?;
        claims["iss"] = self.issuer.as_str().into();
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&json!({ "alg": "ES256", "kid": id })), encode(&claims));
        let signature = key.sign(&self.random, text.as_bytes()).map_err(|_| KeyError)?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())))
    }

    /// What a token claims, if this server signed it.
    pub(crate) fn verify(&self, token: &str) -> Result<Claims, String> {
        let name = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
        let known = self.remembered.lock().recovered().get(&name).cloned();
        if let Some(claims) = known {
            return Ok(claims);
        }
        let claims = self.verify_signature(token)?;
        let mut remembered = self.remembered.lock().recovered();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(name, claims.clone());
        Ok(claims)
    }

    fn verify_signature(&self, token: &str) -> Result<Claims, String> {
        let invalid = || "invalid bearer token".to_owned();
        let (signed, signature) = token.rsplit_once('.').ok_or_else(invalid)?;
        let (header, payload) = signed.split_once('.').ok_or_else(invalid)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| invalid());
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| invalid())?;
        // The client controls the header: it may select one of our keys, never the algorithm they are used with.
        if header.algorithm != "ES256" {
            return Err(invalid());
        }
        let candidates: Vec<&EcdsaKeyPair> = match header.key_id.as_deref() {
            Some(wanted) => self.keys.iter().filter(|(id, _)| id == wanted).map(|(_, key)| key).collect(),
            None => self.keys.iter().map(|(_, key)| key).collect(),
        };
        let signature = decode(signature)?;
        let is_right = |key: &&EcdsaKeyPair| {
            let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref());
            public.verify(signed.as_bytes(), &signature).is_ok()
        };
        if !candidates.iter().any(is_right) {
            return Err("invalid signature".to_owned());
        }
        let claims: Claims = serde_json::from_slice(&decode(payload)?).map_err(|_| invalid())?;
        match claims.issuer == self.issuer {
            true => Ok(claims),
            false => Err(invalid()),
        }
    }

    /// The public keys, for other servers that verify tokens.
    pub(crate) fn key_set(&self) -> Value {
        let entries = self.keys.iter().map(|(id, key)| {
            let point = key.public_key().as_ref();
            let part =
                |from: usize, to: usize| URL_SAFE_NO_PAD.encode(point.get(from..to).unwrap_or_default());
            json!({
                "use": "sig", "kty": "EC", "kid": id, "crv": "P-256", "alg": "ES256",
                "x": part(1, 33), "y": part(33, 65),
            })
        });
        json!({ "keys": entries.collect::<Vec<_>>() })
    }

    /// The issuer that tokens name.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }
}

#[derive(Deserialize)]
struct Header {
    #[serde(rename = "alg")]
    algorithm: String,
    #[serde(rename = "kid")]
    key_id: Option<String>,
}

/// The name of a key: the digest of its public half, as Kubernetes names keys.
fn key_id(point: &[u8]) -> String {
    let der = [PUBLIC_KEY_PREFIX.as_slice(), point].concat();
    URL_SAFE_NO_PAD.encode(digest(&SHA256, &der).as_ref())
}

#[cfg(test)]
mod tests;
