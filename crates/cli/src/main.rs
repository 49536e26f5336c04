//! The one binary: the composition root and everything that prints.

fn main() {}
