//! The subject of a client certificate with several groups. Kubernetes reads each organisation as a group, and rcgen
//! writes only one: this module adds the others to the DER and signs the certificate again.

use anyhow::{Context as _, Result, bail};
use rcgen::{KeyPair, SigningKey as _};

const BIT_STRING: u8 = 0x03;
const UTF8_STRING: u8 = 0x0c;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// The object identifier of `organizationName`, 2.5.4.10.
const ORGANISATION: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x0a];
/// Where the subject stands in what is signed: behind version, serial number, algorithm, issuer and validity.
const SUBJECT: usize = 5;
/// How many bytes a length has at most.
const LENGTH_BYTES_MAX: usize = 4;

/// The certificate with these organisations more, signed by the key of the authority.
pub fn with_organisations(certificate: &[u8], more: &[&str], authority: &KeyPair) -> Result<Vec<u8>> {
    let [signed, algorithm, _] = elements(content(certificate)?)?[..] else {
        bail!("a certificate has three parts");
    };
    let mut fields: Vec<Vec<u8>> = elements(content(signed)?)?.into_iter().map(<[u8]>::to_vec).collect();
    let subject = fields.get_mut(SUBJECT).context("a certificate has a subject")?;
    let names = more.iter().map(|name| organisation(name));
    let names: Vec<u8> = std::iter::once(content(subject)?.to_vec()).chain(names).flatten().collect();
    *subject = element(SEQUENCE, &names);
    let signed = element(SEQUENCE, &fields.concat());
    let signature = authority.sign(&signed).context("sign the certificate")?;
    // No bit of the last byte is unused.
    let signature = element(BIT_STRING, &[&[0], signature.as_slice()].concat());
    Ok(element(SEQUENCE, &[signed.as_slice(), algorithm, &signature].concat()))
}

/// One organisation as part of a name.
fn organisation(name: &str) -> Vec<u8> {
    let value = element(UTF8_STRING, name.as_bytes());
    element(SET, &element(SEQUENCE, &[ORGANISATION.as_slice(), &value].concat()))
}

/// An element: its tag, the length of its content, its content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    let length = match length {
        [short @ 0..0x80] => vec![*short],
        // A longer one says first how many bytes it has: never more than eight.
        long => [&[0x80 | long.len() as u8], long].concat(),
    };
    [&[tag], length.as_slice(), content].concat()
}

/// The content of an element.
fn content(element: &[u8]) -> Result<&[u8]> {
    let (header, length) = measured(element).context("read an element of the certificate")?;
    element.get(header..header + length).context("an element of the certificate is cut off")
}

/// The elements that stand one behind the other.
fn elements(mut bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (header, length) = measured(bytes).context("read an element of the certificate")?;
        let (element, rest) =
            bytes.split_at_checked(header + length).context("an element of the certificate is cut off")?;
        all.push(element);
        bytes = rest;
    }
    Ok(all)
}

/// How many bytes the first element has: before its content, and as its content.
fn measured(bytes: &[u8]) -> Option<(usize, usize)> {
    match usize::from(*bytes.get(1)?) {
        length @ 0..0x80 => Some((2, length)),
        long => {
            let count = long - 0x80;
            let length = bytes.get(2..2 + count).filter(|_| (1..=LENGTH_BYTES_MAX).contains(&count))?;
            Some((2 + count, length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_whatever_its_length() {
        for length in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
            let written = element(SEQUENCE, &vec![7; length]);
            assert_eq!(content(&written).expect("an element").len(), length);
            let two = [written.clone(), element(SET, b"x")].concat();
            assert_eq!(elements(&two).expect("two elements"), [written.as_slice(), &element(SET, b"x")]);
            assert!(elements(&two[..two.len() - 1]).is_err(), "{length}");
        }
        assert_eq!(element(UTF8_STRING, &[7; 200])[..4], [UTF8_STRING, 0x81, 200, 7]);
        for malformed in [&[0x30][..], &[0x30, 0x80], &[0x30, 0x85, 0, 0, 0, 0, 1, 1], &[0x30, 0x82, 1]] {
            assert!(content(malformed).is_err(), "{malformed:?}");
        }
    }
}
