//! Validating admission: every rule of Karmada's webhooks for the kinds we have, and ours: P4, B1, B2, U1. Each refusal
//! says what is wrong, where, and what would be right. Structure (types, enums, required fields) is the schema's task.

use std::fmt;

use api::{Object, labels};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gates::Gates;

mod binding;
mod cluster;
mod defaults;
mod failover;
mod history;
mod identity;
mod override_policy;
mod placement;
mod propagation;
mod rollout;
mod selectors;
mod syntax;

pub use binding::rejected;
pub use defaults::defaults;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// Another version of an object.
    Update,
    /// The end of an object.
    Delete,
}

/// A question to admission.
#[derive(Clone, Copy)]
pub struct Review<'r> {
    /// What is asked for.
    pub operation: Operation,
    /// The object as it would be; on deletion, as it is.
    pub object: &'r Value,
    /// The object as it is; none on creation.
    pub old: Option<&'r Value>,
    /// Switches.
    pub gates: &'r Gates,
    /// True for kinds that are known to live outside namespaces, by `apiVersion` and `kind`.
    pub is_cluster_scoped: &'r dyn Fn(&str, &str) -> bool,
}

/// Something that is allowed and probably not meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning(pub String);

/// Why an object is refused: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// What is wrong, in the order of the fields.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Where, as in `spec.placement.spreadConstraints[0]`.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let comma = if index == 0 { "" } else { "; " };
            write!(formatter, "{comma}{}: {}", problem.path, problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejection {}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// How many problems of one object are reported.
const PROBLEMS_MAX: usize = 20;

/// What is found while looking at one object.
#[derive(Debug, Default)]
struct Findings {
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
}

impl Findings {
    fn refuse(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem { path: path.into(), message: message.into() });
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(Warning(warning.into()));
    }

    fn verdict(self) -> Result<Vec<Warning>, Rejection> {
        match self.problems.is_empty() {
            true => Ok(self.warnings),
            false => Err(Rejection { problems: capped(self.problems) }),
        }
    }
}

/// The first problems, and how many there are besides.
fn capped(mut problems: Vec<Problem>) -> Vec<Problem> {
    let more = problems.len().saturating_sub(PROBLEMS_MAX);
    problems.truncate(PROBLEMS_MAX);
    let rest = Problem { path: "spec".to_owned(), message: format!("has {more} more problems like these") };
    problems.extend((more > 0).then_some(rest));
    problems
}

/// Is this acceptable? Kinds without rules of their own always are.
pub fn admission(review: &Review<'_>) -> Result<Vec<Warning>, Rejection> {
    let mut findings = Findings::default();
    match review.operation {
        Operation::Delete => deletion(review.object, &mut findings),
        Operation::Create | Operation::Update => judge(review, &mut findings),
    }
    findings.verdict()
}

fn judge(review: &Review<'_>, findings: &mut Findings) {
    let field = |name: &str| review.object.get(name).and_then(Value::as_str).unwrap_or_default();
    let group = crate::template::group(field("apiVersion"));
    match (group, field("kind")) {
        (api::kinds::POLICY_GROUP, "PropagationPolicy" | "ClusterPropagationPolicy") => {
            typed(review, findings, propagation::check);
        }
        (api::kinds::POLICY_GROUP, "OverridePolicy" | "ClusterOverridePolicy") => {
            typed(review, findings, override_policy::check);
        }
        (api::kinds::POLICY_GROUP, "RolloutPolicy" | "ClusterRolloutPolicy") => {
            typed(review, findings, propagation::check_rollout);
        }
        (api::kinds::POLICY_GROUP, "ClusterTaintPolicy") => {
            typed(review, findings, cluster::check_taint_policy)
        }
        (api::kinds::WORK_GROUP, "ResourceBinding" | "ClusterResourceBinding") => {
            typed(review, findings, binding::check);
        }
        (api::kinds::CLUSTER_GROUP, "Cluster") => typed(review, findings, cluster::check),
        _ => {}
    }
}

/// Reads old and new, and lets what did not change pass: rules that came later must not keep a finalizer
/// from being removed.
fn typed<Spec, Status>(
    review: &Review<'_>,
    findings: &mut Findings,
    check: impl FnOnce(&Review<'_>, &Object<Spec, Status>, Option<&Object<Spec, Status>>, &mut Findings),
) where
    Spec: DeserializeOwned + Default,
    Status: DeserializeOwned + Default,
{
    let parts = ["/spec", "/metadata/labels", "/metadata/annotations"];
    let same = |old: &Value| parts.iter().all(|part| old.pointer(part) == review.object.pointer(part));
    if review.old.is_some_and(same) {
        return;
    }
    let read = |value: &Value| serde_json::from_value::<Object<Spec, Status>>(value.clone());
    match read(review.object) {
        Ok(object) => check(review, &object, review.old.and_then(|old| read(old).ok()).as_ref(), findings),
        Err(error) => findings.refuse("spec", format!("cannot be read: {error}")),
    }
}

fn deletion(object: &Value, findings: &mut Findings) {
    let labels_of = object.pointer("/metadata/labels");
    let protection = labels_of.and_then(|labels_of| labels_of.get(labels::DELETION_PROTECTED));
    if protection.and_then(Value::as_str) == Some(labels::DELETION_PROTECTED_ALWAYS) {
        findings.refuse(
            "metadata.labels",
            format!(
                "this resource is protected; remove the label {} before you delete it",
                labels::DELETION_PROTECTED
            ),
        );
    }
}

#[cfg(test)]
mod tests;
