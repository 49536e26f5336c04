//! Dry runs: what the server would make of each change. Where dry runs are forbidden, as with read-only rights,
//! computes the result locally and says so. Writes nothing.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use api::records::APPROVED_PLAN;
use controllers::rest::{Error, Rest};
use decide::admission::{Operation, defaults};
use decide::snapshot::Change;
use serde_json::Value;

use super::request::{Request, Verb, merged};
use crate::Hint;

/// Changes as they would be.
#[derive(Default)]
pub struct Rehearsed {
    /// In their order.
    pub changes: Vec<Change>,
    /// What the server did not try itself, and why.
    pub notes: Vec<String>,
    /// Changes that exceed a change budget.
    pub beyond: Vec<Beyond>,
}

/// A change that goes beyond its budget; nothing else speaks against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beyond {
    /// What it would do, and what is allowed.
    pub why: String,
    /// The plan that the server would let through, by its digest.
    pub plan: String,
}

impl Beyond {
    /// What the server means, if it refuses a change for this reason.
    pub fn of(error: &Error) -> Option<Self> {
        let Error::Refused { code: 403, message, .. } = error else { return None };
        let (text, plan) = message.rsplit_once(&format!("{APPROVED_PLAN}="))?;
        let (_, text) = text.split_once(" is forbidden: ")?;
        let why = text.split_once(". ").map_or(text, |(why, _)| why);
        Some(Self { why: why.to_owned(), plan: plan.trim().to_owned() })
    }
}

impl Beyond {
    /// One sentence for the user, which ends with how the command at hand lets it through.
    pub fn note(&self, way: &str) -> String {
        let Self { why, plan } = self;
        format!(
            "The change exceeds its budget: {why}. The server accepts it with the annotation \
             {APPROVED_PLAN}={plan}, or {way}."
        )
    }
}

/// Tries every request.
pub async fn rehearse(rest: &Rest, requests: &[(Request, Option<Value>)]) -> Result<Rehearsed> {
    let mut rehearsed = Rehearsed::default();
    for (request, live) in requests {
        let answer = match request.send(rest, true).await {
            Ok(answer) => answer,
            Err(error) if Beyond::of(&error).is_some() => {
                rehearsed.beyond.extend(Beyond::of(&error));
                made_up(request, live.as_ref())
            }
            Err(error) if may_be_made_up(&error, request, requests) => {
                rehearsed.notes.push(format!("{}: {error}", request.object));
                made_up(request, live.as_ref())
            }
            Err(error) => return Err(refused(request, error)),
        };
        rehearsed.changes.push(change(request, answer));
    }
    Ok(rehearsed)
}

/// Whether a failed dry run is computed locally instead: users with read-only rights get a plan, too, and so do objects
/// whose namespace or kind comes with the same files.
fn may_be_made_up(error: &Error, request: &Request, requests: &[(Request, Option<Value>)]) -> bool {
    match error {
        Error::Refused { code: 403, message, .. } => lacks_rights(message),
        Error::Refused { message, .. } => message.contains("does not support dry run"),
        Error::NotFound { .. } => {
            let news = requests.iter().map(|(other, _)| other).filter(|other| other.verb == Verb::Create);
            news.into_iter().any(|other| brings(other, request))
        }
        _ => false,
    }
}

/// Whether a refusal is about missing rights (RBAC) of the user; otherwise no user could make the change.
fn lacks_rights(message: &str) -> bool {
    message.contains("User \"") && message.contains("\" cannot ")
}

/// True if one makes the namespace or the kind that the other needs.
pub fn brings(other: &Request, request: &Request) -> bool {
    let group = request.api_version.split_once('/').map_or("", |(group, _)| group);
    match other.kind.as_str() {
        "Namespace" => other.name == request.namespace,
        "CustomResourceDefinition" => {
            let spec = &other.body["spec"];
            spec["group"] == group && spec["names"]["kind"] == request.kind.as_str()
        }
        _ => false,
    }
}

fn refused(request: &Request, error: Error) -> anyhow::Error {
    let refused = anyhow::Error::new(Hint(
        "nothing was planned, because the server would reject this change; correct \
         the object and plan again"
            .to_owned(),
    ));
    refused.context(error).context(format!("try {}", request.object))
}

fn change(request: &Request, answer: Value) -> Change {
    match request.verb {
        Verb::Create | Verb::Patch => Change::Put(Arc::new(answer)),
        Verb::Delete => Change::Delete {
            api_version: request.api_version.clone(),
            kind: request.kind.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
        },
    }
}

