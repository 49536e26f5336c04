//! A seeded pseudo-random generator.

use std::sync::atomic::{AtomicU64, Ordering};

/// How far the state moves with each number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64: small, and good enough to choose what fails and to make ids.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// Numbers that follow from this seed.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next number.
    pub fn next_number(&self) -> u64 {
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The next number below this one.
    pub fn below(&self, end: u64) -> u64 {
        self.next_number() % end.max(1)
    }
}
