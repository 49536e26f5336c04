//! Supervision within a process: panics are caught, tasks that must run for ever are restarted with backoff, locks
//! outlive a panic. Knows nothing of what the tasks do, and of no server.

mod backoff;
mod caught;
mod injected;
mod locks;
mod task;

pub use backoff::Backoff;
pub use caught::{Panic, catch, catch_call};
pub use injected::Injector;
pub use locks::Recovered;
pub use task::keep_running;
