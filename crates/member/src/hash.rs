//! Deterministic names: the same owner, template and ordinal give the same name after every restart of a member, so
//! that creating twice is a conflict. Must not know kinds.

use serde_json::Value;

/// The letters of generated names, without vowels and look-alikes, as in Kubernetes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A number that depends on all parts and their borders, and on nothing else (FNV-1a, 64 bits).
pub fn number(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A word of so many letters that depends on all parts.
pub fn word(letters: usize, parts: &[&str]) -> String {
    let mut rest = number(parts);
    let mut word = String::with_capacity(letters);
    for _ in 0..letters {
        word.push(char::from(ALPHABET[(rest % 27) as usize]));
        rest /= 27;
    }
    word
}

/// The hash of a pod template; objects are written in the order of their fields, so equal templates have
/// equal hashes.
pub fn template(template: &Value) -> String {
    word(10, &[&template.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_depend_on_every_part_and_on_where_it_ends() {
        assert_eq!(word(5, &["a", "b"]), word(5, &["a", "b"]));
        assert_ne!(word(5, &["a", "b"]), word(5, &["ab", ""]));
        assert_ne!(word(5, &["a", "1"]), word(5, &["a", "2"]));
        assert_eq!(word(10, &["x"]).len(), 10);
    }

    #[test]
    fn words_stay_what_they_are() {
        // A change here would make every restarted member create its pods anew.
        assert_eq!(word(5, &["uid", "", "0"]), "6sk9j");
        assert_eq!(template(&serde_json::json!({ "b": 1, "a": 2 })), "ncfnjfkv4n");
    }
}
