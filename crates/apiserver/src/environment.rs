//! The clock and the source of random numbers, handed in by the embedding process, so that a simulation can run on its
//! own time and its own identifiers; and what objects carry of both.

use std::sync::Arc;

use jiff::Timestamp;

/// The wall clock.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A fresh random number for each call.
pub(crate) type Random = Arc<dyn Fn() -> u128 + Send + Sync>;

/// The time as objects carry it: whole seconds, UTC.
pub(crate) fn timestamp(now: &Clock) -> String {
    now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A version 4 UUID.
pub(crate) fn uid(random: &Random) -> String {
    let bits = random();
    let bits = bits & !(0xf << 76) | (0x4 << 76);
    let bits = bits & !(0x3 << 62) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The five characters behind a `generateName`, from Kubernetes' alphabet without vowels.
pub(crate) fn name_suffix(random: &Random) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut bits = random();
    let mut suffix = String::with_capacity(5);
    for _ in 0..5 {
        suffix.push(char::from(ALPHABET[(bits % ALPHABET.len() as u128) as usize]));
        bits /= ALPHABET.len() as u128;
    }
    suffix
}
