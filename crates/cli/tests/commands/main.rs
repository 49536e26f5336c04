//! The commands that talk to a control plane, as processes against a real `longshore up`.

mod connection;
mod get;
mod terminal;
mod why;
