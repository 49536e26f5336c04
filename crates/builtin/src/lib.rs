//! Registry strategies of the built-in kinds: defaulting, validation, conversion and table printing beyond their
//! schema. Must not know about HTTP or storage: they see values.

pub mod convert;
mod defaults;
mod fill;
mod prepare;
mod retype;
pub mod table;
mod validate;

pub use defaults::{allocate_service, apply_defaults};
pub use prepare::{
    deprecation, has_generation, is_new_generation, prepare_for_create, prepare_for_status_update,
    prepare_for_update,
};
pub use validate::validate;

#[cfg(test)]
mod tests;
