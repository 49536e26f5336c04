//! Changes of parts of an object: JSON, merge and strategic merge patches, field ownership and server-side apply.
//! Pure functions over values and their schema.

pub mod apply;
pub mod patch;
