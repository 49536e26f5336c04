//! The vectors are protobuf bodies of every kind with the JSON of the same Go object, the first of a
//! kind empty, the others filled at random, made with Kubernetes' own encoders.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::messages::table;
use super::{DecodeError, decode};
use crate::kinds;

pub(super) fn vectors() -> Vec<(Vec<u8>, Value)> {
    let text = kinds::inflate(include_bytes!("../../data/protobuf-vectors.bin"));
    let line = |line: &str| {
        let (body, json) = line.split_once('\t').unwrap();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        (body.as_bytes().chunks(2).map(byte).collect(), serde_json::from_str(json).unwrap())
    };
    text.lines().map(line).collect()
}

#[test]
fn bodies_become_the_json_that_go_writes() {
    for (body, expected) in vectors() {
        let found = decode(&body).unwrap_or_else(|error| panic!("{error}: {expected}"));
        if let Some(difference) = difference("", &found, &expected) {
            panic!("{} {}: {difference}", expected["apiVersion"], expected["kind"]);
        }
    }
}

fn difference(path: &str, found: &Value, expected: &Value) -> Option<String> {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| match (a.get(key), b.get(key)) {
                (Some(a), Some(b)) => difference(&format!("{path}.{key}"), a, b),
                (a, b) => Some(format!("{path}.{key}: found {a:?}, expected {b:?}")),
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(place, (a, b))| difference(&format!("{path}[{place}]"), a, b))
        }
        _ if found == expected => None,
        _ => Some(format!("{path}: found {found}, expected {expected}")),
    }
}

/// A body with this envelope around these bytes.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, raw)].concat()
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
    out
}

#[test]
fn every_kind_that_can_be_sent_has_a_message() {
    for kind in kinds::all() {
        let own = (kind.verbs.contains(&"create"), kind.group, kind.version, kind.kind);
        let subresources = kind.subresources.iter().map(|sub| {
            // Options of connections travel in the query, never in a body.
            let sent = sub.verbs.iter().any(|verb| ["create", "update"].contains(verb));
            (sent && !sub.kind.ends_with("Options"), sub.group, sub.version, sub.kind)
        });
        for (_, group, version, kind) in std::iter::once(own).chain(subresources).filter(|sent| sent.0) {
            let api_version =
                if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            assert!(table().root(&api_version, kind).is_some(), "{api_version} {kind}");
        }
    }
}

#[test]
fn delete_options_may_name_any_group_version() {
    for api_version in ["v1", "meta.k8s.io/v1", "policy.karmada.io/v1alpha1"] {
        let expected = json!({ "apiVersion": api_version, "kind": "DeleteOptions", "gracePeriodSeconds": 0 });
        assert_eq!(decode(&body(api_version, "DeleteOptions", &[0x08, 0x00])), Ok(expected));
    }
}

#[test]
fn bad_bodies_are_refused() {
    let check = |bytes: &[u8], expected| assert_eq!(decode(bytes), Err(expected));
    check(b"{}", DecodeError::NotProtobuf);
    check(b"k8s\0", DecodeError::NoKind);
    let unknown = DecodeError::UnknownKind { api_version: "v1".into(), kind: "Policy".into() };
    check(&body("v1", "Policy", &[]), unknown);
    check(&body("v1", "ConfigMap", &[0x0a, 0x7f]), DecodeError::Malformed("unexpected EOF"));
    check(&body("v1", "ConfigMap", &[0x08, 0x01]), DecodeError::Malformed("wrong wireType"));
    check(&body("v1", "ConfigMap", &[0x0b]), DecodeError::Malformed("illegal wireType"));
    check(&body("v1", "ConfigMap", &[0xff; 11]), DecodeError::Malformed("integer overflow"));
}

#[test]
fn nesting_and_unfolding_are_bounded() {
    // not: { not: { … } } inside spec.versions[0].schema.openAPIV3Schema.
    let mut schema = Vec::new();
    for _ in 0..200 {
        schema = [vec![0xe2, 0x01], field(1, &schema)[1..].to_vec()].concat();
    }
    let spec = field(7, &field(4, &field(1, &schema)));
    let crd = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &field(2, &spec));
    assert_eq!(decode(&crd), Err(DecodeError::TooDeep));
    let containers = [0x12, 0x00].repeat(300_000);
    let pod = body("v1", "Pod", &field(2, &containers));
    assert_eq!(decode(&pod), Err(DecodeError::TooLarge));
}

#[test]
fn unknown_fields_are_skipped_and_numbers_may_be_packed() {
    let unknown = [0xfa, 0x3f, 0x01, 0x61, 0xf9, 0x3f, 1, 2, 3, 4, 5, 6, 7, 8, 0xfd, 0x3f, 1, 2, 3, 4];
    let expected = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {} });
    assert_eq!(decode(&body("v1", "ConfigMap", &unknown)), Ok(expected));
    let security_context = field(4, &[1, 2]);
    let pod = decode(&body("v1", "Pod", &field(2, &field(14, &security_context)))).unwrap();
    assert_eq!(pod["spec"]["securityContext"]["supplementalGroups"], json!([1, 2]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_bytes_never_panic(root in 0..table().roots().count(), raw in prop::collection::vec(any::<u8>(), 0..200)) {
        let (api_version, kind) = table().roots().nth(root).unwrap().rsplit_once('/').unwrap();
        let _ = decode(&raw);
        let _ = decode(&[b"k8s\0", raw.as_slice()].concat());
        let _ = decode(&body(api_version, kind, &raw));
    }

    #[test]
    fn changed_bodies_never_panic(pick in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), keep in any::<prop::sample::Index>()) {
        static VECTORS: std::sync::LazyLock<Vec<(Vec<u8>, Value)>> = std::sync::LazyLock::new(vectors);
        let mut bytes = pick.get(&VECTORS).0.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = decode(&bytes);
        let _ = decode(&bytes[..keep.index(bytes.len())]);
    }
}
