//! Test-only support: the real binary as a process, and clients that talk to it.

use std::io::Write as _;

pub mod churn;
pub mod client;
pub mod console;
pub mod drive;
pub mod followers;
pub mod informers;
pub mod kubectl;
pub mod kubernetes_clusters;
pub mod log;
pub mod process;
pub mod random;
pub mod shell;

/// Set where every client must be there, so that no test is skipped unseen.
const REQUIRE_CLIENTS: &str = "LONGSHORE_REQUIRE_CLIENTS";

/// Says what a test found out, past the harness, which keeps what the macros print to itself.
pub fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "NOTE: {what}");
}

/// Says that a test is skipped because a client is missing, or fails it where clients are required.
pub fn client_is_missing(what: &str) {
    let required = std::env::var_os(REQUIRE_CLIENTS).is_some_and(|value| value == "1");
    assert!(!required, "{what}, and {REQUIRE_CLIENTS}=1 requires it");
    // The test harness captures what the macros print, and a skipped test must be seen.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}
