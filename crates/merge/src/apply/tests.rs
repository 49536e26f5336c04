//! How ownership is tested: replays of what a real server did, laws, and tables.

mod properties;
mod replay;
mod tables;
