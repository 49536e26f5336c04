//! What stands around the pipeline, end to end on API servers in memory: the shells write what `decide` says,
//! whatever is restarted in between.

mod dependencies;
mod failover;
mod restarts;
mod stack;
mod stories;
mod watched;
