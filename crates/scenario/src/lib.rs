//! Scenario files: what they say, and how they are played, on a whole control plane inside this process or on
//! one that is running somewhere. Knows no terminal and no command line.

/// The JSON schema of scenario files, for editors.
pub const SCHEMA: &str = include_str!("../schema.json");

mod api_client;
mod approval;
mod changes;
mod check;
mod deadline;
mod environment;
mod error;
mod expectation;
mod faults;
mod file;
mod files;
mod final_state;
mod host;
mod live;
mod matching;
mod now_placeholder;
mod plan_check;
mod play;
mod random;
mod reference;
mod short;
mod simulated;
mod step;
mod story;
mod suite;
mod touched_objects;
mod way;
mod yaml;

pub use error::PlayError;
pub use file::{FileError, Scenario, find};
pub use host::{Host, HostOperation, Reply};
pub use live::Live;
pub use play::Failure;
pub use reference::Reference;
pub use step::Cluster;
pub use story::{PlayedStep, StoryAction, Subject, TemplateState, play_story};
pub use suite::{Options, ScenarioResult, Verdict, run, run_live};
pub use way::Way;
pub use yaml::yaml_problem;
