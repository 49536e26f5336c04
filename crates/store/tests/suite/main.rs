//! The store as its users see it, in memory and on disk. `cargo test -p store --test suite model` runs one module.

mod basics;
mod damage;
mod encrypted;
mod kill;
mod limits;
mod model;
mod stress;
