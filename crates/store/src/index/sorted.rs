//! Which keys of a table exist now, in order: a sorted list in chunks, so that the rank of a key (and with
//! it the number of keys in any range) costs a walk over chunk lengths and not over keys.

use super::version::Version;

/// Small enough that shifting a chunk stays cheap, large enough that a million keys are a few thousand chunks.
const CHUNK_KEYS_MAX: usize = 512;

/// The newest version of each key that exists; no chunk is ever empty.
#[derive(Default)]
pub(super) struct Sorted {
    chunks: Vec<Vec<Version>>,
    len: usize,
}

/// A place between two keys.
#[derive(Clone, Copy)]
pub(super) struct Place {
    chunk: usize,
    offset: usize,
}

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, key: &str) -> Option<&Version> {
        let place = self.find(key)?;
        Some(&self.chunks[place.chunk][place.offset])
    }

    /// Puts the version under its key and returns the one it replaces.
    pub(super) fn insert(&mut self, version: Version) -> Option<Version> {
        if let Some(place) = self.find(version.key()) {
            return Some(std::mem::replace(&mut self.chunks[place.chunk][place.offset], version));
        }
        self.len += 1;
        let mut place = self.place(|key| key < &**version.key());
        if place.chunk == self.chunks.len() {
            self.append(version);
            return None;
        }
        if self.split_if_full(place.chunk) {
            place = self.place(|key| key < &**version.key());
        }
        self.chunks[place.chunk].insert(place.offset, version);
        None
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Version> {
        let place = self.find(key)?;
        let chunk = &mut self.chunks[place.chunk];
        let version = chunk.remove(place.offset);
        if chunk.is_empty() {
            self.chunks.remove(place.chunk);
        }
        self.len -= 1;
        Some(version)
    }

    /// The place before the first key for which `before` is false; `before` must be true for a head of the
    /// keys and false for the rest.
    pub(super) fn place(&self, before: impl Fn(&str) -> bool) -> Place {
        let after = self.chunks.partition_point(|chunk| before(chunk[0].key()));
        let Some(chunk) = after.checked_sub(1) else { return Place { chunk: 0, offset: 0 } };
        let offset = self.chunks[chunk].partition_point(|version| before(version.key()));
        // The end of a chunk and the start of the next are the same place; only the last chunk has an end.
        let at_end = offset == self.chunks[chunk].len();
        if at_end { Place { chunk: chunk + 1, offset: 0 } } else { Place { chunk, offset } }
    }

    /// How many keys are before the place.
    pub(super) fn rank(&self, place: Place) -> usize {
        self.chunks[..place.chunk].iter().map(Vec::len).sum::<usize>() + place.offset
    }

    /// The versions from the place on, in key order.
    pub(super) fn iter_from(&self, place: Place) -> impl Iterator<Item = &Version> {
        let (first, rest) = match self.chunks.get(place.chunk..) {
            Some([first, rest @ ..]) => (&first[place.offset..], rest),
            _ => (&[][..], &[][..]),
        };
        first.iter().chain(rest.iter().flatten())
    }

    fn find(&self, key: &str) -> Option<Place> {
        let chunk = self.chunks.partition_point(|chunk| &**chunk[0].key() <= key).checked_sub(1)?;
        let offset = self.chunks[chunk].binary_search_by(|version| (**version.key()).cmp(key)).ok()?;
        Some(Place { chunk, offset })
    }

    /// Appends behind the last key: a table that is filled in key order gets full chunks.
    fn append(&mut self, version: Version) {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK_KEYS_MAX => chunk.push(version),
            _ => self.chunks.push(vec![version]),
        }
    }

    /// Splits before the insert, so that no chunk ever allocates room for more than it may hold.
    fn split_if_full(&mut self, chunk: usize) -> bool {
        let full = self.chunks[chunk].len() >= CHUNK_KEYS_MAX;
        if full {
            let upper = self.chunks[chunk].split_off(CHUNK_KEYS_MAX / 2);
            self.chunks.insert(chunk + 1, upper);
        }
        full
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::{Event, EventKind};

    fn version(key: &str) -> Version {
        let value = Bytes::new();
        Version::Event(Arc::new(Event {
            key: key.into(),
            revision: 1,
            created: 1,
            value,
            previous: None,
            kind: EventKind::Put,
        }))
    }

    fn check(keys: impl Iterator<Item = (u32, bool)>) {
        let (mut sorted, mut model) = (Sorted::default(), BTreeSet::new());
        for (number, insert) in keys {
            let key = format!("{number:05}");
            if insert {
                assert_eq!(sorted.insert(version(&key)).is_none(), model.insert(key));
            } else {
                assert_eq!(sorted.remove(&key).is_some(), model.remove(&key));
            }
        }
        assert_eq!(sorted.len(), model.len());
        let keys: Vec<&str> =
            sorted.iter_from(sorted.place(|_| false)).map(|version| &**version.key()).collect();
        assert_eq!(keys, model.iter().map(String::as_str).collect::<Vec<_>>());
        for probe in ["", "0", "00500", "01", "02999x", "9"] {
            let place = sorted.place(|key| key < probe);
            let expected: Vec<&String> = model.range(probe.to_owned()..).collect();
            assert_eq!(sorted.rank(place), model.len() - expected.len());
            let found: Vec<&str> = sorted.iter_from(place).map(|version| &**version.key()).collect();
            assert_eq!(found, expected);
            assert_eq!(sorted.get(probe).is_some(), model.contains(probe));
        }
    }

    #[test]
    fn keys_in_order_and_in_reverse_fill_several_chunks() {
        check((0..3000).map(|number| (number, true)));
        check((0..3000).rev().map(|number| (number, true)));
        check(
            (0..3000).map(|number| (number, true)).chain((0..3000).map(|number| (number, number % 7 == 0))),
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn random_inserts_and_removes_match_a_set(
            operations in prop::collection::vec((0u32..3000, prop::bool::weighted(0.8)), 0..4000)
        ) {
            check(operations.into_iter());
        }
    }
}
