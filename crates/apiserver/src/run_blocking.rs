//! Runs CPU-heavy but bounded work in `tokio::task::block_in_place`, so that other requests do not wait behind it.
//! Must not know what the work is.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does the work while another thread takes over what else this one had to do, where there are several threads.
pub(crate) fn run_blocking<Answer>(work: impl FnOnce() -> Answer) -> Answer {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor.is_ok_and(|flavor| flavor == RuntimeFlavor::MultiThread) {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}
