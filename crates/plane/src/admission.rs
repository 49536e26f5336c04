//! Admission of the control plane: passes `decide`'s defaulting and validation rules to the API server.

use std::sync::Arc;

use apimachinery::error::{ApiError, FieldError, Subject};
use apiserver::admission::{Admission, Attributes, Operation};
use decide::Gates;
use decide::admission::{Rejection, Review, admission, defaults};
use jiff::Timestamp;
use serde_json::Value;

use crate::policy_impact::PolicyImpact;

/// A list with more items is not repeated in messages about it.
const SHOWN_ITEMS_MAX: usize = 20;

/// Fills in what policies leave out, refuses what makes no sense, and warns of what is probably not meant.
/// `random` makes the permanent ids, `now` dates taints, `outlook` says what policies would do.
pub fn rules(
    gates: Gates,
    random: Arc<dyn Fn() -> u128 + Send + Sync>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    policy_impact: PolicyImpact,
) -> Admission {
    Arc::new(move |attributes, object| {
        let mut warnings = judge(attributes, object, &gates, &*random, &*now)?;
        if attributes.subresource.is_empty() {
            warnings.extend(policy_impact.judge(attributes, object, now())?);
        }
        Ok(decide::admission_warnings::capped(warnings))
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
    };
    match admission(&review) {
        Ok(warnings) => Ok(warnings.into_iter().map(|warning| warning.0).collect()),
        Err(rejection) => Err(refused(attributes.group, attributes.kind, object, &rejection)),
    }
}

/// The object as admission would let it be stored: with what it leaves out filled in, and refused where its content makes
/// no sense. For changes that nobody makes yet; `random` stands for what a permanent id is made of.
pub(crate) fn admitted(
    mut object: Value,
    old: Option<&Value>,
    gates: &Gates,
    random: u128,
    now: Timestamp,
) -> Result<Value, ApiError> {
    use decide::admission::Operation;
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    defaults(&mut object, old, operation, random.to_be_bytes(), now);
    let review = Review { operation, object: &object, old, gates, is_cluster_scoped: &is_cluster_scoped };
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    match admission(&review) {
        Ok(_) => Ok(object),
        Err(rejection) => Err(refused(group, text("kind"), &object, &rejection)),
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

fn refused(group: &str, kind: &str, object: &Value, rejection: &Rejection) -> ApiError {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let subject = Subject { group, resource: kind, name };
    let problem = |problem: &decide::admission::Problem| {
        let value = shown(field(object, &problem.path));
        FieldError::invalid(problem.path.as_str(), value, problem.message.as_str())
    };
    let errors: Vec<FieldError> = rejection.problems.iter().map(problem).collect();
    ApiError::invalid(subject, &errors)
}

/// What a message repeats of a value: all of it, or what it is if that is much.
fn shown(value: Value) -> Value {
    match &value {
        Value::Array(items) if items.len() > SHOWN_ITEMS_MAX => format!("{} items", items.len()).into(),
        _ => value,
    }
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
    schema::kinds::find(group, version, kind).is_some_and(|kind| !kind.namespaced)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use apiserver::authn::Identity;
    use controllers::cache::Cache;
    use decide::snapshot::{Change, Interpreters};
    use decide::{PolicyKey, Snapshot};
    use serde_json::json;

    use super::*;

    fn policy(selectors: usize) -> Value {
        let selector = |number| {
            let name = format!("none-{number}");
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "n", "name": name })
        };
        json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": "pp", "namespace": "n" },
            "spec": { "resourceSelectors": (0..selectors).map(selector).collect::<Vec<_>>() },
        })
    }

    fn judged(selectors: usize) -> Result<Vec<String>, ApiError> {
        let policy_impact = PolicyImpact::default();
        let cache = Cache::default();
        cache.note_synced();
        policy_impact.see(cache);
        let (random, now) = (Arc::new(|| 7_u128), Arc::new(|| Timestamp::UNIX_EPOCH));
        let attributes = Attributes {
            operation: Operation::Create,
            group: "policy.karmada.io",
            version: "v1alpha1",
            resource: "propagationpolicies",
            kind: "PropagationPolicy",
            subresource: "",
            old: None,
            dry_run: false,
            identity: &Identity::internal("test"),
        };
        rules(Gates::default(), random, now, policy_impact)(&attributes, &mut policy(selectors))
    }

    #[test]
    fn a_policy_with_many_selectors_gets_few_warnings_and_one_with_too_many_is_refused() {
        let warnings = judged(api::selector::SELECTORS_MAX).expect("it is taken");
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        let refused = judged(8_000).expect_err("it is refused");
        assert!(
            refused.message.contains("8000 items") && refused.message.len() < 1_000,
            "{}",
            refused.message
        );
    }

    /// How long it takes to find out what there is to say about a policy with so many selectors.
    fn time_to_warn(selectors: usize) -> Duration {
        let mut snapshot = Snapshot::default();
        snapshot.apply(&Change::Put(Arc::new(policy(selectors)))).expect("readable");
        let key = PolicyKey { namespace: "n".to_owned(), name: "pp".to_owned() };
        let begun = Instant::now();
        assert_eq!(
            decide::admission_warnings::admission_warnings(&snapshot, &key, Interpreters::BUILT_IN).len(),
            4
        );
        begun.elapsed()
    }

    #[test]
    #[ignore = "measures time"]
    fn warnings_cost_what_is_written_and_not_its_square() {
        // Sixteen times as many selectors cost about sixteen times as much; with a square it would be 256 times.
        let least = |selectors: usize| (0..20).map(|_| time_to_warn(selectors)).min().expect("some");
        let (few, many) = (least(500), least(8_000));
        assert!(many < few * 100, "{few:?} for 500 and {many:?} for 8000");
    }
}
