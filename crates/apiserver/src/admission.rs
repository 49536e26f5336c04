//! The admission hook: the process that embeds the server passes in one function that may mutate, refuse or warn
//! about every write. The server itself knows no policy.

use std::sync::Arc;

use serde_json::Value;

use crate::authn::Identity;
use apimachinery::error::ApiError;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A new state of an object.
    Update,
    /// The beginning of an object's end.
    Delete,
}

/// One write, as admission sees it.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// What is being done.
    pub operation: Operation,
    /// API group, empty for core.
    pub group: &'a str,
    /// API version of the request.
    pub version: &'a str,
    /// Plural resource name.
    pub resource: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// Subresource, empty for the object itself.
    pub subresource: &'a str,
    /// The state before, absent on create.
    pub old: Option<&'a Value>,
    /// Nothing will be written.
    pub dry_run: bool,
    /// The requesting user.
    pub identity: &'a Identity,
}

/// Admits a write and may change the object (on delete: the object as it is, changes are ignored).
/// Answers with warnings for the client, or with the refusal.
pub type Admission = Arc<dyn Fn(&Attributes<'_>, &mut Value) -> Result<Vec<String>, ApiError> + Send + Sync>;

/// Admits everything.
pub fn admit_all() -> Admission {
    Arc::new(|_, _| Ok(Vec::new()))
}
