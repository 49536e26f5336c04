//! An in-memory server that admits every write, for benchmarks of other components.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apiserver::Config;
use apiserver::admission::admit_all;
use store::Store;

/// What such a server is made of.
pub fn config() -> Config {
    let counter = AtomicU64::new(1);
    Config {
        store: Store::in_memory(),
        now: Arc::new(jiff::Timestamp::now),
        random: Arc::new(move || u128::from(counter.fetch_add(1, Ordering::Relaxed))),
        admission: admit_all(),
        root_ca: String::new(),
    }
}