/// The object with what the server would fill in, as far as a plan depends on it: what the control plane does for
/// its own kinds, and how many replicas a workload has that does not say.
fn made_up(request: &Request, live: Option<&Value>) -> Value {
    let now = jiff::Timestamp::now();
    let (operation, mut object) = match live {
        None => (Operation::Create, request.body.clone()),
        Some(live) => (Operation::Update, merged(live, &request.body)),
    };
    defaults(&mut object, live, operation, rand::random(), now);
    let one = match (request.api_version.as_str(), request.kind.as_str()) {
        ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet") => Some("replicas"),
        ("batch/v1", "Job") => Some("parallelism"),
        _ => None,
    };
    if let Some(field) = one.filter(|field| object["spec"].is_object() && object["spec"][field].is_null()) {
        object["spec"][field] = 1.into();
    }
    let generation = live.and_then(|live| live["metadata"]["generation"].as_i64()).unwrap_or(0);
    let changed = live.is_none_or(|live| live["spec"] != object["spec"]);
    let metadata = &mut object["metadata"];
    metadata["generation"] = (generation + i64::from(changed)).into();
    if live.is_none() {
        metadata["uid"] = format!("{:032x}", rand::random::<u128>()).into();
        metadata["creationTimestamp"] = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
    }
    object
}

/// The objects that are to be deleted have to be there.
pub fn there(request: &Request, live: Option<&Value>) -> Result<()> {
    let missing = Hint("`kubectl get` lists the objects that exist".to_owned());
    live.map(drop).ok_or(missing).with_context(|| format!("{} does not exist", request.object))
}

#[cfg(test)]
mod tests {
    use controllers::rest::Collection;
    use serde_json::json;

    use super::*;

    fn request(verb: Verb, api_version: &str, kind: &str, body: Value) -> Request {
        Request {
            verb,
            object: format!("{}/x", kind.to_lowercase()),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: "x".to_owned(),
            collection: Collection::new(api_version, "xs", "shop"),
            body,
            before: String::new(),
        }
    }

    #[test]
    fn only_what_the_server_does_not_try_is_made_up() {
        let policy = request(Verb::Create, "policy.karmada.io/v1alpha1", "PropagationPolicy", json!({}));
        let mut namespace = request(Verb::Create, "v1", "Namespace", json!({}));
        namespace.name = "shop".to_owned();
        let alone = [(policy.clone(), None)];
        let both = [(namespace, None), (policy.clone(), None)];
        let refused = |code: u16, message: &str| Error::Refused {
            action: "post".to_owned(),
            code,
            message: message.to_owned(),
        };
        let missing = || Error::NotFound { action: "post".to_owned() };
        let check = |error: Error, all: &[(Request, Option<Value>)], expected: bool| {
            assert_eq!(may_be_made_up(&error, &policy, all), expected, "{error}");
        };
        check(refused(403, "xs \"x\" is forbidden: User \"u\" cannot patch resource \"xs\""), &alone, true);
        check(refused(403, "xs \"x\" is forbidden: it names clusters that do not exist"), &alone, false);
        check(refused(400, "admission webhook x does not support dry run"), &alone, true);
        check(refused(422, "spec: wrong"), &alone, false);
        check(missing(), &alone, false);
        check(missing(), &both, true);
    }

    #[test]
    fn a_budget_is_told_from_other_refusals() {
        let refused = |message: &str| Error::Refused {
            action: "patch".to_owned(),
            code: 403,
            message: message.to_owned(),
        };
        let budget = "policies \"p\" is forbidden: it would move 5 templates, and longshore.io/max-moved allows 2. \
                      Plan: 5 templates, 5 moved. To do it annotate with longshore.io/approved-plan=12ab";
        let why = "it would move 5 templates, and longshore.io/max-moved allows 2".to_owned();
        assert_eq!(Beyond::of(&refused(budget)), Some(Beyond { why, plan: "12ab".to_owned() }));
        assert_eq!(Beyond::of(&refused("policies \"p\" is forbidden: User \"u\" cannot patch")), None);
    }

    #[test]
    fn what_is_made_up_is_what_the_server_would_make_of_it() {
        let body = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": { "name": "x", "namespace": "shop" },
            "spec": { "resourceSelectors": [{ "apiVersion": "apps/v1", "kind": "Deployment" }] },
        });
        let create = request(Verb::Create, "policy.karmada.io/v1alpha1", "PropagationPolicy", body);
        let made = made_up(&create, None);
        assert_eq!(made["spec"]["resourceSelectors"][0]["namespace"], "shop");
        assert_eq!(made["metadata"]["generation"], 1);
        assert!(made["metadata"]["uid"].is_string() && made["metadata"]["creationTimestamp"].is_string());
        let patch = json!({ "spec": { "priority": 3 } });
        let edit = request(Verb::Patch, "policy.karmada.io/v1alpha1", "PropagationPolicy", patch);
        let edited = made_up(&edit, Some(&made));
        assert_eq!((&edited["metadata"]["generation"], &edited["spec"]["priority"]), (&json!(2), &json!(3)));
        assert_eq!(edited["metadata"]["uid"], made["metadata"]["uid"]);
        let web =
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "x" }, "spec": {} });
        assert_eq!(
            made_up(&request(Verb::Create, "apps/v1", "Deployment", web), None)["spec"]["replicas"],
            1
        );
    }
}
