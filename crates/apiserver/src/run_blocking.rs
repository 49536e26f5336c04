//! Work that may keep a thread busy for longer than a request usually does, though it is bounded: it is done aside, so
//! that the requests of others do not wait behind it. Must not know what the work is.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does the work while another thread takes over what else this one had to do, where there are several threads.
pub(crate) fn run_blocking<Answer>(work: impl FnOnce() -> Answer) -> Answer {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    match flavor.is_ok_and(|flavor| flavor == RuntimeFlavor::MultiThread) {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}
