//! Test-only support: the real binary as a process, and clients that talk to it.

pub mod client;
pub mod process;
