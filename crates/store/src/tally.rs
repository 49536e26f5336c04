//! Counters of the entries of one table by first segment of their keys, and the limits on them. Their meaning is the
//! caller's.

/// How many numbers a caller may derive from a value.
pub const MEASURES: usize = 2;

/// The numbers that were derived from one value.
pub type Measured = [u64; MEASURES];

/// Derives numbers from a value. It must not panic, whatever the value is.
pub type Measure = fn(&[u8]) -> Measured;

/// How many entries there are, and the sums of what was derived from their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of entries.
    pub entries: u64,
    /// The sums, zero in tables that are not measured.
    pub measured: Measured,
}

/// One number of a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// The number of entries.
    Entries,
    /// The sum of one of the derived numbers.
    Measured(usize),
}

/// How large a number may become through a write. A write that does not make it larger is never refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Which number.
    pub counter: Counter,
    /// Its limit.
    pub max: u64,
}

impl Tally {
    /// What one entry adds; none adds nothing.
    pub fn of_entry(measured: Option<Measured>) -> Tally {
        measured.map_or_else(Tally::default, |measured| Tally { entries: 1, measured })
    }

    /// One number.
    pub fn get(&self, counter: Counter) -> u64 {
        match counter {
            Counter::Entries => self.entries,
            Counter::Measured(index) => self.measured.get(index).copied().unwrap_or(0),
        }
    }

    /// The tally after one entry took the place of another.
    pub(crate) fn replaced(self, before: Tally, after: Tally) -> Tally {
        let next = |now: u64, before: u64, after: u64| now.saturating_add(after).saturating_sub(before);
        let mut measured = self.measured;
        for (index, sum) in measured.iter_mut().enumerate() {
            *sum = next(*sum, before.measured[index], after.measured[index]);
        }
        Tally { entries: next(self.entries, before.entries, after.entries), measured }
    }
}

impl Limit {
    /// Whether a write that changes one entry so makes a tally of this size too large.
    pub(crate) fn is_exceeded(&self, before: Tally, after: Tally, next: Tally) -> bool {
        after.get(self.counter) > before.get(self.counter) && next.get(self.counter) > self.max
    }
}
