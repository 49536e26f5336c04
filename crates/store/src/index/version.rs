//! One version of a key: the event that wrote it while that can still be watched, and compressed afterwards. Objects
//! of one table resemble each other, so one of them serves as the compression dictionary of the others. Knows nothing
//! of tables, locks or durability.

use std::sync::Arc;

use bytes::Bytes;
use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

use crate::{Entry, Event, EventKind, Revision};

/// Values below this are left alone: there is little to win.
const PACKED_BYTES_MIN: usize = 256;
/// The format looks no further back than this.
const DICTIONARY_BYTES_MAX: usize = 64 * 1024;
/// So many values are packed at least before another dictionary is chosen: each is kept as it is.
const DICTIONARY_USES_MIN: u32 = 256;

/// A state of a key. Clones share it.
#[derive(Clone, Debug)]
pub(crate) enum Version {
    /// The event that brought it, deletes included.
    Event(Arc<Event>),
    /// The compressed form, once the event has been compacted.
    Packed(Arc<Packed>),
}

/// A value in little space, and what belongs to it.
#[derive(Debug)]
pub(crate) struct Packed {
    key: Arc<str>,
    revision: Revision,
    created: Revision,
    /// The length of the value, and the value in the terms of the dictionary.
    bytes: Box<[u8]>,
    dictionary: Arc<Bytes>,
}

impl Version {
    pub(crate) fn key(&self) -> &Arc<str> {
        match self {
            Version::Event(event) => &event.key,
            Version::Packed(packed) => &packed.key,
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        match self {
            Version::Event(event) => event.revision,
            Version::Packed(packed) => packed.revision,
        }
    }

    /// Whether the key is there in this state.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Version::Event(event) => event.kind == EventKind::Put,
            Version::Packed(_) => true,
        }
    }

    /// The bytes that statistics count for it, packed or not.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Version::Event(event) => event.size(),
            Version::Packed(packed) => (packed.key.len() + packed.value_len()) as u64,
        }
    }

    /// The entry for readers. Decompression takes a few microseconds, so callers must not hold a lock.
    pub(crate) fn entry(&self) -> Entry {
        match self {
            Version::Event(event) => event.entry(),
            Version::Packed(packed) => Entry {
                key: packed.key.clone(),
                value: packed.value(),
                created: packed.created,
                revision: packed.revision,
            },
        }
    }
}

impl Packed {
    fn value_len(&self) -> usize {
        let length = self.bytes.first_chunk().expect("the length comes first");
        u32::from_le_bytes(*length) as usize
    }

    fn value(&self) -> Bytes {
        let value = decompress_size_prepended_with_dict(&self.bytes, &self.dictionary);
        Bytes::from(value.expect("it was packed here, with this dictionary"))
    }
}

/// Packs the values of one table.
#[derive(Default)]
pub(super) struct Packer {
    dictionary: Option<Arc<Bytes>>,
    /// How many values were packed with it.
    uses: u32,
}

impl Packer {
    /// What is kept of a state once its event is forgotten: not what was there before, and the value in little space.
    pub(super) fn settle(&mut self, event: &Event) -> Version {
        match self.pack(&event.value) {
            Some((bytes, dictionary)) => Version::Packed(Arc::new(Packed {
                key: event.key.clone(),
                revision: event.revision,
                created: event.created,
                bytes,
                dictionary,
            })),
            None => Version::Event(Arc::new(Event { previous: None, ..event.clone() })),
        }
    }

    /// None when it is not worth it.
    fn pack(&mut self, value: &Bytes) -> Option<(Box<[u8]>, Arc<Bytes>)> {
        if value.len() < PACKED_BYTES_MIN {
            return None;
        }
        let packed = |dictionary: &Arc<Bytes>| compress_prepend_size_with_dict(value, dictionary);
        let mut dictionary = self.dictionary.clone().unwrap_or_else(|| self.choose(value));
        let mut bytes = packed(&dictionary);
        if bytes.len() > value.len() / 2 && self.uses >= DICTIONARY_USES_MIN {
            dictionary = self.choose(value);
            bytes = packed(&dictionary);
        }
        self.uses = self.uses.saturating_add(1);
        (bytes.len() < value.len() / 4 * 3).then(|| (bytes.into_boxed_slice(), dictionary))
    }

    /// Makes this value the measure of those that follow.
    fn choose(&mut self, value: &Bytes) -> Arc<Bytes> {
        let start = value.len().saturating_sub(DICTIONARY_BYTES_MAX);
        let dictionary = Arc::new(Bytes::copy_from_slice(&value[start..]));
        self.dictionary = Some(dictionary.clone());
        self.uses = 0;
        dictionary
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(number: u64, value: Vec<u8>) -> Event {
        Event {
            key: format!("key-{number}").into(),
            revision: number + 2,
            created: number + 1,
            value: value.into(),
            previous: Some(Box::new(Bytes::from_static(b"before"))),
            kind: EventKind::Put,
        }
    }

    fn object(number: u64) -> Vec<u8> {
        let field = |index: u64| format!("\"field-{index}\":{{\"name\":\"d{number}\",\"value\":{index}}}");
        (0..60).map(field).collect::<Vec<_>>().join(",").into_bytes()
    }

    /// Packs values in turn, reads each again, and says how many bytes they take.
    fn check(values: impl Iterator<Item = Vec<u8>>) -> usize {
        let mut packer = Packer::default();
        let mut kept = 0;
        for (number, value) in values.enumerate() {
            let event = event(number as u64, value);
            let version = packer.settle(&event);
            assert_eq!(version.entry(), event.entry());
            assert_eq!((version.key(), version.revision()), (&event.key, event.revision));
            assert_eq!(version.size(), event.size());
            assert!(version.is_there());
            kept += match &version {
                Version::Packed(packed) => packed.bytes.len(),
                Version::Event(event) => {
                    assert!(event.previous.is_none());
                    event.value.len()
                }
            };
        }
        kept
    }

    #[test]
    fn what_resembles_takes_little() {
        let plain: usize = (0..100).map(|number| object(number).len()).sum();
        let kept = check((0..100).map(object));
        assert!(kept * 4 < plain, "{kept} of {plain}");
    }

    #[test]
    fn a_table_that_changes_its_shape_gets_another_dictionary() {
        let other = |number: u64| object(number).iter().map(|byte| byte.wrapping_add(1)).collect();
        let plain: usize = (0..900).map(|number| object(number).len()).sum();
        let kept = check((0..300).map(object).chain((300..900).map(other)));
        assert!(kept * 3 < plain, "{kept} of {plain}");
    }

    #[test]
    fn small_and_large_values_are_kept_too() {
        check([Vec::new(), vec![b'x'; 10], vec![b'y'; 300_000], object(7).repeat(200)].into_iter());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_bytes_come_back(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 0..12)) {
            check(values.into_iter());
        }
    }
}
