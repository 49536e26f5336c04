//! What may be written to the control plane: `decide`'s rules, handed to the API server.

use std::sync::Arc;

use apiserver::admission::{Admission, Attributes, Operation};
use apiserver::error::{ApiError, FieldError, Subject};
use decide::Gates;
use decide::admission::{Rejection, Review, admission, defaults};
use jiff::Timestamp;
use serde_json::Value;

use crate::outlook::Outlook;

/// Fills in what policies leave out, refuses what makes no sense, and warns of what is probably not meant.
/// `random` makes the permanent ids, `now` dates taints, `outlook` says what policies would do.
pub fn rules(
    gates: Gates,
    random: Arc<dyn Fn() -> u128 + Send + Sync>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    outlook: Outlook,
) -> Admission {
    Arc::new(move |attributes, object| {
        let mut warnings = judge(attributes, object, &gates, &*random, &*now)?;
        if attributes.subresource.is_empty() {
            warnings.extend(outlook.judge(attributes, object, now())?);
        }
        Ok(warnings)
    })
}

fn judge(
    attributes: &Attributes<'_>,
    object: &mut Value,
    gates: &Gates,
    random: &dyn Fn() -> u128,
    now: &dyn Fn() -> Timestamp,
) -> Result<Vec<String>, ApiError> {
    if !attributes.subresource.is_empty() {
        return Ok(Vec::new());
    }
    fill_in(attributes, object, random, now);
    let review = Review {
        operation: operation(attributes),
        object,
        old: attributes.old,
        gates,
        is_cluster_scoped: &is_cluster_scoped,
        allow_no_execute: true,
    };
    match admission(&review) {
        Ok(warnings) => Ok(warnings.into_iter().map(|warning| warning.0).collect()),
        Err(rejection) => Err(refused(attributes, object, &rejection)),
    }
}

/// Fills in what the object leaves out.
pub(crate) fn fill_in(
    attributes: &Attributes<'_>,
    object: &mut Value,
    random: &dyn Fn() -> u128,
    now: &dyn Fn() -> Timestamp,
) {
    if attributes.operation != Operation::Delete && attributes.subresource.is_empty() {
        defaults(object, attributes.old, operation(attributes), random().to_be_bytes(), now());
    }
}

fn operation(attributes: &Attributes<'_>) -> decide::admission::Operation {
    match attributes.operation {
        Operation::Create => decide::admission::Operation::Create,
        Operation::Update => decide::admission::Operation::Update,
        Operation::Delete => decide::admission::Operation::Delete,
    }
}

fn refused(attributes: &Attributes<'_>, object: &Value, rejection: &Rejection) -> ApiError {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let subject = Subject { group: attributes.group, resource: attributes.kind, name };
    let problem = |problem: &decide::admission::Problem| {
        let value = field(object, &problem.path);
        FieldError::invalid(problem.path.as_str(), value, problem.message.as_str())
    };
    let errors: Vec<FieldError> = rejection.problems.iter().map(problem).collect();
    ApiError::invalid(subject, &errors)
}

/// The value that a path such as `spec.resourceSelectors[0].namespace` leads to.
fn field(object: &Value, path: &str) -> Value {
    let pointer = path.replace('[', ".").replace(']', "");
    let mut words = pointer.split('.').filter(|word| !word.is_empty());
    let found = words.try_fold(object, |at, word| match (at, word.parse::<usize>()) {
        (Value::Array(items), Ok(index)) => items.get(index),
        (value, _) => value.get(word),
    });
    found.cloned().unwrap_or_default()
}

fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    apiserver::kinds::find(group, version, kind).is_some_and(|kind| !kind.namespaced)
}
