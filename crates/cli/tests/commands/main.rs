//! The commands that talk to a control plane, as processes against a real `longshore up`.

mod budgets;
mod clusters;
mod connection;
mod controllers;
mod full_disk;
mod get;
mod joining;
mod metrics;
mod plan;
mod promote;
mod reconcile;
mod roles;
mod rollout;
mod screen;
mod secrets;
mod shell;
mod storage;
mod suspend;
mod tenant;
mod terminal;
mod wait;
mod why;
