//! Runs commands that only talk to servers.

use anyhow::Context as _;

/// Runs a command that only talks to servers; it needs no more than this thread.
pub fn run_client<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("start the runtime")?.block_on(command)
}
