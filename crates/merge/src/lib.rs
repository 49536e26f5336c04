//! What an object becomes when somebody changes a part of it: JSON, merge and strategic patches, field ownership and
//! server-side apply. Pure functions over values and their schema.

pub mod apply;
pub mod patch;
