//! Scenario files: what they say, and how they are played, on a whole control plane inside this process or on
//! one that is running somewhere. Knows no terminal and no command line.

/// The JSON schema of scenario files, for editors.
pub const SCHEMA: &str = include_str!("../schema.json");

mod api_client;
mod approval;
mod changes;
mod deadline;
mod dice;
mod ending;
mod environment;
mod error;
mod expectation;
mod faults;
mod file;
mod files;
mod host;
mod judge;
mod live;
mod matching;
mod moment;
mod narrate;
mod plan_check;
mod play;
mod reference;
mod short;
mod simulated;
mod step;
mod suite;
mod traces;
mod way;

pub use error::PlayError;
pub use file::{FileError, Scenario, find};
pub use host::{Host, HostOperation, Reply};
pub use live::Live;
pub use narrate::{Found, NarratedAction, Scene, Subject, narrate};
pub use play::Failure;
pub use reference::Reference;
pub use step::Cluster;
pub use suite::{Options, Outcome, Verdict, run, run_live};
pub use way::Way;
