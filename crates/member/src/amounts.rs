//! Amounts of processor time, memory and pods: what a pod asks for and what a node has.

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// What a pod asks for, or a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    pub pods: i64,
}

impl Add for Amounts {
    type Output = Amounts;

    fn add(self, other: Amounts) -> Amounts {
        Amounts {
            cpu_milli: self.cpu_milli.saturating_add(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            pods: self.pods.saturating_add(other.pods),
        }
    }
}

impl Sub for Amounts {
    type Output = Amounts;

    fn sub(self, other: Amounts) -> Amounts {
        Amounts {
            cpu_milli: self.cpu_milli.saturating_sub(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes),
            pods: self.pods.saturating_sub(other.pods),
        }
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Amounts) {
        *self = *self + other;
    }
}

impl SubAssign for Amounts {
    fn sub_assign(&mut self, other: Amounts) {
        *self = *self - other;
    }
}

/// What a pod says about where it may go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    pub needs: Amounts,
    /// Labels that its node must have.
    pub selector: BTreeMap<String, String>,
}
