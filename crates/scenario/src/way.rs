//! The ways a scenario is played: which faults the controllers face meanwhile.

use std::fmt;

/// What controllers have to bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Nothing.
    Plain,
    /// Controllers are restarted soon after every step, and once more when the system is idle.
    Restarts,
    /// What they watch comes late, each collection by another delay.
    Delays,
    /// Their writes fail at random, before they happened or after.
    Failures,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 4] = [Way::Plain, Way::Restarts, Way::Delays, Way::Failures];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain",
            Way::Restarts => "restarts",
            Way::Delays => "delays",
            Way::Failures => "failures",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
