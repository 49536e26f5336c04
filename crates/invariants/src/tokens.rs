//! Tokens: only a token that the keys signed authenticates a user, the user that it was signed for, and an accepted
//! token file authenticates the tokens in it and no other.

use std::sync::LazyLock;

use apiserver::authn::{StaticTokens, TokenKeys};
use apiserver::fuzzing::{signed_token, token_subject};
use serde_json::Value;

use crate::{json, lines};

static KEYS: LazyLock<TokenKeys> = LazyLock::new(|| TokenKeys::ephemeral().expect("a key can be made"));

pub fn invariant(input: &[u8]) {
    let Some([first, rest]) = lines(input) else { return };
    // The fuzzer does not have the key, so it cannot produce a signed token.
    assert!(token_subject(&KEYS, first).is_err(), "{first:?} is believed");
    if let Some(claims @ Value::Object(_)) = json(first) {
        signed(claims, rest);
    }
    let _ = StaticTokens::parse(std::str::from_utf8(input).unwrap_or_default());
}

fn signed(claims: Value, rest: &str) {
    let Some(token) = signed_token(&KEYS, claims.clone()) else { return };
    if let Ok(user) = token_subject(&KEYS, &token) {
        assert_eq!(claims.get("sub").and_then(Value::as_str).unwrap_or_default(), user);
    }
    let Ok(place) = rest.trim().parse::<usize>() else { return };
    let mut changed = token.clone().into_bytes();
    let length = changed.len();
    let byte = &mut changed[place % length];
    *byte = if *byte == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).expect("tokens are plain letters");
    assert!(token_subject(&KEYS, &changed).is_err(), "{changed:?} is believed, {place} changed");
}
