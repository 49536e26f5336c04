//! Counters of one table, by first segment of its keys. Updated with every write, so that reading them is O(1).

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Measured, Tally};

/// What is counted in one table.
#[derive(Default)]
pub(super) struct Tallies {
    of: HashMap<Box<str>, Tally>,
    /// What was derived from the values of keys, where that is not zero.
    measured: HashMap<Arc<str>, Measured>,
}

impl Tallies {
    /// Counts that a key has a value, from which this was derived, or none. `was_there` says whether it had one before.
    pub fn count(&mut self, key: &Arc<str>, now: Option<Measured>, was_there: bool) {
        let before = was_there.then(|| self.measured(key));
        match now.filter(|measured| *measured != Measured::default()) {
            Some(measured) => drop(self.measured.insert(key.clone(), measured)),
            None => drop(self.measured.remove(key)),
        }
        let Some((part, _)) = key.split_once('/') else { return };
        let next = self.of(part).replaced(Tally::of_entry(before), Tally::of_entry(now));
        match self.of.get_mut(part) {
            Some(_) if next == Tally::default() => drop(self.of.remove(part)),
            Some(tally) => *tally = next,
            None => drop(self.of.insert(part.into(), next)),
        }
    }

    /// The tally of one first part.
    pub fn of(&self, part: &str) -> Tally {
        self.of.get(part).copied().unwrap_or_default()
    }

    /// What was derived from the value of a key.
    pub fn measured(&self, key: &str) -> Measured {
        self.measured.get(key).copied().unwrap_or_default()
    }
}
