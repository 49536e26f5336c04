//! The documents of this repository say what its code and its scenarios do: every rule that is cited is defined in
//! docs/behaviour, and every rule there is shown by a scenario.

mod citations;
mod repository;
mod rules;
mod sections;
