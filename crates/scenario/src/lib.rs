//! Scenario files: what they say, and how they are played, on a whole control plane inside this process or on
//! one that is running somewhere. Knows no terminal and no command line.

/// The JSON schema of scenario files, for editors.
pub const SCHEMA: &str = include_str!("../schema.json");

mod approval;
mod dice;
mod door;
mod ending;
mod expectation;
mod faults;
mod file;
mod files;
mod foresight;
mod ground;
mod hands;
mod judge;
mod live;
mod matching;
mod moment;
mod narrate;
mod patience;
mod play;
mod reference;
mod short;
mod simulated;
mod step;
mod suite;
mod tide;
mod traces;
mod way;

pub use file::{FileError, Scenario, find};
pub use ground::Trouble;
pub use hands::{Favour, Hands, Reply};
pub use live::Live;
pub use narrate::{Deed, Found, Hero, Scene, narrate};
pub use play::Failure;
pub use reference::Reference;
pub use step::Cluster;
pub use suite::{Options, Outcome, Verdict, run, run_live};
pub use way::Way;
