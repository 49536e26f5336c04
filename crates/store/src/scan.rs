//! A streaming range read: a consistent snapshot is taken at the start, and entries are decompressed one at a time,
//! so that a server that streams a large table never holds all of it in memory. Holds no locks.

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
