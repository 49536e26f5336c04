//! The real binary, as people and programs meet it: commands that start it, clients of other makers, crashes and
//! restores. One program, because linking everything costs more than most of these tests.
//! `cargo test -p cli --test suite restore` runs those of one module.

mod crash;
mod demo;
mod deploy;
mod informers;
mod kube_rs;
mod kubectl;
mod live_scenarios;
mod members;
mod pipeline_crash;
mod python_client;
mod ready;
mod restore;
mod up;
mod walkthrough;
