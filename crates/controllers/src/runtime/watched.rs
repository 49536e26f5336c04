//! A value that tasks wait for. Unlike tokio's watch channel it wakes them in FIFO order, so that a run is
//! reproducible.

use std::sync::{Mutex, MutexGuard};

use supervise::Recovered as _;
use tokio::sync::Notify;

/// A value that can be waited for.
#[derive(Debug, Default)]
pub struct Watched<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> Watched<T> {
    /// Starts with this value.
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    fn value(&self) -> MutexGuard<'_, T> {
        self.value.lock().recovered()
    }

    /// Changes the value and wakes all waiting tasks.
    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value());
        self.changed.notify_waiters();
    }

    /// Reads the value.
    pub fn read<Answer>(&self, read_value: impl FnOnce(&T) -> Answer) -> Answer {
        read_value(&self.value())
    }

    /// Waits until the value gives an answer.
    pub async fn until<Answer>(&self, read_value: impl Fn(&T) -> Option<Answer>) -> Answer {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that nothing is missed in between.
            changed.as_mut().enable();
            if let Some(answer) = self.read(&read_value) {
                return answer;
            }
            changed.await;
        }
    }
}
