//! The shape of kinds: the table of built-in kinds, structural schemas with defaulting and pruning, validation, the
//! decoding of JSON, YAML and protobuf bodies, OpenAPI documents, and the types of CEL expressions. Sees values, not
//! requests.

pub mod decode;
pub mod expressions;
pub mod kinds;
pub mod openapi;
pub mod protobuf;
mod structural;
pub mod validate;

pub use structural::*;
