//! The settings of a store on disk.

/// What can be set about a store on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A log file that has grown to this size is followed by a new one; also how much log must be dead
    /// before a compaction rewrites the live entries.
    pub segment_bytes: u64,
    /// The largest value that is taken.
    pub value_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { segment_bytes: 32 << 20, value_bytes_max: 8 << 20 }
    }
}
