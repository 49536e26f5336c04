//! The REST surface from the outside: every request goes through the service that clients use.

mod bodies;
mod client;
mod custom;
mod metadata;
mod options;
mod patches;
mod paths;
mod table;
