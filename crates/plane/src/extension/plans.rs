//! Plans for callers that may make the changes. The plan covers the whole control plane; the response shows what the
//! caller may read of it and counts the rest.

use std::sync::Arc;

use apimachinery::error::ApiError;
use apiserver::extension::Request;
use decide::admission_warnings::remarks_naming;
use decide::plan::plan;
use decide::snapshot::{Change, Interpreters};
use decide::{PolicyKey, Snapshot};
use serde::Deserialize;
use serde_json::Value;

use super::Planned;
use super::rights::Rights;
use crate::admission;

/// How many changes one request may bring.
const CHANGES_MAX: usize = 1_000;

/// What is sent: objects as they would be, and objects that would go.
#[derive(Deserialize)]
struct Sent {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    changes: Vec<SentChange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum SentChange {
    Put(Value),
    #[serde(rename_all = "camelCase")]
    Delete {
        api_version: String,
        kind: String,
        #[serde(default)]
        namespace: String,
        name: String,
    },
}

/// The plan of what a request sends.
pub fn planned(
    request: &Request<'_>,
    rights: &Rights<'_>,
    whole: &Snapshot,
    gates: &[String],
) -> Result<Planned, ApiError> {
    let sent: Sent = serde_json::from_value(request.body.clone()).map_err(|error| {
        ApiError::bad_request(format!("the body is not a Plan with spec.changes: {error}"))
    })?;
    if sent.spec.changes.len() > CHANGES_MAX {
        return Err(ApiError::bad_request(format!("spec.changes: at most {CHANGES_MAX}")));
    }
    let changes = sent.spec.changes.into_iter().zip(1_u128..).map(|(change, number)| {
        allowed(request, change).and_then(|change| admitted(request, whole, change, number))
    });
    let changes: Vec<Change> = changes.collect::<Result<_, _>>()?;
    let plan = plan(whole, &changes, Interpreters::BUILT_IN)
        .map_err(|error| ApiError::unprocessable(format!("its effect cannot be computed: {error}")))?;
    let notes = notes(rights, whole, &changes)?;
    let (plan, hidden) = rights.plan(plan);
    Ok(Planned { plan, hidden, notes, gates: gates.to_vec() })
}

/// A change that the caller may make, in the namespace of the request.
fn allowed(request: &Request<'_>, change: SentChange) -> Result<Change, ApiError> {
    let (api_version, kind, namespace, name) = match &change {
        SentChange::Put(object) => {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            (text("/apiVersion"), text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
        }
        SentChange::Delete { api_version, kind, namespace, name } => {
            (api_version.as_str(), kind.as_str(), namespace.as_str(), name.as_str())
        }
    };
    if !request.namespace.is_empty() && request.namespace != namespace {
        let place = request.namespace;
        return Err(ApiError::bad_request(format!(
            "{kind} {name:?} is not in namespace {place}, for which the plan was requested"
        )));
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    // A kind that is defined by the same changes has no name in paths yet.
    let plural = request.caller.resource(api_version, kind).map_or("*".to_owned(), |(plural, _)| plural);
    let verbs: &[&str] = match &change {
        SentChange::Put(_) => &["create", "update", "patch"],
        SentChange::Delete { .. } => &["delete"],
    };
    if !verbs.iter().any(|verb| request.caller.may(verb, group, &plural, namespace)) {
        return Err(request.caller.refusal(verbs[0], group, &plural, namespace, name));
    }
    Ok(match change {
        SentChange::Put(object) => Change::Put(Arc::new(object)),
        SentChange::Delete { api_version, kind, namespace, name } => {
            Change::Delete { api_version, kind, namespace, name }
        }
    })
}

/// A change as it would be stored. What admission refuses would never happen, so there is no plan of it.
fn admitted(
    request: &Request<'_>,
    whole: &Snapshot,
    change: Change,
    number: u128,
) -> Result<Change, ApiError> {
    let Change::Put(object) = change else { return Ok(change) };
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let old = request.stored.object(text("/apiVersion"), text("/kind"), namespace, name);
    let object = Arc::unwrap_or_clone(object);
    let object = admission::admitted(object, old.as_ref(), &whole.gates, number, whole.now)?;
    Ok(Change::Put(Arc::new(object)))
}

/// What there is to say about the policies among the changes that say something new.
fn notes(rights: &Rights<'_>, whole: &Snapshot, changes: &[Change]) -> Result<Vec<String>, ApiError> {
    let mut after = whole.clone();
    for change in changes {
        after.apply(change).map_err(|error| ApiError::unprocessable(error.to_string()))?;
    }
    let policies = changes.iter().filter_map(|change| match change {
        Change::Put(object) => PolicyKey::of_object(object),
        Change::Delete { .. } => None,
    });
    let spec =
        |snapshot: &Snapshot, key: &PolicyKey| snapshot.policies.get(key).map(|policy| policy.spec.clone());
    let news = policies.filter(|key| spec(whole, key) != spec(&after, key));
    let may_name = |key: &PolicyKey| rights.names(key);
    let mut said: Vec<String> =
        news.flat_map(|key| remarks_naming(&after, &key, Interpreters::BUILT_IN, &may_name)).collect();
    said.dedup();
    Ok(said)
}
