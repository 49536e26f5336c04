//! The documents of this repository say what its code and its scenarios do: every rule that is cited is defined in
//! docs/behaviour and shown by a scenario, references have everything there is, and links lead somewhere.

mod architecture;
mod citations;
mod events;
mod house;
mod keys;
mod links;
mod metrics;
mod repository;
mod rules;
mod sections;
mod walkthroughs;
