//! Tokens that are ours, and everything that only looks like it.

use proptest::prelude::*;

use super::*;

fn claims() -> Value {
    json!({
        "aud": ["a"], "sub": "s", "exp": 9, "jti": "j",
        "kubernetes.io": { "namespace": "n", "serviceaccount": { "name": "x", "uid": "u" } },
    })
}

#[test]
fn a_token_is_known_by_the_keys_that_signed_it() {
    let old = TokenKeys::generate().expect("a key");
    let new = TokenKeys::generate().expect("a key");
    let before = TokenKeys::new("me", [old.as_slice()]).expect("keys");
    let after = TokenKeys::new("me", [new.as_slice(), old.as_slice()]).expect("keys");
    let token = before.sign(claims()).expect("a token");
    assert_eq!(after.verify(&token).expect("an old token").subject, "s");
    let token = after.sign(claims()).expect("a token");
    assert!(before.verify(&token).is_err(), "a key it does not have");
    let elsewhere = TokenKeys::new("you", [old.as_slice()]).expect("keys");
    assert!(before.verify(&elsewhere.sign(claims()).expect("a token")).is_err(), "another issuer");
    assert!(TokenKeys::new("me", []).is_err());
    assert!(TokenKeys::new("me", [b"no key".as_slice()]).is_err());
}

#[test]
fn a_header_cannot_weaken_the_check() {
    let keys = TokenKeys::ephemeral().expect("keys");
    let token = keys.sign(claims()).expect("a token");
    let (_, rest) = token.split_once('.').expect("three parts");
    let (payload, signature) = rest.split_once('.').expect("three parts");
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    for header in [json!({ "alg": "none" }), json!({ "alg": "HS256" }), json!({ "alg": "ES384" })] {
        assert!(keys.verify(&format!("{}.{payload}.{signature}", encode(header.clone()))).is_err());
        assert!(keys.verify(&format!("{}.{payload}.", encode(header))).is_err());
    }
    let mut forged = claims();
    forged["kubernetes.io"]["namespace"] = "kube-system".into();
    let (header, _) = token.split_once('.').expect("three parts");
    assert!(keys.verify(&format!("{header}.{}.{signature}", encode(forged))).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_a_token_by_chance(text in "[A-Za-z0-9_.-]{0,200}") {
        prop_assert!(TokenKeys::ephemeral().expect("keys").verify(&text).is_err());
    }

    #[test]
    fn one_changed_letter_is_another_token(at in 0usize..400, letter in "[A-Za-z0-9_-]") {
        let keys = TokenKeys::ephemeral().expect("keys");
        let token = keys.sign(claims()).expect("a token");
        let at = at % token.len();
        let changed = format!("{}{letter}{}", &token[..at], &token[at + 1..]);
        prop_assert!(changed == token || keys.verify(&changed).is_err());
    }
}
