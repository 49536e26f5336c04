//! The index of bindings in the middle of a move: they are reconciled again when a member reports something new (M1).
//! Filled by reconciling bindings, so a restart, which reconciles all of them, loses nothing. Must not know what they
//! wait for.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use decide::BindingKey;
use supervise::Recovered as _;

/// The bindings that wait; few at any time.
#[derive(Default)]
pub struct Moving(Mutex<HashSet<BindingKey>>);

impl Moving {
    fn keys(&self) -> MutexGuard<'_, HashSet<BindingKey>> {
        self.0.lock().recovered()
    }

    /// Notes one that may wait.
    pub fn note(&self, key: &BindingKey) {
        self.keys().insert(key.clone());
    }

    /// Forgets one that does not wait.
    pub fn forget(&self, key: &BindingKey) {
        self.keys().remove(key);
    }

    /// Whether a binding waits.
    pub fn has(&self, key: &BindingKey) -> bool {
        self.keys().contains(key)
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.keys().is_empty()
    }
}
