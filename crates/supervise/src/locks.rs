//! Locks that outlive a panic (no poisoning). A std lock is poisoned when its holder panics; the next holder that
//! calls `expect` panics as well, and one fault stops every task that needs the lock.

use std::sync::{LockResult, PoisonError};

/// Recovers the guard of a poisoned lock. For data that is good after any of its changes, or that is changed again
/// where a change broke off: the task that panicked is retried.
pub trait Recovered<Guard> {
    /// The guard, whether or not a holder panicked.
    fn recovered(self) -> Guard;
}

impl<Guard> Recovered<Guard> for LockResult<Guard> {
    fn recovered(self) -> Guard {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, RwLock};

    use super::*;
    use crate::catch_call;

    #[test]
    fn a_poisoned_lock_is_still_a_lock() {
        let (mutex, lock) = (Mutex::new(1), RwLock::new(2));
        let poisoned = catch_call(|| {
            let _guards = (mutex.lock().recovered(), lock.write().recovered());
            panic!("while both are held");
        });
        assert!(poisoned.is_err() && mutex.is_poisoned() && lock.is_poisoned());
        *mutex.lock().recovered() += 10;
        *lock.write().recovered() += 10;
        assert_eq!((*mutex.lock().recovered(), *lock.read().recovered()), (11, 12));
    }
}
