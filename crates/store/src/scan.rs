//! A range that is read bit by bit: what is there is settled at the start, and unpacked one entry at a time, so that
//! whoever sends a large table to somebody never holds all of it. Knows nothing of locks: it holds none.

use crate::index::{Found, Version};
use crate::{Entry, Revision};

/// The entries of a range in key order, all of the same revision, however late they are taken.
pub struct Scan {
    versions: std::vec::IntoIter<Version>,
    revision: Revision,
}

impl Scan {
    pub(crate) fn new(found: Found) -> Self {
        Self { versions: found.versions.into_iter(), revision: found.revision }
    }

    /// One that finds nothing.
    pub fn empty(revision: Revision) -> Self {
        Self { versions: Vec::new().into_iter(), revision }
    }

    /// The revision at which all entries were read.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether all entries were taken.
    pub fn is_over(&self) -> bool {
        self.versions.as_slice().is_empty()
    }
}

impl Iterator for Scan {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        self.versions.next().map(|version| version.entry())
    }
}
