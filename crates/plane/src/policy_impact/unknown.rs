//! Clusters that a policy names and that do not exist. Such a name is most often mistyped, and a policy that names
//! nothing else places its templates nowhere. It is refused only if the policy or the control plane is set to do so.

use std::collections::BTreeSet;

use api::records::UNKNOWN_CLUSTERS;
use apimachinery::error::ApiError;
use apiserver::admission::{Attributes, Operation};
use decide::{Snapshot, unknown_clusters};
use serde_json::Value;

use super::{annotation, is_policy, named};

/// The value that refuses.
const REFUSE: &str = "refuse";
/// How many names are in the answer.
const NAMED_MAX: usize = 10;

/// Refuses a policy whose new placement names clusters that do not exist.
pub(super) fn check(
    attributes: &Attributes<'_>,
    object: &Value,
    snapshot: &Snapshot,
    always: bool,
) -> Result<(), ApiError> {
    let wanted = match annotation(object, UNKNOWN_CLUSTERS) {
        Some(value) => value == REFUSE,
        None => always,
    };
    let placement = |object: &Value| object["spec"]["placement"].clone();
    let is_new = attributes.old.is_none_or(|old| placement(old) != placement(object));
    if !wanted || !is_new || !is_policy(attributes) || attributes.operation == Operation::Delete {
        return Ok(());
    }
    let unknown = unknown_clusters::in_object(object, &snapshot.clusters);
    let names: BTreeSet<&str> = unknown.iter().flat_map(|field| &field.names).map(String::as_str).collect();
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = names.into_iter().take(NAMED_MAX).collect();
    let why = format!(
        "it names clusters that do not exist: {}. `kubectl get clusters` lists those that do; \
         {UNKNOWN_CLUSTERS}=warn on the policy allows it",
        names.join(", ")
    );
    Err(ApiError::forbidden(named(attributes, object), why))
}
